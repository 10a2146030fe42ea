"""Callbacks: the C functions that declared functions call, and that call Functions.

A parameter that is a function pointer has one trampoline, whatever Function is passed: it finds
the Function in a thread-local variable, which the wrapper sets for the time of the call.
"""

from __future__ import annotations

from collections.abc import Iterator

from .arguments import extent_text
from .c_text import c_string, variable
from .code import DTYPES, Kind, Scope, item_size, kind_of, split_extents, struct_of
from .declaration import Callback, Declaration, joined

NO_RESULT = ("void", "status")


def _ending(declaration: Declaration) -> list[tuple[int, Callback]]:
    """Return the callbacks that end with the call; `kept` has the others."""
    kept = declaration.kept
    return [
        (place, callback)
        for place, callback in places_of(declaration)
        if kept.get(callback.parameter, "call") == "call"
    ]


def trampoline_lines(index: int, declaration: Declaration, scope: Scope) -> Iterator[str]:
    """The trampolines of one declared function."""
    for place, callback in _ending(declaration):
        yield from _trampoline(index, f"{index}_{place}", declaration, callback, scope)


def has_calling(declaration: Declaration) -> bool:
    """Return True if a call has callbacks that end with it."""
    return bool(_ending(declaration))


def calling_lines(declaration: Declaration) -> Iterator[str]:
    """Declare what the callbacks of one call share, in the wrapper."""
    if has_calling(declaration):
        yield "dso_calling calling = {0, NULL};"


def enter_lines(index: int, declaration: Declaration) -> Iterator[str]:
    """Set the variables that the trampolines read, before the call and in its block."""
    for i, _ in _ending(declaration):
        name = f"{index}_{i}"
        yield f"dso_callback c{i} DSO_CALLBACK = {{"
        yield f"  &calling, a{i}, &dso_pointer_{name}, &dso_callback_{name}, NULL, 0"
        yield "};"
        yield f"dso_enter_callback(&c{i});"


def stray_lines(declaration: Declaration) -> Iterator[str]:
    """Take the status of the callbacks, in the wrapper after the block of the call."""
    if has_calling(declaration):
        yield "status = calling.status;"
        yield "if (!status) status = dso_check_stray(&calling);"


def places_of(declaration: Declaration) -> Iterator[tuple[int, Callback]]:
    """Yield the position of each parameter that is a function pointer, and its type."""
    callbacks = {callback.parameter: callback for callback in declaration.callbacks}
    for i, parameter in enumerate(declaration.parameters):
        if parameter.code == "fn":
            yield i, callbacks[parameter.name]


def _trampoline(
    index: int, name: str, declaration: Declaration, callback: Callback, scope: Scope
) -> Iterator[str]:
    parameter = c_string(callback.parameter)
    yield f"static __thread dso_callback *dso_callback_{name};"
    yield f"static dso_code_pointer dso_pointer_{name} = {{0, &dso_function_{index}, {parameter}}};"
    yield from returned_lines(name, declaration, callback)
    parameters = ", ".join(named_parameters(callback, scope)) or "void"
    head = joined(result_kind(callback, scope).c_type, f"dso_trampoline_{name}")
    yield f"static {head}({parameters}) {{"
    yield f"  const dso_callback *callback = dso_callback_{name};"
    yield f"  dso_calling *calling = dso_calling_of(callback, &dso_pointer_{name});"
    ends = "!calling", "dso_call_back(callback", "calling->status = -1"
    yield from (f"  {line}" for line in body_lines(name, callback, scope, *ends))
    yield "}"


def named_parameters(callback: Callback, scope: Scope) -> list[str]:
    """Return the parameters of a C function that calls a Function."""
    types = [kind_of(parameter.code, scope).c_type for parameter in callback.parameters]
    return [joined(c_type, f"p{i}") for i, c_type in enumerate(types)]


def body_lines(
    name: str, callback: Callback, scope: Scope, is_missing: str, call: str, failure: str
) -> Iterator[str]:
    """The statements that call a Function: `call` begins the call, `failure` follows a bad result.

    The C function returns zero if `is_missing` is true.
    """
    result, count = result_kind(callback, scope), len(callback.parameters)
    has_result = callback.result not in NO_RESULT
    failed = {"void": "", "status": " -1"}.get(callback.result, " r")
    yield f"dso_any args[{count or 1}], result = dso_none();"
    yield "int status = 0;"
    if has_result:
        yield from variable(result.c_type, "r")
    yield f"if ({is_missing}) return{failed};"
    yield "__builtin_memset(args, 0, sizeof args);"
    yield from _argument_lines(callback, scope)
    yield f"if ({call}, args, {count}, status, &result)) return{failed};"
    if has_result:
        yield from _take_lines(name, result, failure)
    yield "dso_release(&result);"
    yield {"void": "return;", "status": "return 0;"}.get(callback.result, "return r;")


def result_kind(callback: Callback, scope: Scope) -> Kind:
    """Return how the result of a callback is passed."""
    # A tensor or text would be released before C code reads it.
    is_pointer = callback.result[0] in "*&" or callback.result == "str"
    return kind_of("@void" if is_pointer else callback.result, scope)


def returned_lines(name: str, declaration: Declaration, callback: Callback) -> Iterator[str]:
    """The description of the result, for messages."""
    yield f"static const dso_parameter dso_returned_{name}[] = {{"
    yield f"  {{{c_string(callback.parameter)}, {c_string(callback.result_text)}}}"
    yield "};"
    texts = f"{c_string(declaration.name)}, {c_string(declaration.prototype)}"
    place = "1, 1, DSO_CALLBACK_RESULT, 0, NULL"
    yield f"DSO_UNUSED static const dso_function dso_returns_{name} = {{"
    yield f"  {texts}, dso_returned_{name}, {place}"
    yield "};"


def _take_lines(name: str, kind: Kind, failure: str) -> Iterator[str]:
    """Read the result of a callback into ``r``; else run the statement `failure`."""
    given = ", ".join([f"&dso_returns_{name}", "&result", "0", *kind.options, "&value"])
    yield from variable(kind.local, "value")
    yield f"if (dso_take_{kind.take}({given})) {failure};"
    yield f"else r = ({kind.c_type})value;" if kind.local != kind.c_type else "else r = value;"


def _argument_lines(callback: Callback, scope: Scope) -> Iterator[str]:
    """Store what C code passes, in ``args``."""
    for i, parameter in enumerate(callback.parameters):
        base, extents = split_extents(parameter.code)
        values = [extent_text(x, callback.parameters, "p", "(int64_t)") for x in extents]
        target = f"&args[{i}], p{i}"
        if base == "strs":
            count = values[0] if values else "0"
            give = f"dso_give_strings(&args[{i}], (const char *const *)p{i}, {count})"
        elif extents:
            size = item_size(base, scope)
            if size != 1:
                values.append(str(size))
            dtype = "DSO_DT_UINT, 8" if struct_of(base) else DTYPES.get(base[1:], "DSO_DT_UINT, 8")
            yield f"int64_t shape{i}[] = {{{', '.join(values)}}};"
            yield f"DLTensor tensor{i};"
            shape = f"&tensor{i}, p{i}, shape{i}, {len(values)}, {dtype}"
            give = f"dso_give_borrowed(&args[{i}], {shape})"
        elif base == "str":
            give = f"dso_give_raw_string({target})"
        elif base[0] in "*&":
            give = f"dso_give_address({target})"
        else:
            give = f"dso_give_{kind_of(base, scope).give}({target})"
        yield f"if (!status) status = {give};"
