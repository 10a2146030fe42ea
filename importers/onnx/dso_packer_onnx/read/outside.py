"""Models without their large weights, which stay where they are: in the file, or in a message.

A ModelProto that has them is copied several times until it is checked. So it gets the name and the
shape of each, as if the data were in another file, and `LightModel.outside` has the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from .wire import BYTES, Walk

if TYPE_CHECKING:
    import onnx_ir as ir

LARGE = 1 << 16  # bytes of a tensor
_EXTERNAL = 1  # TensorProto.data_location
_RAW_DATA = 9  # the number of the field in a TensorProto
# The tensors of initialisers, and of the attributes of nodes, by the numbers of their fields.
_TENSOR: Mapping[int, Any] = {}
_MODEL: Mapping[int, Any] = {7: {5: _TENSOR, 1: {5: {5: _TENSOR}}}}


class Outside(NamedTuple):
    """The data of a tensor: its size in bytes, and a function that returns it."""

    nbytes: int
    read: Callable[[], Any]


class LightModel(NamedTuple):
    """A ModelProto, and the data of its large tensors by their location."""

    proto: Any
    outside: dict[str, Outside]
    ranges: Mapping[str, tuple[int, int | None]] = {}  # the least and greatest open extents


def light_bytes(data: memoryview, source: str, outside: dict[str, Outside]) -> bytes:
    """Return a model that `check_wire` has checked without its large weights, put in `outside`."""
    return _message(Walk(data, source), 0, len(data), _MODEL, outside)


def light_proto(model: Any) -> LightModel:
    """Copy a ModelProto without its large weights, which are read from it when they are used."""
    made = type(model)()
    outside: dict[str, Outside] = {}
    _copy_fields(model, made, "graph")
    _copy_fields(model.graph, made.graph, "initializer")
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) < LARGE:
            made.graph.initializer.add().CopyFrom(tensor)
            continue
        _copy_fields(tensor, made.graph.initializer.add(), "raw_data")
        one = Outside(len(tensor.raw_data), partial(getattr, tensor, "raw_data"))
        _put_outside(made.graph.initializer[-1], one, outside)
    return LightModel(made, outside)


def light_ir(model: ir.Model) -> LightModel:
    """Make a ModelProto of an onnx_ir.Model, whose large weights are taken out of it."""
    import onnx
    import onnx_ir as ir

    outside: dict[str, Outside] = {}
    initializers, light = model.graph.initializers, {}
    for name, value in [*initializers.items()]:
        tensor = value.const_value
        if tensor is None or tensor.nbytes < LARGE or tensor.dtype.bitwidth < 8:
            continue
        light[name] = onnx.TensorProto(
            name=name, data_type=int(tensor.dtype), dims=tensor.shape.numpy()
        )
        one = Outside(tensor.nbytes, partial(_contiguous, tensor))
        _put_outside(light[name], one, outside)
    order = [*initializers]
    for name in light:
        initializers.pop(name)
    proto = ir.to_proto(model)
    found = {tensor.name: tensor for tensor in proto.graph.initializer} | light
    tensors = [found[name] for name in order if name in found]
    made = LightModel(onnx.ModelProto(), outside)
    made.proto.CopyFrom(proto)
    del made.proto.graph.initializer[:]
    made.proto.graph.initializer.extend(tensors)
    return made


def _contiguous(tensor: ir.TensorProtocol) -> Any:
    import numpy

    return numpy.ascontiguousarray(tensor.numpy())


def _copy_fields(source: Any, made: Any, without: str) -> None:
    for field, value in source.ListFields():
        if field.name == without:
            continue
        if hasattr(value, "extend"):
            getattr(made, field.name).extend(value)
        elif field.message_type is not None:
            getattr(made, field.name).CopyFrom(value)
        else:
            setattr(made, field.name, value)


def _put_outside(tensor: Any, one: Outside, outside: dict[str, Outside]) -> None:
    """Make a TensorProto refer to its data; no file has such a name."""
    location = f"\0{len(outside)}"
    outside[location] = one
    tensor.data_location = _EXTERNAL
    del tensor.external_data[:]
    tensor.external_data.add(key="location", value=location)


def _message(
    walk: Walk, start: int, end: int, inner: Mapping[int, Any], outside: dict[str, Outside]
) -> bytes:
    """Return the bytes of a message, without the data of a large tensor."""
    import onnx

    parts: list[Any] = []
    marks = b""
    for number, begin, at, stop in _fields(walk, start, end):
        if inner is _TENSOR and number == _RAW_DATA and stop - at >= LARGE:
            mark, view = onnx.TensorProto(), walk.data[at:stop]
            _put_outside(mark, Outside(len(view), view.toreadonly), outside)
            marks = mark.SerializeToString()
        elif number in inner:
            part = _message(walk, at, stop, inner[number], outside)
            parts += [_length_prefix(number, len(part)), part]
        else:
            parts.append(walk.data[begin:stop])
    return b"".join([*parts, marks])


def _fields(walk: Walk, position: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the number, the start, the start of the value and the end of each field.

    Numbers that follow each other are one field with number 0.
    """
    while position < end:
        start = position
        tag, position = walk.varint(position, end)
        if tag & 7 != BYTES:
            position = walk.skip(tag & 7, start, position, end)
            yield 0, start, position, position
            continue
        length, at = walk.varint(position, end)
        position = at + length
        yield tag >> 3, start, at, position


def _length_prefix(number: int, length: int) -> bytes:
    made = bytes([number << 3 | BYTES])
    while length > 127:
        made, length = made + bytes([length & 127 | 128]), length >> 7
    return made + bytes([length])
