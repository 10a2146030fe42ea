"""Declarations: the type and properties of a function that a library exports.

`c_type` parses a declaration. From it are made the facts in the library (`facts`), the
redeclaration that the user's compiler checks (`redeclaration`), the wrapper in ``glue.c``
(`wrapper`), and the LLVM types (`modules.llvm`).
"""

from __future__ import annotations

from typing import NamedTuple

# Codes of integers in the facts; the others are bool, f32, f64, str, tensor, void and status.
# "*" before a code is a pointer to it, "&" a pointer to const.
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")


class FunctionDeclaration(NamedTuple):
    """A declaration with a doc and options, in place of a plain string.

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
        ``"safe_call"`` (it gets a wrapper) or ``"packed_c"`` (it needs none).
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
    """Put a name after a type: after ``char *`` without a space."""
    return f"{type_text}{name}" if type_text.endswith("*") else f"{type_text} {name}"
