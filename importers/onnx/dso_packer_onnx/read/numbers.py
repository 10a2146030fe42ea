"""Small values as expressions: pads and sizes that a model computes from open extents.

Each operator is a row: how its elements follow from elements of its inputs. Operators that only
move elements are run by ONNX's own definition, with the places of the elements as numbers.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from ..extent import (
    Extent,
    bounds_of,
    expression_of,
    flattened,
    greater,
    rounded_down,
    rounded_up,
    written,
)
from .constants import MOVES
from .evaluate import MOST_VALUES, reference
from .types import known_extents

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy
    import onnx_ir as ir

    Elements = numpy.ndarray[Any, Any]  # of objects: expressions of sympy

_MOST_STEPS = 64  # operators between a shape and a number
_MOST_DIVISOR = 1 << 10  # a quotient by it is rounded to no other integer in float32


def numbers_of(value: ir.Value | None) -> list[Extent] | None:
    """Return the elements of a vector of integers; None if one does not follow from open extents.

    The shapes that they are computed from are known.
    """
    found = None if value is None else _elements(value, {}, _MOST_STEPS)
    if found is None or not all(element.is_integer for element in found.flat):
        return None
    return [written(element) for element in found.flat]


def _elements(
    value: ir.Value, known: dict[ir.Value, Elements | None], steps: int
) -> Elements | None:
    if value not in known:
        known[value] = None
        known[value] = _constant(value) if value.const_value is not None else None
        node = value.producer()
        if known[value] is None and node is not None and not node.domain and steps:
            known[value] = _result(node, value, known, steps - 1)
    return known[value]


def _constant(value: ir.Value) -> Elements | None:
    import sympy

    tensor = value.const_value
    if tensor is None or tensor.size > MOST_VALUES or tensor.dtype.bitwidth < 8:
        return None
    array = tensor.numpy()
    if array.dtype.kind not in "iuf" or (array.dtype.kind == "f" and not abs(array).max() < 1e9):
        return None
    return _objects([sympy.Rational(one) for one in array.reshape(-1).tolist()], array.shape)


def _objects(items: Sequence[Any], shape: Sequence[int]) -> Elements:
    import numpy

    made = numpy.empty(len(items), object)
    made[:] = items
    return made.reshape(shape)


def _result(
    node: ir.Node, value: ir.Value, known: dict[ir.Value, Elements | None], steps: int
) -> Elements | None:
    import numpy

    if node.op_type == "Shape" and node.inputs[0] is not None:
        extents = known_extents(node.inputs[0].shape) or (None,)
        start, end = (node.attributes.get_int(n, d) for n, d in (("start", 0), ("end", None)))
        some = extents[start:end]
        if None in extents:
            return None
        items = [flattened(expression_of(extent)) for extent in some if extent is not None]
        return _objects(items, (len(items),))
    inputs = [None if one is None else _elements(one, known, steps) for one in node.inputs]
    if any(
        found is None and one is not None for one, found in zip(node.inputs, inputs, strict=True)
    ):
        return None
    if node.op_type in MOVES and node.op_type != "Cast":
        return _moved(node, value, inputs)
    rule = _EACH.get(node.op_type)
    arrays = [array for array in inputs if array is not None]
    if rule is None or not arrays:
        return None
    equal = numpy.broadcast_arrays(*arrays)
    items = [rule(node, *args) for args in zip(*(array.flat for array in equal), strict=True)]
    return None if None in items else _objects(items, equal[0].shape)


def _moved(node: ir.Node, out: ir.Value, inputs: Sequence[Elements | None]) -> Elements | None:
    """Follow the elements of the first input, or of all inputs of Concat."""
    import numpy
    import onnx_ir as ir

    items: list[Any] = []
    given = {}
    for index, (value, array) in enumerate(zip(node.inputs, inputs, strict=True)):
        if value is None or array is None:
            continue
        if index == 0 or node.op_type == "Concat":
            places = numpy.arange(len(items), len(items) + array.size)
            given[value] = places.reshape(array.shape)
            items += array.reshape(-1).tolist()
        elif all(element.is_Integer for element in array.flat):
            given[value] = numpy.array([int(e) for e in array.flat]).reshape(array.shape)
        else:
            return None
    made = reference(node, ir.serde.serialize_node(node), given)
    found = dict(zip(node.outputs, made, strict=False)).get(out)
    if found is None:
        return None
    return _objects([items[place] for place in found.reshape(-1).tolist()], found.shape)


# ---- Elements of operators that compute


def _is_float(node: ir.Node) -> bool:
    import onnx_ir as ir

    dtype = node.inputs[0].dtype if node.inputs[0] is not None else None
    return dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE)


def _is_at_least_0(expression: Any) -> bool:
    """Return True if an expression is not negative for extents of at least 1."""
    import sympy

    bounds = bounds_of(written(expression))
    if bounds is not None:
        return bounds[0] >= 0
    raised = {
        s: sympy.Symbol(s.name, integer=True, nonnegative=True) + 1 for s in expression.free_symbols
    }
    return bool(sympy.expand(expression.xreplace(raised)).is_nonnegative)


def _truncated(expression: Any) -> Any:
    if expression.is_integer:
        return expression
    if _is_at_least_0(expression):
        return rounded_down(expression)
    return -rounded_down(-expression) if _is_at_least_0(-expression) else None


def _quotient(node: ir.Node, a: Any, b: Any) -> Any:
    """Divide by a constant; in floating point only where no integer is missed."""
    if not b.is_Integer or not 0 < b <= _MOST_DIVISOR:
        return None
    if not _is_float(node):
        return _truncated(a / b)
    return a / b if a.is_integer else None


def _remainder(node: ir.Node, a: Any, b: Any) -> Any:
    """Return the remainder of integers that has the sign of the divisor, a constant."""
    if not b.is_Integer or b <= 0 or not a.is_integer or node.attributes.get_int("fmod", 0):
        return None
    return a - b * rounded_down(a / b)


def _product(node: ir.Node, a: Any, b: Any) -> Any:
    """Multiply integers, or by a power of 2 in floating point."""
    if (a.is_integer and b.is_integer) or not _is_float(node):
        return a * b
    number, other = (a, b) if a.is_Rational else (b, a)
    is_exact = number.is_Rational and other.is_integer and number.q & (number.q - 1) == 0
    return a * b if is_exact and number.q <= _MOST_DIVISOR else None


def _cast(node: ir.Node, a: Any) -> Any:
    import onnx_ir as ir

    to = ir.DataType(node.attributes.get_int("to", 0))
    return _truncated(a) if to in (ir.DataType.INT64, ir.DataType.INT32) else a


def _clip(node: ir.Node, a: Any, *ends: Any) -> Any:
    places = [index for index in (1, 2) if index < len(node.inputs) and node.inputs[index]]
    for index, end in zip(places, ends, strict=True):
        a = greater(a, end) if index == 1 else -greater(-a, -end)
    return a


_EACH: dict[str, Callable[..., Any]] = {
    "Add": lambda _, a, b: a + b,
    "Cast": _cast,
    "Clip": _clip,
    "Ceil": lambda _, a: rounded_up(a),
    "Div": _quotient,
    "Floor": lambda _, a: rounded_down(a),
    "Max": lambda _, *args: reduce(greater, args),
    "Min": lambda _, *args: -reduce(greater, [-arg for arg in args]),
    "Mod": _remainder,
    "Mul": _product,
    "Neg": lambda _, a: -a,
    "Sub": lambda _, a, b: a - b,
}
