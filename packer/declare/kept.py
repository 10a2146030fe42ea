"""Kept callbacks: the C functions by which C code calls Functions after the call that passed them.

`callbacks` has the functions of callbacks that end with the call, and templates/glue_kept.h the
common code of both.
"""

from __future__ import annotations

from collections.abc import Iterator

from .c_text import c_string
from .callbacks import body_lines, named_parameters, places_of, result_kind, returned_lines
from .code import Scope
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
    c_type, named = result_kind(callback, scope).c_type, named_parameters(callback, scope)
    parameter = c_string(callback.parameter)
    start = f"&dso_function_{index}, {parameter}, {{NULL}}, 0, 0"
    yield f"static dso_pool dso_pool_{name} = {{{start}}};"
    yield from returned_lines(name, declaration, callback)
    slot = ", ".join([*named, "int32_t slot"])
    yield f"DSO_COLD static {joined(c_type, f'dso_trampoline_{name}')}({slot}) {{"
    yield f"  dso_object *function = dso_hold_kept(&dso_pool_{name}, slot);"
    ends = "!function", "dso_call_kept(function", f"dso_fail_kept(&dso_pool_{name})"
    yield from (f"  {line}" for line in body_lines(name, callback, scope, *ends))
    yield "}"
    yield "#undef DSO_THUNK"
    passed = ", ".join([*(f"p{i}" for i in range(len(named))), "n"])
    head = joined(c_type, f"dso_thunk_{name}_##n")
    call = f"{'' if callback.result == 'void' else 'return '}dso_trampoline_{name}({passed});"
    yield f"#define DSO_THUNK(n) static {head}({', '.join(named) or 'void'}) {{ {call} }}"
    yield "#pragma GCC push_options"
    yield '#pragma GCC optimize("O0")'  # of GCC: compiled in half the time
    yield "DSO_EACH_THUNK(DSO_THUNK)"
    yield "#pragma GCC pop_options"
    yield "#undef DSO_THUNK"
    yield f"#define DSO_THUNK(n) (dso_code)dso_thunk_{name}_##n,"
    yield f"static const dso_code dso_thunks_{name}[] = {{DSO_EACH_THUNK(DSO_THUNK)}};"
