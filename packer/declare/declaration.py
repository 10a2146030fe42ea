"""Declarations: what is known of a function that a library exports.

`c_type` reads one from what a user wrote. From it come the facts that travel with the function
(`facts`), the redeclaration by which the user's compiler checks it (`redeclaration`), the wrapper
in ``glue.c`` (`wrapper`), and the LLVM types that it stands for (`modules.llvm`).
"""

from __future__ import annotations

from typing import NamedTuple

# Codes of integers in the facts; the others are bool, f32, f64, str, tensor, void, status, and
# with a "*" or "&" in front pointers to them, writable or not.
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")


class FunctionDeclaration(NamedTuple):
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
    doc: str = ""
    gil: str = "release"


class Parameter(NamedTuple):
    """One parameter: its name, its C type (``const float *``) and its code (``&f32``)."""

    name: str
    type_text: str
    code: str


class Declaration(NamedTuple):
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
        """The C declaration with the name, as messages show it."""
        return prototype(self.text, self.name)


def prototype(function_type: str, name: str) -> str:
    """Put a name into a C function type."""
    head, _, rest = function_type.partition("(")
    return joined(head.rstrip(), f"{name}({rest}")


def joined(type_text: str, name: str) -> str:
    """Put a name behind a type: ``char *`` takes it without a space."""
    return f"{type_text}{name}" if type_text.endswith("*") else f"{type_text} {name}"
