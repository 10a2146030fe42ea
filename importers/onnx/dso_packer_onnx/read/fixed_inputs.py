"""Inputs that get their value while packing: shapes that depend on them are known then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from runtime.error import near_names, shown

from .types import dtype_name, fit
from .words import refusal, shape_text

if TYPE_CHECKING:
    import onnx_ir as ir


def fix_inputs(model: ir.Model, values: Mapping[str, Any]) -> None:
    """Make initialisers of inputs; ExportError if a value does not fit its input."""
    import onnx_ir as ir

    source = model.meta.get("source", "model")
    graph = model.graph
    inputs = {value.name: value for value in graph.inputs}
    for name, given in values.items():
        if name not in inputs:
            text = f"input_values: the model has no input {shown(name)}"
            raise refusal(source, text + near_names(name, list(inputs)))
        value = inputs[name]
        array = _array(value, given, source)
        value.const_value = ir.Tensor(array, dtype=value.dtype, name=name)
        value.shape = ir.Shape(array.shape)
        graph.inputs.remove(value)
        graph.register_initializer(value)


def _array(value: ir.Value, given: Any, source: str) -> Any:
    """Return a value as an array of the dtype and shape that its input has."""
    import numpy as np

    where = f"input_values: {shown(value.name)}"
    if value.dtype is None:
        raise refusal(source, f"{where}, expected an input whose data type the model declares")
    dtype = value.dtype.numpy()
    try:
        found = np.asarray(given)
        array = np.array(found, dtype, order="C")
        is_exact = found.dtype.kind == "f" == dtype.kind or np.array_equal(array, found)
    except (TypeError, ValueError, OverflowError):
        is_exact = False
    if not is_exact:
        expected = dtype_name(int(value.dtype))
        raise refusal(source, f"{where}, expected values of {expected}, found {shown(given)}")
    if value.shape is None:
        return array
    extents = [extent if isinstance(extent, int) else None for extent in value.shape]
    if not extents and array.size == 1:
        return array.reshape(())
    if not fit(array.shape, tuple(extents)):
        text = f"{where}: shape, expected {shape_text(extents)}, found {shape_text(array.shape)}"
        raise refusal(source, text)
    return array
