"""Random graphs of 30 operators with open axes, beside ONNX's reference evaluator.

random_graphs.py [--count N] [--seed N] [--first N] [--jobs N]: graph number i of a seed is always
the same.
"""

from __future__ import annotations

import argparse
import io
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, redirect_stderr
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import packer
import runtime

if __package__:
    from .support.together import mains_of
else:
    from support.together import mains_of

Main = Callable[..., Any]
_TOGETHER, _TASKS = 200, 10  # graphs in one library, libraries of one process
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


class Kind(NamedTuple):
    """A kind of random graphs."""

    make: Callable[[int, int], onnx.ModelProto]
    check: Callable[[onnx.ModelProto, Main], str]

    def findings(self, seed: int, numbers: Sequence[int]) -> list[str]:
        """Compare the graphs of some numbers, in one library; return what differs or is refused."""
        warnings.simplefilter("ignore")
        models = {number: self.make(seed, number) for number in numbers}
        made: dict[int, runtime.Module] = {}
        found: dict[int, str] = {}
        for number, model in models.items():
            with _noted(found, number):
                made[number] = packer.from_onnx(model, options=["-O0"])
        mains: dict[int, Main] = {}
        with tempfile.TemporaryDirectory() as folder, _noted(found, numbers[0]):
            mains = mains_of(made, Path(folder))
        for number, main in mains.items():
            with _noted(found, number):
                found[number] = self.check(models[number], main)
        return [f"graph {number}: {text}" for number, text in sorted(found.items()) if text]

    def _together(self, seed: int, parts: Sequence[range], jobs: int) -> Iterator[str]:
        """Compare the graphs of some libraries in new processes, which a crash may end."""
        with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
            try:
                for texts in pool.map(partial(self.findings, seed), parts):
                    yield from texts
            except BrokenProcessPool:
                yield f"graphs {parts[0][0]} to {parts[-1][-1]}: a process crashed"

    def run(self, seed: int, description: str) -> int:
        """Compare graphs, some in each process; return 1 if one differs or is refused."""
        parser = argparse.ArgumentParser(description=description.partition("\n")[0])
        parser.add_argument("--count", type=int, default=100, help="graphs (%(default)s)")
        parser.add_argument("--seed", type=int, default=seed, help="(%(default)s)")
        parser.add_argument(
            "--first", type=int, default=0, help="number of the first (%(default)s)"
        )
        parser.add_argument(
            "--jobs", type=int, default=os.cpu_count(), help="processes (%(default)s)"
        )
        options = parser.parse_args()
        os.environ["PACKER_CACHE"] = "off"  # no two graphs are equal
        if shutil.which("clang"):  # compiles wrappers in a fifth of GCC's time
            os.environ.setdefault("CC", "clang")
            os.environ["CCC_OVERRIDE_OPTIONS"] = "# O0"  # also of the wrappers
        start, end, bad = time.monotonic(), options.first + options.count, 0
        parts = [range(at, min(at + _TOGETHER, end)) for at in range(options.first, end, _TOGETHER)]
        step = _TASKS * options.jobs
        for at in range(0, len(parts), step):
            for text in self._together(options.seed, parts[at : at + step], options.jobs):
                bad += 1
                print(text, flush=True)
        seconds = time.monotonic() - start
        print(f"seed {options.seed}, {options.count} graphs, {bad} findings, in {seconds:.0f} s")
        return int(bad > 0)


@contextmanager
def _noted(found: dict[int, str], number: int) -> Iterator[None]:
    """Note an exception of any class as what was found of a graph."""
    try:
        with redirect_stderr(io.StringIO()):  # notes of exports
            yield
    except Exception as error:
        found[number] = f"{type(error).__name__}: {str(error)[:300]}"


if __name__ == "__main__":
    sys.exit(Kind(make, check).run(35, __doc__))
