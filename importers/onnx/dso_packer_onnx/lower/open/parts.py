"""The parts of plain loops over open extents: distances, loop nests, checks, inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...extent import Extent, in_c, product
from ...operator import Operator, elements, shape_of
from ..code import operator_of
from ..guards import HELPER
from ..one_node import results

if TYPE_CHECKING:
    from collections.abc import Sequence

    import onnx_ir as ir

    from ...operator import Shape


def strides(shape: Shape) -> list[Extent]:
    """Return the distance to the next element along each axis of an array in C order."""
    return [product(shape[axis + 1 :]) for axis in range(len(shape))]


def broadcast(shape: Shape, rank: int) -> list[Extent]:
    """Return the distances along the axes of a result that an array is broadcast to."""
    steps: list[Extent] = [
        0 if extent == 1 else step for extent, step in zip(shape, strides(shape), strict=True)
    ]
    return [0] * (rank - len(shape)) + steps


def merged(
    shape: Shape, steps: Sequence[Sequence[Extent]]
) -> tuple[list[Extent], list[list[Extent]]]:
    """Return extents, and the distances of each array, with adjacent axes joined where all can."""
    axes: list[tuple[Extent, tuple[Extent, ...]]] = []
    for extent, *inner in zip(shape, *steps, strict=True):
        if extent == 1:
            continue
        outer = axes[-1][1] if axes else ()
        if axes and all(o == product((s, extent)) for o, s in zip(outer, inner, strict=True)):
            axes[-1] = product((axes[-1][0], extent)), tuple(inner)
        else:
            axes.append((extent, tuple(inner)))
    return [extent for extent, _ in axes], [[of[i] for _, of in axes] for i in range(len(steps))]


def place(steps: Sequence[Extent], names: Sequence[str]) -> str:
    """Return the place of an element as C, from the distances and indices of its axes."""
    terms = [
        name if step == 1 else f"{name} * {in_c(step)}"
        for name, step in zip(names, steps, strict=True)
        if step != 0
    ]
    return " + ".join(terms) or "0"


def indices_of(rank: int, letter: str = "i") -> list[str]:
    """Return the variables of a loop nest."""
    return [f"{letter}{axis}" for axis in range(rank)]


def nest(extents: Sequence[Extent], body: str, letter: str = "i") -> str:
    """Put loops around statements."""
    opened = "".join(
        f"  for (int64_t {letter}{axis} = 0; {letter}{axis} < {in_c(extent)}; {letter}{axis}++)\n"
        for axis, extent in enumerate(extents)
    )
    return f"{opened}  {{\n{body}  }}\n"


def operator(
    node: ir.Node, body: str, inputs: Sequence[ir.Value], extents: Sequence[Extent] = ()
) -> Operator:
    """Make the operator of statements, which use `extents` too; they return -1 after an error."""
    outputs = results(node)
    return operator_of(
        node.op_type.lower(),
        f"{body}  return 0;\n",
        inputs,
        outputs,
        flops=sum(elements(shape_of(value)) for value in outputs),
        before=HELPER,
        extents=[*extents, *(extent for v in inputs_of(node) for extent in shape_of(v))],
    )


def refuse_if(node: ir.Node, condition: str, what: str, expected: str, found: str) -> str:
    """Return a statement that raises an IndexError if a condition of C holds."""
    text = f'"{node.op_type}: {what}"'
    return f"  if ({condition}) return dso_outside({text}, {expected}, {expected}, {found});\n"


def inputs_of(node: ir.Node) -> list[ir.Value]:
    """Return the inputs that are given."""
    return [value for value in node.inputs if value is not None and value.name]


def input_of(node: ir.Node, index: int) -> ir.Value | None:
    """Return an input; None if it is left out."""
    value = node.inputs[index] if index < len(node.inputs) else None
    return value if value is not None and value.name else None


def given(node: ir.Node, index: int) -> ir.Value:
    """Return an input that every node of this kind has."""
    value = input_of(node, index)
    assert value is not None
    return value


def attribute(node: ir.Node, name: str, default: Any) -> Any:
    """Return the value of an attribute."""
    found = node.attributes.get(name)
    return default if found is None else found.value


def constants(node: ir.Node, index: int) -> list[int] | None:
    """Return the whole numbers of a constant input; None if it is computed, or not there."""
    value = input_of(node, index)
    if value is None or value.const_value is None:
        return None
    return [int(number) for number in value.const_value.numpy().reshape(-1)]


class Numbers:
    """Whole numbers that a node gets as inputs: literals, or elements of parameters."""

    def __init__(self, node: ir.Node, data: Sequence[ir.Value]) -> None:
        self._node = node
        self.inputs = [*data]

    def at(self, index: int, element: int) -> str:
        """Return an element of an input as C."""
        known = constants(self._node, index)
        if known is not None:
            return f"INT64_C({max(known[element], -(1 << 63) + 1)})"
        return f"(int64_t){self.read(index, element)}"

    def read(self, index: int, element: int) -> str:
        """Return an element of a parameter as C, of its data type."""
        value = given(self._node, index)
        if value not in self.inputs:
            self.inputs.append(value)
        return f"x{self.inputs.index(value)}[{element}]"
