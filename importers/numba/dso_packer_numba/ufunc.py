"""The C text of functions of elements, which ``@vectorize`` and ``@guvectorize`` make."""

from __future__ import annotations

from collections.abc import Iterator

from packer.declare.c_text import c_string
from packer.declare.code import DTYPES
from packer.declare.declaration import Parameter

from .arguments import alignment_of
from .values import Compiled, Value, Variant


def names_of(function: Compiled) -> list[str]:
    """Return the names of the inputs and outputs; ``@vectorize`` does not name its output."""
    names = list(function.parameters)
    if function.kind == "vectorize":
        names.append(next(n for n in ("out", "result", "out_") if n not in names))
    return names


def parameters_of(function: Compiled) -> Iterator[Parameter]:
    """The inputs, and the outputs, which callers may omit."""
    for i, name in enumerate(names_of(function)):
        yield Parameter(name, _type_text(function, i), "any")


def defaults_of(function: Compiled) -> dict[str, object]:
    """Return the values of the outputs that are omitted."""
    return dict.fromkeys(names_of(function)[function.num_inputs :])


def result_text(function: Compiled) -> str:
    """Return the types of the outputs, for the declaration."""
    texts = [_type_text(function, i) for i in range(function.num_inputs, len(function.core))]
    return texts[0] if len(texts) == 1 else f"tuple[{', '.join(texts)}]"


def _type_text(function: Compiled, i: int) -> str:
    """Return the element type of an operand, with its core dimensions."""
    types = dict.fromkeys(_element_text(variant.arguments[i]) for variant in function.variants)
    core = "".join(f", {name}" for name in function.core[i])
    return " or ".join(f"{name}[...{core}]" for name in types)


def _element_text(value: Value) -> str:
    return value.text.split("[")[0] if value.kind == "array" else value.text


def function_lines(index: int, function: Compiled, symbol: str) -> Iterator[str]:
    """Define a function that a wrapper of the export calls."""
    yield '#include "ufunc.h"'
    for variant in function.variants:
        arguments = "char **, const int64_t *, const int64_t *, void *"
        yield f"extern void {variant.symbol}({arguments})"
        yield '  __attribute__((visibility("hidden")));'
    numbers = {name: i for i, name in enumerate(_core_names(function))}
    for i, core in enumerate(function.core):
        items = ", ".join(str(numbers[name]) for name in core) or "0"
        yield f"static const int8_t core_{index}_{i}[] = {{{items}}};"
    for k, variant in enumerate(function.variants):
        yield from _operand_lines(index, k, function, variant)
    yield f"static const nb_ufunc ufunc_{index}[] = {{"
    outputs = len(function.core) - function.num_inputs
    for k, variant in enumerate(function.variants):
        counts = f"{function.num_inputs}, {outputs}, {len(numbers)}, {int(variant.allocates)}"
        yield f"  {{&function_{index}, operands_{index}_{k}, {variant.symbol}, {counts}}},"
    yield "};"
    yield from _call_lines(index, function, symbol)


def _core_names(function: Compiled) -> list[str]:
    """Return the names of the core dimensions, in the order in which Numba numbers them."""
    return list(dict.fromkeys(name for core in function.core for name in core))


def _operand_lines(index: int, k: int, function: Compiled, variant: Variant) -> Iterator[str]:
    yield f"static const nb_operand operands_{index}_{k}[] = {{"
    for i, (value, core) in enumerate(zip(variant.arguments, function.core, strict=True)):
        align = alignment_of(value.code)
        yield f"  {{{DTYPES[value.code]}, {align}, {len(core)}, core_{index}_{i}}},"
    yield "};"


def _call_lines(index: int, function: Compiled, symbol: str) -> Iterator[str]:
    inputs = [f"dso_any x{i}" for i in range(len(function.core))]
    outputs = [f"dso_any *out{i}" for i in range(len(function.core) - function.num_inputs)]
    parameters = ", ".join([*inputs, *outputs])
    yield f'__attribute__((visibility("hidden"))) int {symbol}({parameters});'
    yield f"int {symbol}({parameters}) {{"
    yield f"  const dso_any args[] = {{{', '.join(f'x{i}' for i in range(len(inputs)))}}};"
    yield f"  dso_any results[{len(outputs)}];"
    yield "  __builtin_memset(results, 0, sizeof results);"
    texts = (
        ", ".join(map(_element_text, variant.arguments[: function.num_inputs]))
        for variant in function.variants
    )
    signatures = c_string("; ".join(f"({text})" for text in texts))
    # NumPy knows the types of a gufunc's loops, and tries other ufuncs of Numba loop by loop.
    exact_first = int(function.kind == "guvectorize")
    given = f"ufunc_{index}, {len(function.variants)}, {exact_first}, {signatures}"
    yield f"  if (nb_ufunc_call({given}, args, results)) return -1;"
    yield from (f"  *out{i} = results[{i}];" for i in range(len(outputs)))
    yield "  return 0;"
    yield "}"
