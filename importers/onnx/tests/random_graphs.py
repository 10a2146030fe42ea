"""Random graphs of 30 operators with open axes, beside ONNX's reference evaluator.

random_graphs.py [--count N] [--seed N] [--first N] [--jobs N]: graph number i of a seed is always
the same.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from random import Random

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import runtime

if __package__:
    from .support.random_kind import Kind, Main
else:
    from support.random_kind import Kind, Main

NUM_NODES, MOST_RANK, MOST_AXES = 30, 4, 5
SHAPES = ((3, 5), (1, 1), (2, 7), (6, 2), (4, 4))
_UNARY = ("Abs", "Neg", "Relu", "Sigmoid", "Tanh", "Floor", "Erf", "Sin", "Round", "Softplus")
_BINARY = ("Add", "Mul", "Sub", "Max", "Min")
_REDUCE = ("ReduceMean", "ReduceMax", "ReduceSum", "ReduceL2")

Shape = tuple[str, ...]  # of words: equal words are equal extents


class Graph:
    """A graph that grows by one operator at a time; its values are bounded float32."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.nodes: list[onnx.NodeProto] = []
        numbers = {"one": np.float32(1), "quarter": np.float32(0.25)}
        self.constants = [onnx.numpy_helper.from_array(array, n) for n, array in numbers.items()]
        self.values: dict[str, Shape] = {"x": ("a", "b"), "z": ("b", "3"), "w": ("2", "a")}
        self.inputs = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [_extent(e) for e in shape])
            for name, shape in self.values.items()
        ]

    def grow(self) -> None:
        """Add an operator that fits a value."""
        while not self.random.choice(_KINDS)(self):
            pass

    def model(self) -> onnx.ModelProto:
        """Return the model; its result is the last value, and one before."""
        names = list(self.values)
        chosen = [names[-1], *self.random.sample(names[3:-1], 1)]
        outputs = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * len(self.values[name]))
            for name in chosen
        ]
        graph = helper.make_graph(self.nodes, "g", self.inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", 23)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    # ---- Parts

    def value(self) -> str:
        """Choose a value, late ones more often."""
        names = list(self.values)
        return names[-1 - min(int(self.random.expovariate(0.3)), len(names) - 1)]

    def add(self, kind: str, inputs: list[str], shape: Shape, **attributes: object) -> bool:
        """Add a node."""
        if len(shape) > MOST_RANK or len("".join(shape)) > 60:
            return False
        name = f"v{len(self.values)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        self.values[name] = shape
        return True

    def ints(self, *numbers: int) -> str:
        """Add a constant."""
        name = f"c{len(self.constants)}"
        array = np.array(numbers, np.int64)
        self.constants.append(onnx.numpy_helper.from_array(array, name))
        return name

    def moved(self, x: str) -> str:
        """Add a quarter: a Tanh is 1 or almost 1, and both have one integer then."""
        name = f"m{len(self.nodes)}"
        self.nodes.append(helper.make_node("Add", [x, "quarter"], [name]))
        return name

    # ---- Operators

    def unary(self) -> bool:
        """Take each element."""
        x = self.value()
        kind = self.random.choice(_UNARY)
        source = self.moved(x) if kind == "Floor" else x
        return self.add(kind, [source], self.values[x])

    def binary(self) -> bool:
        """Take two values of one shape, or one that broadcasts."""
        x = self.value()
        shape = self.values[x]
        others = [
            name
            for name, other in self.values.items()
            if len(other) <= len(shape)
            and all(e in (o, "1") for e, o in zip(other[::-1], shape[::-1], strict=False))
        ]
        kind = self.random.choice(_BINARY)
        made = self.add(kind, [x, self.random.choice(others)], shape)
        return made and self.add("Tanh", [list(self.values)[-1]], shape)

    def transpose(self) -> bool:
        """Change the order of the axes."""
        x = self.value()
        if not self.values[x]:
            return False
        perm = self.random.sample(range(len(self.values[x])), len(self.values[x]))
        return self.add("Transpose", [x], tuple(self.values[x][i] for i in perm), perm=perm)

    def flatten(self) -> bool:
        """Join two axes, by a shape that is computed."""
        x = self.value()
        shape = self.values[x]
        if len(shape) < 2:
            return False
        return self.add(
            *("Reshape", [x, self.ints(-1, *([int(shape[-1])] if shape[-1].isdigit() else []))]),
            (f"({'*'.join(shape[:-1])})", shape[-1])
            if shape[-1].isdigit()
            else (f"({'*'.join(shape)})",),
        )

    def unsqueeze(self) -> bool:
        """Add an axis of one."""
        x = self.value()
        at = self.random.randint(0, len(self.values[x]))
        shape = list(self.values[x])
        return self.add("Unsqueeze", [x, self.ints(at)], (*shape[:at], "1", *shape[at:]))

    def concat(self) -> bool:
        """Join two values along an axis."""
        x = self.value()
        shape = self.values[x]
        if not shape:
            return False
        axis = self.random.randrange(len(shape))
        others = [
            name
            for name, other in self.values.items()
            if len(other) == len(shape)
            and other[:axis] + other[axis + 1 :] == shape[:axis] + shape[axis + 1 :]
        ]
        other = self.random.choice(others)
        whole = f"({shape[axis]}+{self.values[other][axis]})"
        return self.add("Concat", [x, other], (*shape[:axis], whole, *shape[axis + 1 :]), axis=axis)

    def take(self) -> bool:
        """Take some entries of an axis, from both ends."""
        x = self.value()
        shape = self.values[x]
        if not shape:
            return False
        axis = self.random.randrange(len(shape))
        picked = (*shape[:axis], "2", *shape[axis + 1 :])
        return self.add("Gather", [x, self.ints(0, -1)], picked, axis=axis)

    def backwards(self) -> bool:
        """Reverse an axis."""
        x = self.value()
        if not self.values[x]:
            return False
        axis = self.random.randrange(len(self.values[x]))
        least = -(1 << 63) + 1
        numbers = [self.ints(n) for n in (-1, least, axis, -1)]
        return self.add("Slice", [x, *numbers], self.values[x])

    def reduce(self) -> bool:
        """Reduce an axis, which stays or goes."""
        x = self.value()
        shape = self.values[x]
        if not shape:
            return False
        axis, keeps = self.random.randrange(len(shape)), self.random.randint(0, 1)
        left = (*shape[:axis], *["1"] * keeps, *shape[axis + 1 :])
        kind = self.random.choice(_REDUCE)
        made = self.add(kind, [x, self.ints(axis)], left, keepdims=keeps)
        return made and self.add("Tanh", [list(self.values)[-1]], left)

    def rows(self) -> bool:
        """Softmax along an axis."""
        x = self.value()
        if not self.values[x]:
            return False
        axis = self.random.randrange(len(self.values[x]))
        return self.add("Softmax", [x], self.values[x], axis=axis)

    def sums(self) -> bool:
        """Sum up to each element."""
        x = self.value()
        if not self.values[x]:
            return False
        axis = self.random.randrange(len(self.values[x]))
        name = f"c{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.int64(axis), name))
        made = self.add("CumSum", [x, name], self.values[x], reverse=1)
        return made and self.add("Tanh", [list(self.values)[-1]], self.values[x])

    def matmul(self) -> bool:
        """Multiply with the transpose."""
        x = self.value()
        shape = self.values[x]
        if len(shape) != 2 or not self.add("Transpose", [x], shape[::-1], perm=[1, 0]):
            return False
        turned = list(self.values)[-1]
        made = self.add("MatMul", [x, turned], (shape[0], shape[0]))
        return made and self.add("Sigmoid", [list(self.values)[-1]], (shape[0], shape[0]))

    def expand(self) -> bool:
        """Repeat a row as often as another value has rows, by a computed shape."""
        x = self.value()
        shape = self.values[x]
        if len(shape) != 1:
            return False
        name = f"s{len(self.nodes)}"
        self.nodes.append(helper.make_node("Shape", ["x"], [f"{name}a"], end=1))
        self.nodes.append(helper.make_node("Shape", [x], [f"{name}b"]))
        self.nodes.append(helper.make_node("Concat", [f"{name}a", f"{name}b"], [name], axis=0))
        return self.add("Expand", [x, name], ("a", *shape))

    def chosen(self) -> bool:
        """Choose between a value and a number."""
        x = self.value()
        source = self.moved(x)
        names = [f"b{len(self.nodes)}", f"i{len(self.nodes)}"]
        self.nodes.append(helper.make_node("Cast", [source], [names[1]], to=TensorProto.INT64))
        self.nodes.append(helper.make_node("Cast", [names[1]], [names[0]], to=TensorProto.BOOL))
        return self.add("Where", [names[0], x, "one"], self.values[x])


_KINDS = (
    *(Graph.unary, Graph.binary, Graph.binary, Graph.transpose, Graph.flatten, Graph.unsqueeze),
    *(Graph.concat, Graph.take, Graph.backwards, Graph.reduce, Graph.rows, Graph.sums),
    *(Graph.matmul, Graph.expand, Graph.chosen),
)


def _extent(word: str) -> int | str:
    return int(word) if word.isdigit() else word


def make(seed: int, number: int) -> onnx.ModelProto:
    """Make the graph of a number."""
    graph = Graph(Random(seed << 32 | number))
    while len(graph.nodes) < NUM_NODES:
        graph.grow()
    return graph.model()


def check(model: onnx.ModelProto, main: Main) -> str:
    """Compare a model for each shape; return what differs."""
    reference = ReferenceEvaluator(model)
    for a, b in SHAPES:
        random = np.random.default_rng(a * 10 + b)
        sizes = {"x": (a, b), "z": (b, 3), "w": (2, a)}
        given = {name: random.normal(size=size).astype(np.float32) for name, size in sizes.items()}
        expected, found = reference.run(None, given), main(*given.values())
        shapes = [array.shape for array in found], [np.shape(array) for array in expected]
        if shapes[0] != shapes[1]:
            return f"a = {a}, b = {b}: shapes {shapes[0]}, expected {shapes[1]}"
        if not _is_near(found, expected):
            # Another rounding before a Floor or a Cast; ONNX Runtime rounds as we do.
            session = onnxruntime.InferenceSession(model.SerializeToString())
            if not _is_near(found, session.run(None, given)):
                return f"a = {a}, b = {b}: other values than both references"
    return ""


def _is_near(found: Sequence[runtime.Tensor], expected: Sequence[np.ndarray]) -> bool:
    return all(
        np.allclose(one.numpy(), other, rtol=1e-3, atol=1e-4, equal_nan=True)
        for one, other in zip(found, expected, strict=True)
    )


KIND = Kind(make, check)
if __name__ == "__main__":
    sys.exit(KIND.run(35, __doc__))
