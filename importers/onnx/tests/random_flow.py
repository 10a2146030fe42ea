"""Random graphs of nested branches, loops and sequences, beside ONNX's reference evaluator.

random_flow.py [--count N] [--seed N] [--first N] [--jobs N]: graph number i of a seed is always the
same. All numbers are small multiples of a power of 2, so both results are equal to the last bit.
"""

from __future__ import annotations

import sys
from random import Random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

if __package__:
    from .support.random_kind import Kind, Main
else:
    from support.random_kind import Kind, Main

MOST_DEPTH, MOST_LENGTH = 3, 12
SIZES = (0, 1, 2, 5, 9)
_CONSTANTS = {
    **{f"f{i}": np.float32(i / 2) for i in range(-3, 4)},
    **{f"i{i}": np.int64(i) for i in range(-1, 5)},
    "first": np.array([0], np.int64),
    "most": np.array([MOST_LENGTH], np.int64),
    "all": np.array([-1], np.int64),
    "yes": np.array(True),
    "low": np.float32(-64),
    "high": np.float32(64),
}


class Block:
    """The nodes of a graph or a body; it sees the vectors of the blocks around it."""

    def __init__(self, random: Random, names: list[int], vectors: list[str], depth: int) -> None:
        self.random, self.names, self.depth = random, names, depth
        self.vectors = [*vectors]
        self.nodes: list[onnx.NodeProto] = []

    def add(self, kind: str, *inputs: str, outputs: int = 1, **attributes: object) -> str:
        """Add a node; returns its first output."""
        made = [self.fresh() for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, made, **attributes))
        return made[0]

    def fresh(self) -> str:
        """Return a name that no other value has: the evaluator does not hide outer values."""
        self.names[0] += 1
        return f"v{self.names[0] - 1}"

    def vector(self) -> str:
        """Choose a vector, late ones more often."""
        at = min(int(self.random.expovariate(0.5)), len(self.vectors) - 1)
        return self.vectors[-1 - at]

    def number(self) -> str:
        """Choose a constant."""
        return f"f{self.random.randint(-3, 3)}"

    def condition(self) -> str:
        """Add a comparison that the data decides."""
        total = self.add("ReduceSum", self.vector(), keepdims=0)
        return self.add(self.random.choice(("Less", "Greater")), total, self.number())

    def short(self, vector: str) -> str:
        """Cut a vector that may be long."""
        return self.add("Slice", vector, "first", "most", "first")

    def grow(self) -> None:
        """Add some operators, which make a vector."""
        kinds = [self.each, self.joined, self.chosen, self.gathered]
        kinds += [self.branch, self.loop, self.listed] if self.depth < MOST_DEPTH else []
        self.vectors.append(self.random.choice(kinds)())

    def inner(self, vectors: list[str]) -> Block:
        """Begin a body, and let it grow."""
        made = Block(self.random, self.names, [*self.vectors, *vectors], self.depth + 1)
        for _ in range(self.random.randint(1, 2)):
            made.grow()
        return made

    # ---- Operators that make a vector

    def each(self) -> str:
        """Take each element."""
        kind = self.random.choice(("Neg", "Abs", "Relu", "Add", "Sub", "Max", "Min"))
        if kind in ("Neg", "Abs", "Relu"):
            return self.add(kind, self.vector())
        return self.add("Clip", self.add(kind, self.vector(), self.number()), "low", "high")

    def joined(self) -> str:
        """Join two vectors."""
        return self.short(self.add("Concat", self.vector(), self.vector(), axis=0))

    def chosen(self) -> str:
        """Take the elements that are large."""
        vector = self.vector()
        return self.add("Compress", vector, self.add("Greater", vector, self.number()), axis=0)

    def gathered(self) -> str:
        """Take the elements of another vector where one is not 0."""
        vector = self.vector()
        places = self.add("NonZero", vector)
        return self.add("Gather", self.add("Neg", vector), self.add("Squeeze", places, "first"))

    def branch(self) -> str:
        """Run one of two bodies."""
        condition = self.condition()
        graphs = {}
        for name in ("then_branch", "else_branch"):
            body = self.inner([])
            graphs[name] = body.graph([], [body.vector()])
        return self.add("If", condition, **graphs)

    def loop(self) -> str:
        """Carry one or two vectors through rounds, which may end early and collect numbers."""
        count, collects = self.random.randint(1, 2), self.random.random() < 0.5
        carried = [self.vector() for _ in range(count)]
        inner = [self.fresh() for _ in range(count)]
        body = self.inner(inner)
        results = [body.short(body.vector()) for _ in range(count)]
        goes_on = body.condition() if self.random.random() < 0.3 else body.add("Identity", "yes")
        rows = [body.add("ReduceSum", results[0])] if collects else []
        graph = body.graph(inner, [*results, *rows], goes_on)
        rounds = f"i{self.random.randint(int(collects), 4)}"  # the evaluator wants a row
        made = self.add("Loop", rounds, "yes", *carried, outputs=count + collects, body=graph)
        last = int(made[1:]) + self.random.randrange(count + collects)
        is_rows = last == int(made[1:]) + count
        return self.add("Reshape", f"v{last}", "all") if is_rows else f"v{last}"

    def listed(self) -> str:
        """Collect vectors in a sequence, in rounds, and join them or take one."""
        start = self.add("SequenceConstruct", self.vector())
        inner = self.fresh()
        body = self.inner([])
        graph = body.graph([], [], body.add("Identity", "yes"))
        graph.input.append(helper.make_tensor_sequence_value_info(inner, TensorProto.FLOAT, None))
        made = body.add("SequenceInsert", inner, body.vector())
        graph.node.append(body.nodes[-1])
        graph.output.append(helper.make_tensor_sequence_value_info(made, TensorProto.FLOAT, None))
        sequence = self.add("Loop", f"i{self.random.randint(0, 3)}", "yes", start, body=graph)
        if self.random.random() < 0.5:
            return self.add("SequenceAt", sequence, f"i{self.random.choice((0, -1))}")
        return self.short(self.add("ConcatFromSequence", sequence, axis=0))

    def graph(self, inputs: list[str], outputs: list[str], goes_on: str = "") -> onnx.GraphProto:
        """Return the body of a branch, or of a loop with the condition `goes_on`."""
        first = []
        if goes_on:
            first = [
                helper.make_tensor_value_info(f"i_{goes_on}", TensorProto.INT64, ()),
                helper.make_tensor_value_info(f"b_{goes_on}", TensorProto.BOOL, ()),
            ]
        made = helper.make_graph(
            self.nodes,
            f"b_{self.names[0]}",
            [*first, *map(_float, inputs)],
            [*map(_float, outputs)],
        )
        if goes_on:
            made.output.insert(0, helper.make_tensor_value_info(goes_on, TensorProto.BOOL, ()))
        return made


def _float(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)


def make(seed: int, number: int) -> onnx.ModelProto:
    """Make the graph of a number."""
    block = Block(Random(seed << 32 | number), [0], ["x", "z"], 0)
    for _ in range(4):
        block.grow()
    outputs = block.vectors[-2:]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [name + "n"]) for name in "xz"]
    constants = [numpy_helper.from_array(array, name) for name, array in _CONSTANTS.items()]
    graph = helper.make_graph(block.nodes, "g", inputs, [*map(_float, outputs)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


def check(model: onnx.ModelProto, main: Main) -> str:
    """Compare a model for each pair of lengths; return what differs."""
    reference = ReferenceEvaluator(model)
    for size in SIZES:
        random = np.random.default_rng(size)
        given = {
            name: (random.integers(-4, 5, length) / 2).astype(np.float32)
            for name, length in (("x", size), ("z", 9 - size))
        }
        expected, found = reference.run(None, given), main(*given.values())
        for one, wanted in zip(found, expected, strict=True):
            if not np.array_equal(one.numpy(), np.asarray(wanted)):
                return (
                    f"x of {size}: {one.numpy().tolist()}, expected {np.asarray(wanted).tolist()}"
                )
    return ""


KIND = Kind(make, check)
if __name__ == "__main__":
    sys.exit(KIND.run(37, __doc__))
