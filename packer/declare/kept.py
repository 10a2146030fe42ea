"""Kept callbacks: the C functions by which C code calls Functions after the call that passed them.

`callbacks` has the functions of callbacks that end with the call, and templates/glue_kept.h the
common code of both.
"""

from __future__ import annotations

from collections.abc import Iterator

from .c_text import c_string, variable
from .callbacks import NO_RESULT, argument_lines, places_of, result_kind, returned_lines, take_lines
from .code import Scope, kind_of
from .declaration import Callback, Declaration, joined

CALL = "call"
FOREVER = "forever"


def is_kept(declaration: Declaration, parameter: str) -> bool:
    """Return True if C code keeps what is passed for a parameter."""
    return declaration.kept.get(parameter, CALL) != CALL


def kept_lines(index: int, declaration: Declaration, scope: Scope) -> Iterator[str]:
    """The functions of one declared function's kept callbacks."""
    for place, callback in places_of(declaration):
        if is_kept(declaration, callback.parameter):
            yield from _pool(index, f"{index}_{place}", declaration, callback, scope)


def keep_lines(index: int, declaration: Declaration) -> Iterator[str]:
    """Give each kept callback its address, in the wrapper before the call."""
    for place, callback in places_of(declaration):
        if is_kept(declaration, callback.parameter):
            yield f"dso_code k{place};"
            name = f"{index}_{place}"
            given = f"&dso_pool_{name}, dso_thunks_{name}, a{place}, &k{place}"
            yield f"if (dso_keep({given})) return -1;"


def _pool(
    index: int, name: str, declaration: Declaration, callback: Callback, scope: Scope
) -> Iterator[str]:
    result = result_kind(callback, scope)
    types = [kind_of(p.code, scope).c_type for p in callback.parameters]
    named = [joined(c_type, f"p{i}") for i, c_type in enumerate(types)]
    slot = ", ".join([*named, "int32_t slot"])
    parameter = c_string(callback.parameter)
    start = f"&dso_function_{index}, {parameter}, {{NULL}}, 0, 0"
    yield f"static dso_pool dso_pool_{name} = {{{start}}};"
    yield from returned_lines(name, declaration, callback)
    yield f"DSO_COLD static {joined(result.c_type, f'dso_trampoline_{name}')}({slot}) {{"
    yield from (f"  {line}" for line in _body(name, callback, scope))
    yield "}"
    yield "#undef DSO_THUNK"
    passed = ", ".join([*(f"p{i}" for i in range(len(types))), "n"])
    head = joined(result.c_type, f"dso_thunk_{name}_##n")
    call = f"{'' if callback.result == 'void' else 'return '}dso_trampoline_{name}({passed});"
    yield f"#define DSO_THUNK(n) static {head}({', '.join(named) or 'void'}) {{ {call} }}"
    yield "#pragma GCC push_options"
    yield '#pragma GCC optimize("O0")'  # of GCC: compiled in half the time
    yield "DSO_EACH_THUNK(DSO_THUNK)"
    yield "#pragma GCC pop_options"
    yield "#undef DSO_THUNK"
    yield f"#define DSO_THUNK(n) (dso_code)dso_thunk_{name}_##n,"
    yield f"static const dso_code dso_thunks_{name}[] = {{DSO_EACH_THUNK(DSO_THUNK)}};"


def _body(name: str, callback: Callback, scope: Scope) -> Iterator[str]:
    """The statements of the function that calls the Function of one slot."""
    result, count = result_kind(callback, scope), len(callback.parameters)
    has_result = callback.result not in NO_RESULT
    failure = {"void": "", "status": " -1"}.get(callback.result, " r")
    yield f"dso_object *function = dso_hold_kept(&dso_pool_{name}, slot);"
    yield f"dso_any args[{count or 1}], result = dso_none();"
    yield "int status = 0;"
    if has_result:
        yield from variable(result.c_type, "r")
    yield f"if (!function) return{failure};"
    yield "__builtin_memset(args, 0, sizeof args);"
    yield from argument_lines(callback, scope)
    yield f"if (dso_call_kept(function, args, {count}, status, &result)) return{failure};"
    if has_result:
        yield from take_lines(name, result, f"dso_fail_kept(&dso_pool_{name})")
    yield "dso_release(&result);"
    yield {"void": "return;", "status": "return 0;"}.get(callback.result, "return r;")
