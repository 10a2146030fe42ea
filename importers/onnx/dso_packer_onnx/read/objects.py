"""Sequences and optionals: values that are tuples of tensors or None where bytecode runs.

Their `ir.Value` has the data type of the tensors and no axes, and an `ObjectType` in its metadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from packer import ExportError

if TYPE_CHECKING:
    import onnx_ir as ir

KEY = "object"  # in `ir.Value.meta`
Extents = tuple[int | None, ...]


class EmptyError(ExportError):
    """A node needs a value that a sequence or optional never has; in a loop it may get one."""


class ObjectType(NamedTuple):
    """The type of a sequence or an optional."""

    dtype: int
    extents: Extents | None  # of each tensor; None if their ranks differ or are unknown
    is_sequence: bool
    is_optional: bool = False
    is_empty: bool = False  # True if it has no tensor in every call
    has_value: bool | None = None  # of an optional, if it is the same in every call

    @property
    def is_any_rank(self) -> bool:
        """True for a tensor whose rank each call decides."""
        return not (self.is_sequence or self.is_optional)

    def merged(self, other: ObjectType) -> ObjectType | None:
        """Return the type of values that have either type; None if there is none."""
        if self.dtype != other.dtype or self.is_sequence != other.is_sequence:
            return None
        extents = _merged(self, other)
        return ObjectType(
            self.dtype,
            extents,
            self.is_sequence,
            self.is_optional or other.is_optional,
            self.is_empty and other.is_empty,
            self.has_value if self.has_value == other.has_value else None,
        )

    def __str__(self) -> str:
        """Return its name, as ONNX's text form writes it."""
        from .types import dtype_name

        inner = dtype_name(self.dtype)
        inner = f"seq({inner})" if self.is_sequence else inner
        return f"optional({inner})" if self.is_optional else inner


def object_of(value: ir.Value | None) -> ObjectType | None:
    """Return the type of a sequence or optional; None for a tensor."""
    return None if value is None else value.meta.get(KEY)


def put_object(value: ir.Value, type_: ObjectType) -> None:
    """Let a value be a sequence or an optional."""
    import onnx_ir as ir

    value.meta[KEY] = type_
    value.type, value.shape = ir.TensorType(ir.DataType(type_.dtype)), ir.Shape([])


def declared_object(value: ir.Value) -> ObjectType | None:
    """Return the sequence or optional that a value is declared as."""
    import onnx_ir as ir

    kind, is_optional, is_sequence = value.type, False, False
    if isinstance(kind, ir.OptionalType):
        is_optional, kind = True, kind.elem_type
    if isinstance(kind, ir.SequenceType):
        is_sequence, kind = True, kind.elem_type
    if not (is_optional or is_sequence):
        return None
    extents = None
    if value.shape is not None:
        extents = tuple(one if isinstance(one, int) else None for one in value.shape)
    return ObjectType(int(kind.dtype), extents, is_sequence, is_optional)


def put_inputs(graph: ir.Graph) -> None:
    """Note which inputs of a model are sequences and optionals."""
    for value in graph.inputs:
        found = declared_object(value)
        if found is not None:
            put_object(value, found)


def _merged(one: ObjectType, other: ObjectType) -> Any:
    if one.is_empty or one.has_value is False:
        return other.extents
    if other.is_empty or other.has_value is False:
        return one.extents
    if one.extents is None or other.extents is None or len(one.extents) != len(other.extents):
        return None
    pairs = zip(one.extents, other.extents, strict=True)
    return tuple(a if a == b else None for a, b in pairs)
