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

    _CtypesValue: TypeAlias = ctypes.Structure | ctypes._SimpleCData[Any]
else:  # what only type checkers look at
    Buffer = _CtypesValue = Any

__all__ = [
    "Array",
    "Bool",
    "Bytes",
    "Complex",
    "Float",
    "Function",
    "Int",
    "Record",
    "SupportsDLPack",
    "VoidHandle",
]


class _IntScalar(Protocol):
    """An integer scalar of NumPy, or another integer; not an array."""

    def __index__(self) -> int: ...

    @property
    def denominator(self) -> int: ...


class _BoolScalar(Protocol):
    """NumPy's bool; not an array."""

    def __bool__(self) -> bool: ...

    def __hash__(self) -> int: ...

    def item(self) -> bool: ...


class _FloatScalar(Protocol):
    """A real number: a scalar of NumPy, a Decimal, ...; not an array."""

    def __float__(self) -> float: ...

    def as_integer_ratio(self) -> tuple[int, int]: ...


class _ComplexScalar(Protocol):
    """A complex scalar of NumPy."""

    def __complex__(self) -> complex: ...


class SupportsDLPack(Protocol):
    """An array or tensor that packages share by DLPack."""

    def __dlpack__(self) -> Any: ...


class _NumPyArray(Protocol):
    """An array of NumPy, of any dtype; most scalars have no items."""

    @property
    def __array_interface__(self) -> Any: ...

    def __setitem__(self, key: Any, value: Any, /) -> None: ...


class _MutableBuffer(Protocol):
    """A bytearray, a memoryview, an array.array, ...; not bytes."""

    def __buffer__(self, flags: int, /) -> memoryview: ...

    def __setitem__(self, key: Any, value: Any, /) -> None: ...


class Record(Protocol):
    """A scalar or an array of NumPy, with fields."""

    @property
    def dtype(self) -> Any: ...

    def __setitem__(self, key: Any, value: Any, /) -> None: ...


class Function(Protocol):
    """A function of a library; a stub adds the parameters and results of a call.

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

Int: TypeAlias = int | _IntScalar | _BoolScalar
Bool: TypeAlias = bool | _IntScalar | _BoolScalar
Float: TypeAlias = float | _FloatScalar | _IntScalar | _BoolScalar
Complex: TypeAlias = (
    complex | _ComplexScalar | Float | tuple[Float, Float] | list[int] | list[float]
)
Array: TypeAlias = SupportsDLPack | _NumPyArray | _MutableBuffer | _CtypesValue
Bytes: TypeAlias = Buffer | Array
