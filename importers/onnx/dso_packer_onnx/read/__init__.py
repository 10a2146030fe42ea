"""A model that can be trusted: `read_model` checks it, `with_shapes` makes every shape known.

The order matters. `wire` bounds what protobuf allocates; `graphs` and `tensors` bound and connect
everything that the model names, since the packages of ONNX rely on it; `nodes` asks ONNX's own
checker about each node; `opset` converts; only then onnx_ir makes objects of it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from packer import ExportError
from packer.files.text import shown_path
from runtime.error import shown
from runtime.serial.mapped_file import map_file, reason_of

from .bodies import bodies_of as bodies_of
from .branches import copy_outer_outputs
from .contrib import define_contrib
from .equations import RANGES
from .equations import conditions_of as conditions_of
from .extents import take_extents as take_extents
from .fixed_inputs import fix_inputs as fix_inputs
from .graphs import Graphs
from .matmul_bits import expand_matmul_bits
from .nodes import check_nodes, inline_functions
from .objects import put_inputs
from .opset import check_versions, convert
from .outside import LightModel, Outside, light_bytes, light_proto
from .shapes import with_shapes as with_shapes
from .tensors import Tensors
from .weights import take_weights
from .wire import check_wire
from .words import first_line, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    import onnx
    import onnx_ir as ir

_SMALL = 1 << 22  # bytes of a model that protobuf may parse at once, whatever is in it
_SOURCE = "model"


def read_model(model: str | os.PathLike[str] | bytes | onnx.ModelProto) -> ir.Model:
    """Read and check an ONNX model.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
        The model. Weights outside its file are mapped, not copied; they need a path.

    Returns
    -------
    onnx_ir.Model
        Of opset 23 or newer if onnx can convert it; without functions, and with nodes in order.
        Its initialisers are not inputs. Shapes may be unknown: see `with_shapes`.

    Raises
    ------
    ExportError
        If a package is missing, or if the model cannot be read, breaks a rule of ONNX, or has
        strings, maps or sparse tensors.
    """
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise missing_package("onnx") from error
    source, path = _SOURCE, None
    if isinstance(model, str | os.PathLike):
        source, path = shown_path(model), model
    proto, outside, ranges = _light(model, source)
    tensors = Tensors(source, path, outside)
    check_versions(proto, source)
    Graphs(proto, tensors).check()
    try:
        return _model(proto, tensors, ranges)
    except (RuntimeError, ValueError, TypeError, KeyError, AttributeError) as error:
        if isinstance(error, ExportError):
            raise
        raise refusal(source, f"onnx cannot read it: {first_line(error)}") from error


def missing_package(name: str) -> ExportError:
    """Make the error about a package that the importer needs."""
    text = f"packer.from_onnx needs the package {name}: pip install 'dso-packer[onnx]'"
    return ExportError(text)


def _light(model: object, source: str) -> LightModel:
    """Return the ModelProto without its large weights, parsed after its bytes were checked."""
    import onnx

    if isinstance(model, LightModel):  # of `from_torch`
        return model
    if isinstance(model, onnx.ModelProto):
        return light_proto(model)
    if isinstance(model, bytes | bytearray | memoryview):
        return _parse(memoryview(model).cast("B"), source)
    if not isinstance(model, str | os.PathLike):
        text = "packer.from_onnx: model, expected a path, bytes or onnx.ModelProto, found"
        raise ExportError(f"{text} {shown(model)}")
    try:
        data, _ = map_file(model)
    except (OSError, ValueError) as error:
        raise refusal(source, f"cannot read the model: {reason_of(error)}") from error
    if not data:
        raise refusal(source, "a model, expected a file that is not empty")
    return _parse(data, source)


def _parse(data: memoryview, source: str) -> LightModel:
    import onnx
    from google.protobuf.message import DecodeError

    descriptor = onnx.ModelProto.DESCRIPTOR
    outside: dict[str, Outside] = {}
    if len(data) > _SMALL:
        check_wire(data, descriptor, source)
        data = memoryview(light_bytes(data, source, outside))
    try:
        return LightModel(onnx.ModelProto.FromString(data), outside)
    except DecodeError as error:
        check_wire(data, descriptor, source)  # it says where
        raise refusal(source, "protobuf cannot read it; it is damaged or not a model") from error


def _model(proto: Any, tensors: Tensors, ranges: Mapping[str, Any]) -> ir.Model:
    """Make the objects of a model whose names are checked."""
    try:
        import onnx_ir as ir
    except ImportError as error:
        raise missing_package("onnx_ir") from error
    source = tensors.source
    weights = take_weights(proto, tensors)
    expand_matmul_bits(proto, weights, source)
    define_contrib(proto, weights, source)
    # Parsed again: protobuf frees the memory of a message at once, and only then.
    proto = inline_functions(type(proto).FromString(proto.SerializeToString()), source)
    check_nodes(proto, source)
    copy_outer_outputs(proto.graph)
    made = ir.from_proto(convert(proto, source))
    for name, value in made.graph.initializers.items():
        tensor = value.const_value
        small = (
            ir.Tensor(tensor.numpy(), dtype=tensor.dtype, name=name)
            if name not in weights
            else None
        )
        value.const_value = small or weights[name]
    made.graph.sort()
    put_inputs(made.graph)
    _separate_outputs(made)
    made.meta["source"], made.meta[RANGES] = source, ranges
    return made


def _separate_outputs(model: ir.Model) -> None:
    """Copy inputs and weights that are outputs too, so that a node makes every output."""
    import onnx_ir as ir

    graph = model.graph
    for index, value in enumerate(graph.outputs):
        if value.producer() is None:
            node = ir.Node("", "Identity", [value], num_outputs=1)
            graph.append(node)
            made = node.outputs[0]
            made.name, made.type, made.shape = f"{value.name}_output", value.type, value.shape
            graph.outputs[index] = made
