"""Wrappers: the C text that makes a declared function a safe-call function.

The common code of all wrappers is C, in ``templates/glue.h``.
"""

from __future__ import annotations

from collections.abc import Iterator

from .declaration import SIGNED, UNSIGNED, Declaration, joined

_GLUE_TYPES = {
    **{code: f"int{code[1:]}_t" for code in SIGNED},
    **{code: f"uint{code[1:]}_t" for code in UNSIGNED},
    "bool": "uint8_t",
    "f32": "float",
    "f64": "double",
    "void": "void",
    "str": "const char *",
    "tensor": "DLTensor *",
    "status": "int",
}
_DTYPES = {
    **{code: f"DSO_DT_INT, {code[1:]}" for code in SIGNED},
    **{code: f"DSO_DT_UINT, {code[1:]}" for code in UNSIGNED},
    "bool": "DSO_DT_BOOL, 8",
    "f32": "DSO_DT_FLOAT, 32",
    "f64": "DSO_DT_FLOAT, 64",
    "void": "DSO_DT_ANY, 8",
}


_INITIALIZER = "__init_"  # of TVM's const_loader


def declared_lines(index: int, declaration: Declaration) -> Iterator[str]:
    """The data of one function, and a private name for the function itself."""
    count = len(declaration.parameters)
    if count:
        yield f"static const dso_parameter dso_parameters_{index}[] = {{"
        for parameter in declaration.parameters:
            yield f"  {{{c_string(parameter.name)}, {c_string(parameter.type_text)}}},"
        yield "};"
    yield f"static const dso_function dso_function_{index} = {{"
    yield f"  {c_string(declaration.name)}, {c_string(declaration.prototype)},"
    yield f"  {f'dso_parameters_{index}' if count else 'NULL'}, {count}"
    yield "};"
    types = ", ".join(_glue_type(p.code) for p in declaration.parameters) or "void"
    yield f"DSO_OWN({c_string(declaration.name)});"
    yield (
        f"extern {joined(_GLUE_TYPES[declaration.result], f'dso_target_{index}')}({types})"
        f" DSO_SYMBOL({c_string(declaration.name)});"
    )


def body_lines(index: int, declaration: Declaration) -> Iterator[str]:
    """The statements of one wrapper."""
    parameters = list(enumerate(declaration.parameters))
    yield f"const dso_function *function = &dso_function_{index};"
    for i, parameter in parameters:
        yield f"{joined(_taken(parameter.code)[0], f'a{i}')} = 0;"
    yield "(void)handle, (void)args, (void)result;"
    if declaration.name.startswith(_INITIALIZER):
        yield "dso_spread(&args, &num_args);"
    yield f"if (num_args != {len(parameters)}) return dso_refuse_count(function, num_args);"
    for i, parameter in parameters:
        _, take, options = _taken(parameter.code)
        given = ", ".join(["function", "args", str(i), *options, f"&a{i}"])
        yield f"if (dso_take_{take}({given})) return -1;"
    values = ", ".join(f"({_glue_type(p.code)})a{i}" for i, p in parameters)
    call = f"dso_target_{index}({values})"
    yield "DSO_TRY"
    yield from _result_lines(declaration, call)
    yield "DSO_CATCH"


def _result_lines(declaration: Declaration, call: str) -> Iterator[str]:
    # TVM's const_loader refuses an initialiser that does not return the int 0.
    none = "dso_give_signed(result, 0)" if declaration.name.startswith(_INITIALIZER) else "0"
    if declaration.result == "void":
        yield f"{call};"
        yield f"return {none};"
    elif declaration.result == "status":
        yield f"return {call} ? -1 : {none};"
    else:
        yield f"return dso_give_{_given(declaration.result)}(result, {call});"


def _taken(code: str) -> tuple[str, str, list[str]]:
    """For a parameter: the type of its local variable, the dso_take_ function, its options."""
    if code in SIGNED:
        return "int64_t", "signed", [f"INT{code[1:]}_MIN", f"INT{code[1:]}_MAX"]
    if code in UNSIGNED:
        return "uint64_t", "unsigned", [f"UINT{code[1:]}_MAX"]
    if code[0] in "*&":
        return "void *", "pointer", [_DTYPES[code[1:]]]
    return {
        "bool": ("uint64_t", "unsigned", ["1"]),
        "f32": ("double", "float", []),
        "f64": ("double", "float", []),
        "str": ("const char *", "string", []),
        "tensor": ("DLTensor *", "tensor", []),
    }[code]


def _given(code: str) -> str:
    """For a result: the dso_give_ function."""
    names = {"bool": "bool", "f32": "float", "f64": "float", "str": "string"}
    return names.get(code) or ("signed" if code in SIGNED else "unsigned")


def _glue_type(code: str) -> str:
    if code[0] in "*&":
        return f"{'const ' if code[0] == '&' else ''}{_GLUE_TYPES[code[1:]]} *"
    return _GLUE_TYPES[code]


def c_string(text: str) -> str:
    """A C string literal: three octal digits end an escape, and "?" may begin a trigraph."""
    escapes = {ord("\n"): "\\n", ord('"'): '\\"', ord("\\"): "\\\\", ord("?"): "\\?"}
    return (
        '"'
        + "".join(
            escapes.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}")
            for byte in text.encode()
        )
        + '"'
    )
