"""Types of arguments and results, for annotations; `packer stubs` writes them.

Type checkers accept what a call accepts, except that the types of arrays do not tell their dtype,
device and layout: the call checks these. A load does not import this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ._core import Handle

if TYPE_CHECKING:
    import ctypes

    from typing_extensions import Buffer

__all__ = [
    "Array",
    "Bool",
    "Complex",
    "Float",
    "Function",
    "Int",
    "Record",
    "SupportsDLPack",
    "VoidHandle",
    "WritableArray",
]


class Int(Protocol):
    """An integer: an int, a bool or an integer scalar of NumPy; not an array."""

    def __index__(self) -> int: ...

    @property
    def denominator(self) -> int: ...


class _Real(Protocol):
    """A float or another real number, such as a scalar of NumPy or a Decimal; not an array."""

    def __float__(self) -> float: ...

    def as_integer_ratio(self) -> tuple[int, int]: ...


class _BoolScalar(Protocol):
    """NumPy's bool."""

    def __bool__(self) -> bool: ...

    def __hash__(self) -> int: ...

    def item(self) -> bool: ...


class _ComplexScalar(Protocol):
    """A complex, or a complex scalar of NumPy."""

    def __complex__(self) -> complex: ...


class SupportsDLPack(Protocol):
    """An array or tensor that other packages can share."""

    def __dlpack__(self) -> Any: ...


class _NumPyArray(Protocol):
    """An array of NumPy, of any dtype; a scalar has no length."""

    @property
    def __array_interface__(self) -> Any: ...

    def __len__(self) -> int: ...


class _WritableBuffer(Protocol):
    """A bytearray, memoryview, array.array, ...; not bytes."""

    def __buffer__(self, flags: int, /) -> memoryview: ...

    def __setitem__(self, key: Any, value: Any, /) -> None: ...


class Record(Protocol):
    """A scalar or an array of NumPy with a structured dtype."""

    @property
    def dtype(self) -> Any: ...

    @property
    def __array_interface__(self) -> Any: ...


class Function(Protocol):
    """A function of a library; a stub adds `__call__` with its parameters and results.

    Attributes
    ----------
    name : str
        Its name.
    signature : str or None
        Its C declaration.
    """

    @property
    def name(self) -> str: ...

    @property
    def signature(self) -> str | None: ...


if TYPE_CHECKING:

    class VoidHandle(Handle):  # type: ignore[misc]
        """A handle without a kind: C's ``void *``. Every parameter for a handle accepts it."""

        @property
        def kind(self) -> None: ...
else:
    VoidHandle = Handle

Float: TypeAlias = "Int | _Real"
Bool: TypeAlias = "Int | _BoolScalar"
Complex: TypeAlias = "Float | _ComplexScalar | tuple[Float, Float] | list[Any]"
WritableArray: TypeAlias = (
    "SupportsDLPack | _NumPyArray | _WritableBuffer | ctypes.Structure | ctypes._SimpleCData[Any]"
)
Array: TypeAlias = "Buffer | SupportsDLPack | _NumPyArray"
