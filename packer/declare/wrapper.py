"""Wrappers: the C text that makes declared functions safe-call functions.

``glue.c`` holds, for each declared function of a library, its facts and its wrapper; what a
wrapper does at run time is written in C, in ``templates/glue.h``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runtime.abi import CHECKSUMS, CONTEXT_SYMBOLS, FACT_PREFIX, FUNCTION_PREFIX, MAIN_NAME

from ..dialect import Dialect
from ..embed.checksums import checksums_of
from .declaration import SIGNED, UNSIGNED, Declaration, joined
from .facts import dump_facts
from .metadata import descriptions

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


def glue_source(
    declarations: Sequence[Declaration],
    entry: str | None = None,
    *,
    dialect: Dialect = "tvm",
    system_lib: bool = False,
    prefix: str = "",
    embedded: Sequence[str] = (),
) -> str:
    """Return the text of glue.c: the wrappers, facts, entry and checksums of one library.

    Parameters
    ----------
    declarations : sequence of Declaration
        All declared functions, of all modules that merge into the library; each name once.
    entry : str or None
        The one of them that a call of the library itself runs.
    dialect : {"tvm", "tvm-ffi"}
        In the latter functions have metadata and docs that tvm_ffi asks for by its own API.
    system_lib : bool
        Whether a constructor registers all of it, for static linking.
    prefix : str
        Stands before every function's name.
    embedded : sequence of str
        The lines of the checksums for what an embedder adds.
    """
    lines = [_HEADER]
    for index, declaration in enumerate(declarations):
        lines += ["", f"/* {declaration.name} */"]
        symbol = FACT_PREFIX + prefix + declaration.name
        lines += _text_lines(f"dso_fact_{index}", symbol, dump_facts(declaration))
        if declaration.abi == "safe_call":
            lines += _wrapper_lines(index, declaration, prefix)
        for kind, text in _descriptions(declaration, dialect).items():
            lines += _description_lines(index, declaration, prefix, kind, text)
        if declaration.name == entry:
            lines += _entry_lines(index, declaration, prefix)
    symbols = glue_symbols(declarations, entry, dialect, prefix)
    texts = {FACT_PREFIX + prefix + d.name: dump_facts(d) for d in declarations}
    if entry is not None:
        texts[prefix + MAIN_NAME] = entry
    listed = checksums_of(symbols.keys() - {prefix + CHECKSUMS}, texts, embedded)
    lines += ["", "/* checksums */", *_text_lines("dso_checksums", prefix + CHECKSUMS, listed)]
    if system_lib:
        lines += _registration_lines(symbols, declarations, prefix)
    return "\n".join([*lines, _FOOTER])


def glue_symbols(
    declarations: Sequence[Declaration],
    entry: str | None = None,
    dialect: Dialect = "tvm",
    prefix: str = "",
) -> dict[str, str]:
    """List what glue.c exports: each symbol, and what stands for it in the text."""
    symbols = {prefix + CHECKSUMS: "dso_checksums"}
    for index, declaration in enumerate(declarations):
        symbols[FACT_PREFIX + prefix + declaration.name] = f"dso_fact_{index}"
        if declaration.abi == "safe_call":
            symbols[FUNCTION_PREFIX + prefix + declaration.name] = f"dso_wrapper_{index}"
        for kind in _descriptions(declaration, dialect):
            symbols[prefix + FUNCTION_PREFIX + kind + declaration.name] = f"dso{kind}{index}"
        if declaration.name == entry:
            symbols[prefix + MAIN_NAME] = "dso_entry_name"
            if declaration.abi == "safe_call" and entry != "main":
                symbols[f"{FUNCTION_PREFIX}{prefix}main"] = "dso_entry"
    return symbols


_HEADER = """\
/* Written by dso-packer: the safe-call wrappers of one library. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O1") /* as quick at run time as -O2, and compiled in 50 ms instead of 66 */
#endif
#include "dso_abi.h"
#include "glue.h"

#ifdef __cplusplus
extern "C" {
#endif

DSO_EXPORT void (*__TVMFFIErrorSetRaisedFromCStr)(const char *kind, const char *message) = 0;"""
_INITIALIZER = "__init_"  # of const_loader
_RAISE = "__TVMFFIErrorSetRaisedFromCStr"
_FOOTER = """
#ifdef __cplusplus
}
#endif
"""
_SAFE_CALL = "(void *handle, const dso_any *args, int32_t num_args, dso_any *result)"


def _wrapper_lines(index: int, declaration: Declaration, prefix: str) -> Iterator[str]:
    """The data of one function, its target under a private name, and the wrapper itself."""
    yield from _function_lines(index, declaration)
    types = ", ".join(_glue_type(p.code) for p in declaration.parameters) or "void"
    yield f"DSO_OWN({_c_string(declaration.name)});"
    yield (
        f"extern {joined(_GLUE_TYPES[declaration.result], f'dso_target_{index}')}({types})"
        f" DSO_SYMBOL({_c_string(declaration.name)});"
    )
    yield from _exported_lines(
        f"dso_wrapper_{index}",
        f"{FUNCTION_PREFIX}{prefix}{declaration.name}",
        _body_lines(index, declaration),
    )


def _function_lines(index: int, declaration: Declaration) -> Iterator[str]:
    count = len(declaration.parameters)
    if count:
        yield f"static const dso_parameter dso_parameters_{index}[] = {{"
        for parameter in declaration.parameters:
            yield f"  {{{_c_string(parameter.name)}, {_c_string(parameter.type_text)}}},"
        yield "};"
    yield f"static const dso_function dso_function_{index} = {{"
    yield f"  {_c_string(declaration.name)}, {_c_string(declaration.prototype)},"
    yield f"  {f'dso_parameters_{index}' if count else 'NULL'}, {count}"
    yield "};"


def _exported_lines(name: str, symbol: str, body: Iterator[str]) -> Iterator[str]:
    """A safe-call function under a symbol that need not be a C name."""
    yield f"DSO_EXPORT int {name}{_SAFE_CALL}"
    yield f"  DSO_SYMBOL({_c_string(symbol)});"
    yield f"int {name}{_SAFE_CALL} {{"
    yield from (f"  {line}" for line in body)
    yield "}"


def _body_lines(index: int, declaration: Declaration) -> Iterator[str]:
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
    yield from _result_lines(declaration, call)


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


def _descriptions(declaration: Declaration, dialect: Dialect) -> dict[str, str]:
    return (
        descriptions(declaration) if dialect == "tvm-ffi" and declaration.abi == "safe_call" else {}
    )


def _description_lines(
    index: int, declaration: Declaration, prefix: str, kind: str, text: str
) -> Iterator[str]:
    """A function that returns text; tvm_ffi puts the prefix first here, not before the name."""
    yield from _exported_lines(
        f"dso{kind}{index}",
        f"{prefix}{FUNCTION_PREFIX}{kind}{declaration.name}",
        iter(
            [
                "(void)handle, (void)args, (void)num_args;",
                f"return dso_give_string(result, {_c_string(text)});",
            ]
        ),
    )


def _entry_lines(index: int, declaration: Declaration, prefix: str) -> Iterator[str]:
    yield from _text_lines("dso_entry_name", prefix + MAIN_NAME, declaration.name)
    if declaration.abi == "safe_call" and declaration.name != "main":
        call = f"return dso_wrapper_{index}(handle, args, num_args, result);"
        yield from _exported_lines("dso_entry", f"{FUNCTION_PREFIX}{prefix}main", iter([call]))


def _registration_lines(
    addresses: dict[str, str], declarations: Sequence[Declaration], prefix: str
) -> Iterator[str]:
    """A constructor that registers functions, facts and entry, and the context symbols there are.

    Nobody knows yet which of those the other objects define: they are asked for weakly.
    """
    yield from ("", "/* system library */")
    addresses = dict(addresses)
    for index, symbol in enumerate(CONTEXT_SYMBOLS):
        if symbol != _RAISE:
            yield f"extern void *dso_context_{index} DSO_SYMBOL({_c_string(symbol)}) DSO_WEAK;"
            addresses[prefix + symbol] = f"&dso_context_{index}"
    addresses[prefix + _RAISE] = f"&{_RAISE}"
    for index, declaration in enumerate(declarations):
        if declaration.abi == "packed_c":
            yield f"extern int dso_packed_{index}(void) DSO_SYMBOL({_c_string(declaration.name)});"
            addresses[prefix + declaration.name] = f"dso_packed_{index}"
    yield "DSO_CONSTRUCTOR static void dso_register(void) {"
    yield from (f"  dso_add({_c_string(n)}, (void *){a});" for n, a in addresses.items())
    yield "}"


def _text_lines(name: str, symbol: str, text: str) -> Iterator[str]:
    """A constant char array; its size as a symbol includes the NUL."""
    yield f"DSO_EXPORT extern const char {name}[] DSO_SYMBOL({_c_string(symbol)});"
    yield f"const char {name}[] ="
    yield from (f"  {_c_string(line)}" for line in text.splitlines(keepends=True))
    yield "  ;"


def _c_string(text: str) -> str:
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
