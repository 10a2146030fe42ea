"""The C functions that an export declares: they take the values of a call, and run the code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from packer.declare.c_text import c_string
from packer.declare.declaration import Declaration, Parameter

from . import ufunc
from .arguments import (
    C_TYPES,
    c_type,
    flat_types,
    flat_values,
    keep_lines,
    memory_of,
    read_lines,
    release_lines,
    variables,
)
from .dispatch import exact_condition, type_lines
from .results import stored_lines
from .values import Compiled, Value, Variant

_HEAD = """\
/* Written by dso-packer: the calls of the Numba functions of one module. */
#include "call.h"
#include "choose.h"
#include "pending.h"
"""
# The numbers that the wrapper of an export converts as Numba does.
_READ = ("f64", "c64", "c128")
_NUMBERS = {**C_TYPES, "c64": "dso_complex64", "c128": "dso_complex128"}


def source(functions: Sequence[Compiled], prefix: str) -> str:
    """Return the C text of a module."""
    lines = [_HEAD]
    for index, function in enumerate(functions):
        lines += ["", f"/* {function.name} */", *_data_lines(index, function)]
        if function.kind == "jit":
            lines += _function_lines(index, function, prefix)
        else:
            lines += ufunc.function_lines(index, function, _symbol(index, prefix))
    return "\n".join([*lines, ""])


def declaration_of(index: int, function: Compiled, prefix: str) -> Declaration:
    """Return the declaration of a function: what `source` defines."""
    outs = _outs(function)
    text = f"{_result_text(function)}({', '.join(_parameter_texts(function))})"
    return Declaration(
        function.name,
        text=text,
        parameters=(*_parameters(function), *(Parameter(n, "", f"*{c}") for n, c in outs)),
        result="status",
        result_text="dso_status",
        doc=function.doc,
        gil="release" if function.nogil else "keep",
        out=tuple(name for name, _ in outs),
        symbol=_symbol(index, prefix),
        defaults=function.defaults if function.kind == "jit" else ufunc.defaults_of(function),
    )


def _symbol(index: int, prefix: str) -> str:
    """Return the symbol of the C function that a wrapper of the export calls."""
    return f"{prefix}call_{index}"


def _parameters(function: Compiled) -> Iterator[Parameter]:
    """Most numbers of a function with one signature have a code; the function reads the rest."""
    if function.kind != "jit":
        yield from ufunc.parameters_of(function)
        return
    is_one = len(function.variants) == 1
    for i, name in enumerate(function.parameters):
        value = function.variants[0].arguments[i]
        code = value.code if is_one and value.code in _READ and value.kind == "number" else "any"
        if is_one and value.kind == "pointer":
            code = f"*{value.code}"
        yield Parameter(name, _text_of(function, i), code)


def _text_of(function: Compiled, i: int) -> str:
    texts = dict.fromkeys(variant.arguments[i].text for variant in function.variants)
    return " or ".join(texts)


def _parameter_texts(function: Compiled) -> Iterator[str]:
    for parameter in _parameters(function):
        yield f"{parameter.type_text} {parameter.name}"


def _result_text(function: Compiled) -> str:
    if function.kind != "jit":
        return ufunc.result_text(function)
    return " or ".join(dict.fromkeys(variant.result.text for variant in function.variants))


def _result(function: Compiled) -> Value | None:
    """Return what all signatures return; None if they differ."""
    found = {variant.result for variant in function.variants}
    return found.pop() if len(found) == 1 else None


def _outs(function: Compiled) -> list[tuple[str, str]]:
    """Return the name and the code of each result."""
    if function.kind != "jit":
        count = len(function.core) - function.num_inputs
        return [(f"result_{i}", "any") for i in range(count)]
    result = _result(function)
    if result is not None and result.kind == "none":
        return []
    if result is not None and result.kind == "tuple" and len(result.items) > 1:
        items = result.items
    else:
        items = (result,) if result is not None else (Value("any", ""),)
    codes = [item.code if item.kind == "number" else "any" for item in items]
    names = ["result", *(f"result_{i}" for i in range(1, len(codes)))]
    while set(names) & set(function.parameters):
        names = [f"{name}_" for name in names]
    return list(zip(names, codes, strict=True))


def _function_lines(index: int, function: Compiled, prefix: str) -> Iterator[str]:
    for variant in function.variants:
        types = ", ".join(name for value in variant.arguments for name in flat_types(value))
        result = f"{c_type(variant.result)} *" if variant.result.kind == "number" else "void *"
        yield f"extern int32_t {variant.symbol}({result}, nb_error **{types and ', '}{types})"
        yield '  __attribute__((visibility("hidden")));'
    if len(function.variants) > 1:
        yield from type_lines(index, function.variants)
        for k, variant in enumerate(function.variants):
            yield from _variant_lines(index, k, function, variant)
    yield from _call_lines(index, function, prefix)


def _data_lines(index: int, function: Compiled) -> Iterator[str]:
    """The names and types of the parameters, for messages."""
    parameters = list(_parameters(function))
    count = len(parameters)
    if count:
        yield f"static const dso_parameter parameters_{index}[] = {{"
        for parameter in parameters:
            yield f"  {{{c_string(parameter.name)}, {c_string(parameter.type_text)}}},"
        yield "};"
    declared = f"{function.name}({', '.join(_parameter_texts(function))})"
    place = f"parameters_{index}" if count else "NULL"
    yield f"static const dso_function function_{index} = {{"
    yield f"  {c_string(function.name)}, {c_string(declared)},"
    yield f"  {place}, {count}, {count}, DSO_ARGUMENT, 0, NULL}};"


def _out_parameters(function: Compiled) -> list[str]:
    return [
        f"{'dso_any' if code == 'any' else _NUMBERS[code]} *out{i}"
        for i, (_, code) in enumerate(_outs(function))
    ]


def _call_lines(index: int, function: Compiled, prefix: str) -> Iterator[str]:
    """The function that the wrapper of the export calls."""
    given = [
        f"{'dso_any' if p.code == 'any' else 'void *' if p.code[0] == '*' else _NUMBERS[p.code]} "
        f"x{i}"
        for i, p in enumerate(_parameters(function))
    ]
    parameters = ", ".join([*given, *_out_parameters(function)]) or "void"
    symbol = _symbol(index, prefix)
    yield f'__attribute__((visibility("hidden"))) int {symbol}({parameters});'
    yield f"int {symbol}({parameters}) {{"
    if len(function.variants) == 1:
        body = _body_lines(index, function, function.variants[0], is_one=True)
    else:
        body = _choice_lines(index, function)
    yield from (f"  {line}" for line in body)
    yield "}"


def _choice_lines(index: int, function: Compiled) -> Iterator[str]:
    """Call the code of the signature that fits best."""
    values = ", ".join(f"x{i}" for i in range(len(function.parameters)))
    outs = "".join(f", out{i}" for i in range(len(_outs(function))))
    yield f"const dso_any args[] = {{{values or 'dso_none()'}}};"
    for k, variant in enumerate(function.variants):
        if condition := exact_condition(variant):
            yield f"if ({condition}) return variant_{index}_{k}(args{outs});"
    signatures = "; ".join(_signature_text(variant) for variant in function.variants)
    given = f"&function_{index}, args, {len(function.parameters)}, types_{index}"
    yield f"switch (nb_choose({given}, {len(function.variants)}, {c_string(signatures)})) {{"
    for k in range(len(function.variants)):
        yield f"  case {k}: return variant_{index}_{k}(args{outs});"
    yield "  default: return -1;"
    yield "}"


def _signature_text(variant: Variant) -> str:
    return f"({', '.join(value.text for value in variant.arguments)})"


def _variant_lines(index: int, k: int, function: Compiled, variant: Variant) -> Iterator[str]:
    """A function that calls the code of one signature."""
    outs = "".join(f", {text}" for text in _out_parameters(function))
    yield f"static int variant_{index}_{k}(const dso_any *args{outs}) {{"
    yield from (f"  {line}" for line in _body_lines(index, function, variant, is_one=False))
    yield "}"


def _body_lines(index: int, function: Compiled, variant: Variant, *, is_one: bool) -> Iterator[str]:
    names = [f"a{i}" for i in range(len(variant.arguments))]
    yield from _taken_lines(index, function, variant, is_one=is_one)
    yield f"{c_type(variant.result)} r;"
    yield "nb_error *error = NULL;"
    yield "__builtin_memset(&r, 0, sizeof r);"
    values = [
        v
        for name, value in zip(names, variant.arguments, strict=True)
        for v in flat_values(value, name)
    ]
    passed = "".join(f", {value}" for value in values)
    if variant.allocates:
        yield "nrt_call memory;"
        yield "nrt_call_begin(&memory);"
        for name, value in zip(names, variant.arguments, strict=True):
            for meminfo in memory_of(value, name):
                yield f"nrt_call_take(&memory, {meminfo});"
    yield f"const int32_t code = {variant.symbol}(&r, &error{passed});"
    failed, fail = "code != NB_OK && code != NB_NONE", f"nb_fail(code, error, &function_{index})"
    yield f"int status = {failed} ? {fail} : 0;"
    if variant.notes:
        yield f"status = nb_raise_pending(status, &function_{index});"
    yield from _end_lines(variant, names)
    yield "if (status) return status;"
    yield from stored_lines(_outs(function), _result(function), variant.result)
    yield "return status;"


def _end_lines(variant: Variant, names: Sequence[str]) -> Iterator[str]:
    """Release what the call no longer needs: after a failure, all that its code allocated."""
    if variant.allocates and (kept := " ".join(keep_lines(variant.result, "r"))):
        yield f"if (!status) {{ {kept} }}"
    for name, value in zip(names, variant.arguments, strict=True):
        yield from release_lines(value, name)
    if variant.allocates:
        yield "nrt_call_end(&memory, status);"


def _taken_lines(
    index: int, function: Compiled, variant: Variant, *, is_one: bool
) -> Iterator[str]:
    parameters = list(_parameters(function))
    for i, value in enumerate(variant.arguments):
        if is_one and parameters[i].code != "any":
            yield from _given_lines(value, i)
        else:
            yield from variables(value, f"a{i}")
    if is_one:
        anys = [f"x{i}" for i, p in enumerate(parameters) if p.code == "any"]
        yield f"const dso_any args[] = {{{', '.join(anys) or 'dso_none()'}}};"
    yield f"const int32_t num_args = {max(1, len(parameters) if not is_one else len(anys))};"
    yield "int why = NB_NO_NUMBER;"
    yield "(void)args, (void)num_args, (void)why;"
    at = 0
    for i, value in enumerate(variant.arguments):
        if is_one and parameters[i].code != "any":
            continue
        place = at if is_one else i
        at += 1
        release = " ".join(
            line for j in range(i) for line in release_lines(variant.arguments[j], f"a{j}")
        )
        fail = f"return nb_refuse(&function_{index}, &args[{place}], {i}, why);"
        fail = f"{{ {release} {fail} }}" if release else fail
        yield from read_lines(value, f"a{i}", f"&args[{place}]", fail)


def _given_lines(value: Value, i: int) -> Iterator[str]:
    """A number or pointer that the wrapper of the export has read."""
    if value.code in ("c64", "c128") and value.kind == "number":
        yield f"{C_TYPES[value.code]} a{i};"
        yield f"__builtin_memcpy(&a{i}, &x{i}, sizeof a{i});"
    else:
        yield f"{c_type(value)} a{i} = x{i};"
