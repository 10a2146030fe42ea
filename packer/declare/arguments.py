"""Arguments: the C text that reads what callers pass, and passes it to the declared function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .c_text import c_string, variable
from .code import Scope, is_pairs, item_size, kind_of, split_extents, struct_of
from .declaration import UNSIGNED, Declaration, Parameter


def local_lines(declaration: Declaration, scope: Scope) -> Iterator[str]:
    """The variables of all parameters: ``a0`` is read, or written if it is an out-parameter."""
    for i, parameter in enumerate(declaration.parameters):
        if parameter.name in declaration.out:
            kind = kind_of(parameter.code[1:], scope)
            yield from variable(kind.c_type, f"a{i}")
        else:
            kind = kind_of(parameter.code, scope)
            mark = " DSO_STRINGS" if kind.take == "strings" else ""
            yield from variable(kind.local, f"a{i}", mark)


def count_lines(declaration: Declaration) -> Iterator[str]:
    """Refuse a wrong number of arguments, and add the default values of omitted ones."""
    passed = declaration.passed
    refusal = "return dso_refuse_count(function, num_args);"
    if not declaration.defaults:
        yield f"if (num_args != {len(passed)}) {refusal}"
        return
    least = required(declaration)
    yield f"dso_any given[{len(passed)}];"
    yield f"if (num_args != {len(passed)}) {{"
    yield f"  if (num_args < {least} || num_args > {len(passed)}) {refusal}"
    yield "  for (int32_t i = 0; i < num_args; i++) given[i] = args[i];"
    for k in range(least, len(passed)):
        value = _default(declaration.defaults[passed[k].name])
        yield f"  if (num_args <= {k}) given[{k}] = {value};"
    yield "  args = given;"
    yield "}"


def required(declaration: Declaration) -> int:
    """Return the number of arguments that callers must pass."""
    return sum(p.name not in declaration.defaults for p in declaration.passed)


def _default(value: Any) -> str:
    if value is None:
        return "dso_none()"
    if isinstance(value, bool):
        return f"dso_bool({int(value)})"
    if isinstance(value, int) and -(2**63) <= value < 2**64:
        if value > 2**63 - 1:
            return f"dso_unsigned({value}ull)"
        return f"dso_int({value})" if value > -(2**63) else "dso_int(INT64_MIN)"
    if isinstance(value, (int, float)):
        return f"dso_float({_float(float(value))})"
    return f"dso_string({c_string(value)})"


def _float(value: float) -> str:
    special = {"nan": '__builtin_nan("")', "inf": "__builtin_inf()", "-inf": "-__builtin_inf()"}
    return special.get(repr(value)) or value.hex()


def take_lines(declaration: Declaration, scope: Scope) -> Iterator[str]:
    """Read the arguments; then compare extents, which may be later arguments; then copy text."""
    out = declaration.out
    read = [(i, p.code) for i, p in enumerate(declaration.parameters) if p.name not in out]
    arguments = [(i, k, code) for k, (i, code) in enumerate(read)]
    for i, k, code in arguments:
        kind = kind_of(code, scope)
        if kind.take != "strings":
            given = ", ".join(["function", "args", str(k), *kind.options, f"&a{i}"])
            yield f"if (dso_take_{kind.take}({given})) return -1;"
    for i, k, code in arguments:
        base, extents = split_extents(code)
        values = [extent_text(x, declaration.parameters, "a") for x in extents if x]
        if base == "strs":
            least = values[0] if values else "-1"
            yield f"if (dso_take_strings(function, args, {k}, {least}, &a{i})) return -1;"
        elif extents or (struct_of(code) and base[0] in "*&"):
            what = "rows" if len(values) < len(extents) else "extents"
            if is_pairs(code):
                yield f"if (dso_is_complex(&args[{k}])) {{"
                if values[1:]:
                    yield from _check_lines(what, k, 1, values[:-1])
                yield "} else"
            yield from _check_lines(what, k, item_size(code, scope), values)


def _check_lines(what: str, k: int, size: int, values: list[str]) -> Iterator[str]:
    """Compare the extents of an argument: one statement of C."""
    given = f"function, args, {k}, {size}"
    if not values:
        yield f"if (dso_check_{what}({given}, NULL, 0)) return -1;"
        return
    yield "{"
    yield f"  const int64_t extents[] = {{{', '.join(values)}}};"
    yield f"  if (dso_check_{what}({given}, extents, {len(values)})) return -1;"
    yield "}"


def extent_text(extent: str, parameters: Sequence[Parameter], local: str, cast: str = "") -> str:
    """Return an extent as C text: a number, or the variable of the parameter of this name."""
    if extent.isdigit():
        return extent
    (index,) = (i for i, p in enumerate(parameters) if p.name == extent)
    is_unsigned = parameters[index].code in (*UNSIGNED, "bool")
    return f"dso_unsigned_extent({local}{index})" if is_unsigned else f"{cast}{local}{index}"


def passed_values(index: int, declaration: Declaration, scope: Scope) -> str:
    """Return the arguments of the call of the declared function."""
    values = []
    for i, parameter in enumerate(declaration.parameters):
        if parameter.name in declaration.out:
            values.append(f"&a{i}")
            continue
        kind = kind_of(parameter.code, scope)
        if parameter.code == "fn":
            is_kept = declaration.kept.get(parameter.name, "call") != "call"
            own = f"a{i} ? (dso_code)dso_trampoline_{index}_{i} : (dso_code)0"
            values.append(f"k{i}" if is_kept else own)
        else:
            values.append(f"a{i}" if kind.local == kind.c_type else f"({kind.c_type})a{i}")
    return ", ".join(values)


def parameter_types(declaration: Declaration, scope: Scope) -> str:
    """Return the parameters of the declared function, by their ABI."""
    types = [
        "void *" if p.name in declaration.out else kind_of(p.code, scope).c_type
        for p in declaration.parameters
    ]
    return ", ".join(types) or "void"
