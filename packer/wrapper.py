"""Function declarations: from a C function type to an exported safe-call wrapper.

A declaration is a C function type without the name, ``void(const float *x, int64_t n)``. From it
come the facts that travel with the function (``__packer_fn_<name>``), the redeclaration that
makes the user's compiler check it, the LLVM types it stands for, and its wrapper in ``glue.c``.
What a wrapper does at run time is written in C, in ``templates/glue.h``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from runtime.error import ExportError

if TYPE_CHECKING:
    from pycparser import c_ast

# Every C spelling of a type, by its code in the facts; words in any order, LP64 widths.
_SPELLINGS = {
    "i8": "signed char | int8_t",
    "i16": "short | short int | signed short | signed short int | int16_t",
    "i32": "int | signed | signed int | int32_t",
    "i64": "long | long int | signed long | signed long int | long long | long long int"
    " | signed long long | signed long long int | int64_t | ptrdiff_t | intptr_t",
    "u8": "unsigned char | uint8_t",
    "u16": "unsigned short | unsigned short int | uint16_t",
    "u32": "unsigned | unsigned int | uint32_t",
    "u64": "unsigned long | unsigned long int | unsigned long long | unsigned long long int"
    " | uint64_t | size_t | uintptr_t",
    "bool": "bool | _Bool",
    "f32": "float",
    "f64": "double",
    "char": "char",
    "void": "void",
    "tensor": "DLTensor",
}
_CODES = {
    tuple(sorted(spelling.split())): code
    for code, spellings in _SPELLINGS.items()
    for spelling in spellings.split(" | ")
}
_TYPEDEFS = [word for (word, *more) in _CODES if not more and re.search(r"_t$|^bool|^DL", word)]
_C_WORDS = {word for words in _CODES for word in words} | {"const", "volatile", "restrict"}

# In user code no header may be needed, so stdint's names are written as the compiler's macros.
_BUILTIN_TYPES = {
    **{name: f"__{name[:-2].upper()}_TYPE__" for name in _TYPEDEFS if name.endswith("_t")},
    "_Bool": "bool",
}

_SIGNED = ("i8", "i16", "i32", "i64")
_UNSIGNED = ("u8", "u16", "u32", "u64")
_GLUE_TYPES = {
    **{code: f"int{code[1:]}_t" for code in _SIGNED},
    **{code: f"uint{code[1:]}_t" for code in _UNSIGNED},
    "bool": "uint8_t",
    "f32": "float",
    "f64": "double",
    "void": "void",
    "str": "const char *",
    "tensor": "DLTensor *",
}
_DTYPES = {
    **{code: f"DSO_DT_INT, {code[1:]}" for code in _SIGNED},
    **{code: f"DSO_DT_UINT, {code[1:]}" for code in _UNSIGNED},
    "bool": "DSO_DT_BOOL, 8",
    "f32": "DSO_DT_FLOAT, 32",
    "f64": "DSO_DT_FLOAT, 64",
    "void": "DSO_DT_ANY, 8",
}
# LLVM types that one code may be lowered to. Clang passes bool as i1 zeroext, others as i8.
_IR_TYPES = {
    **{code: ("i" + code[1:],) for code in (*_SIGNED, *_UNSIGNED)},
    "bool": ("i1", "i8"),
    "f32": ("float",),
    "f64": ("double",),
    "void": ("void",),
}

# The assembler takes a leading "$" for a number and drops ".L" names from the object.
_NAME = re.compile(r"(?!\.L)(?:[A-Za-z_]|\.(?=.))[A-Za-z0-9_.$]*", re.ASCII)
_OWN_NAMES = ("_library_bin", "_library_ctx")
_OWN_PREFIXES = ("_metadata_", "_doc_", "__tvm_", "__TVM", "TVMFFI", "__packer_")
_LIBC_NAMES = frozenset(
    "calloc free memchr memcmp memcpy memmove memset strlen vsnprintf".split()
)  # what glue.h, and the compiler on its own, calls


@dataclass(frozen=True, slots=True)
class FunctionDeclaration:
    """What a user may give in place of a plain string, to say more about a function.

    Parameters
    ----------
    declaration : str
        The C function type without the name: ``"int64_t(const float *x, int64_t n)"``.
    doc : str
        The docstring of the loaded function.
    gil : str
        ``"release"`` (others may run during a call) or ``"keep"``.
    """

    declaration: str
    _: object = None
    doc: str = ""
    gil: str = "release"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its name, its C type (``const float *``) and its code (``&f32``)."""

    name: str
    type_text: str
    code: str


@dataclass(frozen=True, slots=True)
class Declaration:
    """One declared function.

    Attributes
    ----------
    text : str
        The C function type as the user wrote it, white space normalised; empty if packed_c.
    result, result_text : str
        The code and the C type of the result.
    abi : str
        ``"safe_call"`` (a wrapper is made) or ``"packed_c"`` (the function is one already).
    """

    name: str
    text: str = ""
    parameters: tuple[Parameter, ...] = ()
    result: str = "void"
    result_text: str = "void"
    doc: str = ""
    gil: str = "release"
    abi: str = "safe_call"

    @property
    def prototype(self) -> str:
        """The C declaration with the name in its place, as messages show it."""
        head, _, rest = self.text.partition("(")
        return _joined(head.rstrip(), f"{self.name}({rest}")


@dataclass(frozen=True, slots=True)
class IRType:
    """An LLVM function type; every place lists the types that are as good as another."""

    result: tuple[str, ...]
    parameters: tuple[tuple[str, ...], ...]


def parse_functions(
    functions: Mapping[str, str | FunctionDeclaration] | Sequence[str] | None,
    *,
    module: str,
    entry: str | None = None,
) -> tuple[Declaration, ...]:
    """Read what a user says about the functions of one module.

    Parameters
    ----------
    functions : mapping, sequence of str, or None
        Names and their declarations; or names alone, of functions that already are packed C.
    module : str
        The module, for messages.
    entry : str or None
        The entry function; the only one that may be called ``main``.

    Raises
    ------
    ExportError
        A name or a declaration cannot be exported; says which function and parameter, and why.
    """
    if functions is None:
        return ()
    if isinstance(functions, Mapping):
        return tuple(
            _Reader(module, name, entry).declaration(given) for name, given in functions.items()
        )
    if isinstance(functions, (str, bytes)) or not isinstance(functions, Sequence):
        raise ExportError(
            f"{module}: functions, expected a mapping of names to declarations or a list of names,"
            f" found {functions!r}",
            module=module,
        )
    declarations = tuple(_Reader(module, name, entry).packed() for name in functions)
    _check_distinct(declarations, module)
    return declarations


def ir_type(declaration: Declaration) -> IRType:
    """Return the LLVM function type that a declaration stands for.

    Examples
    --------
    >>> (scale,) = parse_functions({"scale": "bool(float *x, int n)"}, module="llvm")
    >>> ir_type(scale)
    IRType(result=('i1', 'i8'), parameters=(('ptr',), ('i32',)))
    """
    return IRType(
        _IR_TYPES.get(declaration.result, ("ptr",)),
        tuple(_IR_TYPES.get(parameter.code, ("ptr",)) for parameter in declaration.parameters),
    )


def facts(declaration: Declaration) -> str:
    """Return the text of ``__packer_fn_<name>``: ``key value`` lines, the doc last."""
    lines = ["packer-function 1", f"abi {declaration.abi}", f"gil {declaration.gil}"]
    if declaration.abi == "safe_call":
        codes = " ".join(f"{p.name}:{p.code}" for p in declaration.parameters)
        lines += [f"type {declaration.text}", f"params {codes}".rstrip()]
        lines += [f"result {declaration.result}"]
    if declaration.doc:
        lines += [f"doc {declaration.doc}"]
    return "\n".join(lines) + "\n"


def redeclarations(declarations: Sequence[Declaration], language: str) -> str:
    """Return the C text to append to a user's source, so that its compiler checks them.

    Parameters
    ----------
    declarations : sequence of Declaration
        The functions of that source; those that are packed C already are left out.
    language : str
        ``"c"`` or ``"cc"``.

    Raises
    ------
    ExportError
        A name is none in C.
    """
    lines = ["", "", '#line 1 "<function declarations>"']
    lines += ['extern "C" {'] if language == "cc" else []
    lines += [_redeclaration(d, language) for d in declarations if d.abi == "safe_call"]
    lines += ["}"] if language == "cc" else []
    return "\n".join(lines) + "\n"


def glue_source(declarations: Sequence[Declaration], entry: str | None = None) -> str:
    """Return the text of glue.c: the wrappers, facts and entry of one library.

    Parameters
    ----------
    declarations : sequence of Declaration
        All declared functions, of all modules that merge into the library.
    entry : str or None
        The function that a call of the library itself runs.

    Raises
    ------
    ExportError
        A function is declared twice, or the entry is not declared.
    """
    _check_distinct(declarations, None)
    lines = list(_HEADER)
    for index, declaration in enumerate(declarations):
        lines += ["", f"/* {declaration.name} */"]
        lines += _data_lines(f"dso_fact_{index}", f"__packer_fn_{declaration.name}", declaration)
        if declaration.abi == "safe_call":
            lines += _wrapper_lines(index, declaration)
    if entry is not None:
        lines += ["", *_entry_lines(declarations, entry)]
    return "\n".join([*lines, *_FOOTER]) + "\n"
