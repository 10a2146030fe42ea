"""The inline function of one declaration: C types outside, safe-call values inside."""

from __future__ import annotations

import json
from typing import NamedTuple

from ...declare.code import is_pointers
from ...declare.facts import Facts
from .names import Names, comment


class Scope(NamedTuple):
    """The prefix of the header's names, and the handles that it declares."""

    prefix: str
    handles: frozenset[str]


class Result(NamedTuple):
    """How a result is stored: the type of `*result`, the conversion and its variable."""

    c_type: str
    convert: str
    local: str


_INTEGERS = {f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)}
_INTEGERS |= {f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32)} | {"char": "char"}
_FLOATS = {"f32": "float", "f64": "double", "f16": "float", "bf16": "float"}
_ARGUMENTS = {
    **{code: (c_type, "dso_int({})") for code, c_type in _INTEGERS.items()},
    **{code: (c_type, "dso_float((double){})") for code, c_type in _FLOATS.items()},
    "u64": ("uint64_t", "dso_typed_unsigned({})"),
    "bool": ("bool", "dso_bool({})"),
    "str": ("const char *", "dso_typed_string({})"),
    "tensor": ("DLTensor *", "dso_typed_tensor({})"),
    "fn": ("dso_function *", "dso_typed_function({})"),
    "*void": ("void *", "dso_typed_pointer({})"),
    "&void": ("const void *", "dso_typed_pointer({})"),
}
_RESULTS = {
    **{code: Result(c_type, "int", "int64_t") for code, c_type in _INTEGERS.items()},
    **{code: Result(c_type, "float", "double") for code, c_type in _FLOATS.items()},
    "u64": Result("uint64_t", "int", "int64_t"),
    "bool": Result("bool", "int", "int64_t"),
    "*void": Result("void *", "address", "void *"),
    "&void": Result("const void *", "address", "void *"),
}


def function_text(facts: Facts, name: str, c_name: str, index: int, scope: Scope) -> str:
    """Return the inline function that calls the function `index` of the library."""
    names = Names("self", "args", "value", "local", "result")
    params, args = [f"const {scope.prefix} *self"], []
    for parameter, code in facts.params:
        c_type, value = _argument(code, scope)
        local = names.add(parameter)
        params.append(_declare(c_type, local))
        args.append(value.format(local))
    results = [*([facts.result] if facts.result not in ("void", "status") else [])]
    results += [code for _, code in facts.out]
    result = _result(results, scope)
    if results:
        params.append(_declare(f"{result.c_type} *".replace("* *", "**"), "result"))
    body = [f"  const dso_any args[] = {{{', '.join(args)}}};"] if args else []
    call = f"self->functions[{index}], %s, {'args' if args else 'NULL'}, {len(args)}"
    if not results:
        body.append(f"  return dso_function_call({call % 'NULL'});")
    elif not result.convert:
        body.append(f"  return dso_function_call({call % 'result'});")
    else:
        body += [
            "  dso_any value;",
            f"  {_declare(result.local, 'local')};",
            f"  if (dso_function_call({call % '&value'})) return -1;",
            f"  if (dso_typed_{result.convert}(&value, &local)) return -1;",
            f"  *result = ({result.c_type})local;",
            "  return 0;",
        ]
    head = f"static inline int {c_name}({', '.join(params)}) {{"
    return "\n".join(
        (_doc(facts, name, is_owned=bool(results) and not result.convert), head, *body, "}")
    )


def _argument(code: str, scope: Scope) -> tuple[str, str]:
    """Return the type of a parameter, and the expression of its value."""
    if code in _ARGUMENTS:
        return _ARGUMENTS[code]
    if code.startswith(("@", "*{", "&{")):
        const = "const " if code[0] == "&" else ""
        return f"{const}{_pointee(code, scope)} *", "dso_typed_pointer({})"
    if is_pointers(code):
        return "void *", "dso_typed_pointer({})"
    if code.startswith(("*", "&")):
        return "DLTensor *", "dso_typed_tensor({})"
    return "dso_any", "{}"


def _result(codes: list[str], scope: Scope) -> Result:
    """Return how the result is stored: several are one Array, which the caller releases."""
    if len(codes) == 1:
        if codes[0] in _RESULTS:
            return _RESULTS[codes[0]]
        if codes[0].startswith("*fn("):
            return _RESULTS["*void"]
        if codes[0].startswith(("@", "*{", "&{")):
            return Result(f"{_pointee(codes[0], scope)} *", "address", "void *")
    return Result("dso_any", "", "")


def _pointee(code: str, scope: Scope) -> str:
    """Return the type of a handle, or of a struct that is one; void for other codes."""
    name = code.strip("@*&{}")
    return f"{scope.prefix}_{name}" if name in scope.handles else "void"


def _declare(c_type: str, name: str) -> str:
    return f"{c_type}{name}" if c_type.endswith("*") else f"{c_type} {name}"


def _doc(facts: Facts, name: str, *, is_owned: bool) -> str:
    """The comment: the documentation, the declaration, and what the caller must know."""
    lines = [comment(line) for line in facts.doc.splitlines()]
    lines += [""] * bool(lines) + [comment(facts.signature(name) or name)]
    if is_owned:
        lines.append("The result is owned: dso_release(result).")
    for parameter, value in facts.defaults.items():
        lines.append(comment(f"The default of {parameter} is {json.dumps(value)}."))
    if facts.free:
        lines.append(comment(f"The handle is released by {facts.free}."))
    return "/* " + "\n".join([lines[0], *(f" * {line}".rstrip() for line in lines[1:])]) + " */"
