"""Wrappers: the C text that makes a declared function a safe-call function.

`arguments`, `results`, `callbacks` and `structs` write the parts of a wrapper. The common code of
all wrappers is C, in ``templates/glue*.h``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .arguments import (
    count_lines,
    local_lines,
    parameter_types,
    passed_values,
    required,
    take_lines,
)
from .c_text import c_string
from .callbacks import trampoline_lines
from .code import Scope, kind_of, split_extents, struct_of
from .declaration import Declaration, joined
from .kept import keep_lines, kept_lines
from .results import INITIALIZER, call_lines, frees, results_of


def declared_lines(
    index: int, declaration: Declaration, scope: Scope, free_symbol: str
) -> Iterator[str]:
    """The data of one function, and private names for the functions that the wrapper calls."""
    passed = declaration.passed
    if passed:
        yield f"static const dso_parameter dso_parameters_{index}[] = {{"
        for parameter in passed:
            yield f"  {{{c_string(parameter.name)}, {c_string(parameter.type_text)}}},"
        yield "};"
    parameters = f"dso_parameters_{index}" if passed else "NULL"
    yield f"static const dso_function dso_function_{index} = {{"
    yield f"  {c_string(declaration.name)}, {c_string(declaration.prototype)},"
    yield f"  {parameters}, {len(passed)}, {required(declaration)}, DSO_ARGUMENT, 0, NULL"
    yield "};"
    symbol = c_string(declaration.symbol or declaration.name)
    if not declaration.is_external:
        yield f"DSO_OWN({symbol});"
    yield (
        f"extern {joined(kind_of(declaration.result, scope).c_type, f'dso_target_{index}')}"
        f"({parameter_types(declaration, scope)}) DSO_SYMBOL({symbol});"
    )
    if frees(declaration):
        yield f"extern void dso_free_{index}(void *) DSO_SYMBOL({c_string(free_symbol)});"
    yield from trampoline_lines(index, declaration, scope)
    yield from kept_lines(index, declaration, scope)


def body_lines(
    index: int, declaration: Declaration, scope: Scope, checks: Sequence[str]
) -> Iterator[str]:
    """The statements of one wrapper; `checks` set the status after the call."""
    yield f"const dso_function *function = &dso_function_{index};"
    yield from local_lines(declaration, scope)
    yield "(void)handle, (void)args, (void)result;"
    if declaration.name.startswith(INITIALIZER):
        yield "dso_spread(&args, &num_args);"
    yield from count_lines(declaration)
    yield from take_lines(declaration, scope)
    yield from keep_lines(index, declaration)
    call = f"dso_target_{index}({passed_values(index, declaration, scope)})"
    yield from call_lines(index, declaration, scope, call, checks)


def initializer_lines(index: int) -> Iterator[str]:
    """The statements of the wrapper of an initialiser: constants count once it has succeeded."""
    yield f"int status = dso_initialize_{index}(handle, args, num_args, result);"
    yield f"if (!status) __atomic_store_n(&dso_has_constants_{index}, 1, __ATOMIC_RELEASE);"
    yield "return status;"


def guarded_lines(place: int, body: Iterator[str]) -> Iterator[str]:
    """The statements of a wrapper whose function needs the constants of an initialiser."""
    first, *others = body
    yield first
    yield f"if (!__atomic_load_n(&dso_has_constants_{place}, __ATOMIC_ACQUIRE))"
    yield "  return dso_refuse_constants(function);"
    yield from others


def headers_of(declaration: Declaration, scope: Scope) -> set[str]:
    """Return the files of the glue that a declaration needs besides the files of every wrapper."""
    codes = [p.code for p in declaration.passed] + [r.code for r in results_of(declaration)]
    for callback in declaration.callbacks:
        codes += [p.code for p in callback.parameters] + [callback.result]
    for struct in scope.names.keys() & scope.structs.keys():
        codes += [field.code for field in scope.structs[struct].fields]
    headers = {kind_of(code, scope).header for code in codes if code != "void"}
    if any(split_extents(code)[1] for code in codes) or any(struct_of(code) for code in codes):
        headers.add("glue_buffer.h")
    if len(results_of(declaration)) > 1 or declaration.defaults:
        headers.add("glue_array.h")
    if declaration.errno:
        headers.add("glue_errno.h")
    return headers - {"glue_take.h"}


def narrow_types(declaration: Declaration, scope: Scope) -> set[str]:
    """Return the codes of half-precision numbers that a declaration's arguments have."""
    codes = {p.code for p in declaration.passed} | {c.result for c in declaration.callbacks}
    for struct in scope.names.keys() & scope.structs.keys():
        codes |= {split_extents(field.code)[0] for field in scope.structs[struct].fields}
    return codes & {"f16", "bf16"}
