"""Declarations: the type and properties of a function that a library exports.

`c_type` parses a declaration. From it are made the facts in the library (`facts`), the
redeclaration that the user's compiler checks (`redeclaration`), the wrapper in ``glue.c``
(`wrapper`), and the LLVM types (`modules.llvm`).

A code names the size, signedness and kind of a C type (docs/format.md, "Codes of types"):

    i8 ... i64, u8 ... u64, bool, f16, bf16, f32, f64, c64, c128    numbers
    char           plain char, until the target is known: i8 or u8
    *T &T          a pointer to T and to const T; T is a number, char, void or {struct}
    *T[4][n]       the same with extents: numbers or names of parameters; *T[][n]: whole rows
    str strs       const char *, and an array of those (char **)
    @kind          a pointer to an incomplete struct, or to one that is used as such: a handle
    {struct}       a struct by value
    fn             a function pointer
    tensor status void any
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from .c.types import Function

SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
EVERY: Final = "*"  # in place of a name: every other function that the source defines
AUTO: Final = "auto"  # in place of a declaration: the source or the header has it


class FunctionDeclaration(NamedTuple):
    """A declaration with a doc and options, in place of a plain string.

    Parameters
    ----------
    declaration : str
        The C function type without the name: ``"int64_t(const float *x, int64_t n)"``. Empty or
        ``"auto"`` if the source or the header declares the function.
    doc : str
        The docstring of the loaded function.
    gil : str
        ``"release"`` (others may run during a call) or ``"keep"``.
    out : sequence of str
        Parameters that callers do not pass: the function writes them through a pointer, and they
        are returned after its result.
    errno : bool
        True if a result of -1 or NULL raises the OSError of errno.
    free : str
        The function that releases a result: a handle with its last reference, text after it was
        copied.
    symbol : str
        The C function to call, if it has another name.
    lifetime : str
        The parameter whose handle is kept alive by the handle that the function returns.
    defaults : mapping of str to object
        The values of parameters that callers omit.
    kept : str or mapping of str to str
        How long C code keeps the callbacks and the user data (``void *``) of this function: the
        parameter whose handle they belong to, ``"forever"``, or ``"call"`` for user data of the
        call alone. Text is for all of them, and ``"kept"`` chooses: the first handle, or for ever.
    """

    declaration: str = ""
    doc: str = ""
    gil: str = "release"
    out: tuple[str, ...] = ()
    errno: bool = False
    free: str = ""
    symbol: str = ""
    lifetime: str = ""
    defaults: Mapping[str, Any] = {}
    kept: str | Mapping[str, str] = ""


class Parameter(NamedTuple):
    """One parameter: its name, its C type (``const float *``) and its code (``&f32``)."""

    name: str
    type_text: str
    code: str


class Field(NamedTuple):
    """One field of a struct: its name, its code (``f64``, ``f32[4]``, ``{point}``), its offset."""

    name: str
    code: str
    offset: int


class Struct(NamedTuple):
    """The layout of a struct."""

    name: str  # its tag, or the name of the typedef if it has none; a code writes it in braces
    spelling: str  # the type in C: ``struct point``, or the typedef's name
    size: int  # in bytes
    alignment: int  # in bytes
    fields: tuple[Field, ...]


class Value(NamedTuple):
    """A struct or union that is passed by value as its bytes: it has unions or bit-fields."""

    name: str  # as in `Struct`; a code writes ``={name}``
    size: int  # in bytes
    definition: str  # the C text that defines it, without a name


class Member(NamedTuple):
    """One member of a struct or union that is read in place (docs/format.md, "Structs")."""

    name: str
    code: str  # ``f64``, ``i32[4]``, ``*{node}``
    offset: int  # in bytes; of a bit-field, that of the integer that has its bits
    bit: int = 0  # the lowest bit of a bit-field
    width: int = 0  # the bits of a bit-field; 0 for other members


class Aggregate(NamedTuple):
    """A struct or union that is read and written in place."""

    kind: str  # ``struct`` or ``union``; ``opaque`` without a layout
    name: str  # as in `Struct`; ``outer.member`` for one without a name
    size: int  # in bytes
    alignment: int  # in bytes
    members: tuple[Member, ...]
    conditions: tuple[str, ...]  # the constant expressions that the compiler confirms
    aliases: tuple[str, ...] = ()  # typedefs of a type that has a tag


class Callback(NamedTuple):
    """The type of the function that a parameter points to."""

    parameter: str  # the name of the parameter of the declared function
    parameters: tuple[Parameter, ...]  # what the C code passes to the callback
    result: str  # the code of what the callback returns
    result_text: str  # its C type


class Check(NamedTuple):
    """The C text by which the compiler of the user's source checks a declaration."""

    function: Function | None = None  # the function's type; None if it has no C text
    # Constant expressions that are true if sizes and offsets were computed right.
    conditions: tuple[str, ...] = ()
    # The function or macro that ``__packer_call_<name>`` calls; empty if the wrapper calls the
    # function itself.
    calls: str = ""
    # The expression of that function in place of a call, in C; ``packer_0`` is its parameter.
    expression: str = ""


class Declaration(NamedTuple):
    """One declared function."""

    name: str
    # The C function type as the user wrote it, white space normalised; empty if packed_c.
    text: str = ""
    parameters: tuple[Parameter, ...] = ()  # all parameters of the C function, in order
    result: str = "void"  # the code of the result
    result_text: str = "void"  # its C type
    doc: str = ""
    gil: str = "release"
    abi: str = "safe_call"  # ``"safe_call"`` (it gets a wrapper) or ``"packed_c"`` (it needs none)
    out: tuple[str, ...] = ()  # as in `FunctionDeclaration`
    errno: bool = False  # as in `FunctionDeclaration`
    free: str = ""  # as in `FunctionDeclaration`
    symbol: str = ""  # the symbol that the wrapper calls; empty for `name`
    lifetime: str = ""  # as in `FunctionDeclaration`
    defaults: Mapping[str, Any] = {}  # as in `FunctionDeclaration`
    # How long the callable or the user data of a parameter is kept: a parameter, forever or call.
    kept: Mapping[str, str] = {}
    # The structs that codes name; each after the structs that it contains.
    structs: tuple[Struct, ...] = ()
    values: tuple[Value, ...] = ()  # the structs and unions whose bytes are passed
    callbacks: tuple[Callback, ...] = ()  # one for each parameter of code ``fn``
    # The structs and unions that the types lead to, also through pointers.
    aggregates: tuple[Aggregate, ...] = ()
    is_external: bool = False  # True if another library may define the symbol
    check: Check = Check()  # the C text by which the compiler checks this declaration

    @property
    def passed(self) -> tuple[Parameter, ...]:
        """The parameters that callers pass, in order."""
        return tuple(p for p in self.parameters if p.name not in self.out)

    @property
    def returned(self) -> tuple[Parameter, ...]:
        """The parameters that are results, in the order of `out`; with the codes of the results."""
        by_name = {p.name: p._replace(code=p.code[1:]) for p in self.parameters}
        return tuple(by_name[name] for name in self.out)

    @property
    def handles(self) -> list[str]:
        """The kinds of the handles that the function returns; void for pointers to other data."""
        codes = [self.result, *(p.code for p in self.returned)]
        return [code[1:] if code[0] == "@" else "void" for code in codes if is_handle(code)]

    @property
    def prototype(self) -> str:
        """The C declaration with the name, as messages show it."""
        return prototype(self.text, self.name)


def is_handle(code: str) -> bool:
    """Return True for a result that is a handle: any pointer but text."""
    return code[0] in "*&@" and code != "*char"


def prototype(function_type: str, name: str) -> str:
    """Put a name into a C function type."""
    head, _, rest = function_type.partition("(")
    return joined(head.rstrip(), f"{name}({rest}")


def joined(type_text: str, name: str) -> str:
    """Put a name after a type: after ``char *`` without a space."""
    return f"{type_text}{name}" if type_text.endswith("*") else f"{type_text} {name}"


def with_char(declaration: Declaration, char: str) -> Declaration:
    """Replace the code of plain char, as a value, by that of the target."""

    def code(text: str) -> str:
        return char + text[4:] if text == "char" or text.startswith("char[") else text

    def parameters(given: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
        return tuple(p._replace(code=code(p.code)) for p in given)

    return declaration._replace(
        parameters=parameters(declaration.parameters),
        result=code(declaration.result),
        structs=tuple(
            s._replace(fields=tuple(f._replace(code=code(f.code)) for f in s.fields))
            for s in declaration.structs
        ),
        callbacks=tuple(
            c._replace(parameters=parameters(c.parameters), result=code(c.result))
            for c in declaration.callbacks
        ),
    )
