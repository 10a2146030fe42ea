"""Checks of what the data says, before generated code that trusts it.

Generated code reads and writes wherever an index points to. An index that is known when the model
is exported is checked then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..dtypes import c_type
from ..operator import elements, shape_of
from .refused import refuse

if TYPE_CHECKING:
    import onnx_ir as ir

    from ..operator import Shape
    from .storage import Storage

INCLUDE = '#include "dso_packer.h"\n#include <stdio.h>\n#include <stdlib.h>\n'
HELPER = """
static int32_t dso_outside(const char *what, int64_t low, int64_t high, int64_t found) {
  char text[160];
  snprintf(text, sizeof text, "%s, expected %lld to %lld, found %lld", what, (long long)low,
           (long long)high, (long long)found);
  return dso_raise("IndexError", text);
}
"""


class Range(NamedTuple):
    """The numbers that an input may have."""

    position: int  # the input of the node
    # For each element of the last axis, in turn, the extent that it points into.
    extents: tuple[int, ...]
    from_end: bool = False  # True if -1 is the last one
    exception: int | None = None  # a number that is allowed beside these


def guard(
    node: ir.Node, shapes: dict[ir.Value, Shape], storages: dict[ir.Value, Storage]
) -> list[str]:
    """Return C statements that raise an IndexError for data that the code must not see.

    Parameters
    ----------
    node : ir.Node
        The operator.
    shapes : dict of ir.Value to tuple of int
        The shape of each value.
    storages : dict of ir.Value to Storage
        The inputs and outputs of the C function; constants in the code are not among them.

    Raises
    ------
    OperatorRefusedError
        A constant in the code is such data.
    """
    found = _range(node, shapes)
    value = node.inputs[found.position] if found and found.position < len(node.inputs) else None
    if found is None or value is None:
        return []
    if value in storages:
        return [_loop(node, found, value, elements(shapes[value]), storages[value])]
    _check_constant(node, found, value)
    return []


def check_indices(node: ir.Node) -> None:
    """Check constant indices into known extents.

    Raises OperatorRefusedError: one of them is outside.
    """
    shapes = {value: shape_of(value) for value in node.inputs if value is not None}
    if all(isinstance(extent, int) for shape in shapes.values() for extent in shape):
        found = _range(node, shapes)
        value = node.inputs[found.position] if found and found.position < len(node.inputs) else None
        if found is not None and value is not None and value.const_value is not None:
            _check_constant(node, found, value)


def _check_constant(node: ir.Node, found: Range, value: ir.Value) -> None:
    assert value.const_value is not None
    columns = len(found.extents)
    for position, number in enumerate(value.const_value.numpy().reshape(-1).tolist()):
        extent = found.extents[position % columns]
        low = -extent if found.from_end else 0
        if not low <= number < extent and number != found.exception:
            why = f"index of input {value.name!r}, expected {low} to {extent - 1}, found {number}"
            raise refuse(node, "unknown", why)


def _loop(node: ir.Node, found: Range, value: ir.Value, count: int, storage: Storage) -> str:
    """Write the check of all elements of an input."""
    data = f"((const {c_type(value)} *){storage.argument})"
    columns = len(found.extents)
    lines = []
    for column, extent in enumerate(found.extents):
        low = -extent if found.from_end else 0
        besides = "" if found.exception is None else f" && x != {found.exception}"
        what = f'"{node.op_type}: index {column} of input {found.position}"'
        lines.append(
            f"for (int64_t i = {column}; i < {count}; i += {columns}) {{\n"
            f"    const int64_t x = (int64_t){data}[i];\n"
            f"    if ((x < {low} || x >= {extent}){besides})\n"
            f"      return dso_outside({what}, {low}, {extent - 1}, x);\n"
            "  }"
        )
    return "\n  ".join(lines)


def _range(node: ir.Node, shapes: dict[ir.Value, Shape]) -> Range | None:
    """Return which input has indices, and into what."""
    shape = [_fixed(shapes[value]) if value is not None else () for value in node.inputs]

    def number(name: str, default: int) -> int:
        found = node.attributes.get(name)
        return default if found is None else int(found.as_int())

    operator = node.op_type
    if operator in ("Gather", "GatherElements", "ScatterElements", "Scatter"):
        return Range(1, (shape[0][number("axis", 0)],), from_end=True)
    if operator == "GatherND":
        first = number("batch_dims", 0)
        return Range(1, shape[0][first : first + shape[1][-1]], from_end=True)
    if operator == "ScatterND":
        return Range(1, shape[0][: shape[1][-1]], from_end=True)
    if operator == "ArrayFeatureExtractor":
        return Range(1, (shape[0][-1],), from_end=True)
    if operator == "RoiAlign":
        return Range(2, (shape[0][0],))
    if operator == "TensorScatter" and (found := node.attributes.get("mode")) is None:
        axis = number("axis", -2)
        return Range(2, (shape[0][axis] - shape[1][axis] + 1,))
    if operator == "TensorScatter" and found.as_string() == "linear":
        axis = number("axis", -2)
        return Range(2, (shape[0][axis] - shape[1][axis] + 1,))
    if operator in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"):
        ignored = node.attributes.get("ignore_index")
        exception = None if ignored is None else int(ignored.as_int())
        return Range(1, (shape[0][1],), exception=exception)
    if operator in ("LSTM", "GRU", "RNN"):
        return Range(4, (shape[0][number("layout", 0)] + 1,))
    if operator in ("CumSum", "CumProd"):
        return Range(1, (len(shape[0]),), from_end=True)
    if operator == "RotaryEmbedding" and len(shape) > 3 and shape[3]:
        return Range(3, (shape[1][0],))
    return None


def _fixed(shape: Shape) -> tuple[int, ...]:
    return tuple(extent for extent in shape if isinstance(extent, int))
