"""Compile models of many small operators with real TVM, then time its virtual machine on demand.

python benchmarks/vm_peer.py FOLDER

Prints a line "<name> <instructions> <extent> ..." for each model, with the extents of its argument,
and an empty one; then reads lines "<name>
<calls>", and answers each with the seconds that the calls took. The libraries are FOLDER/<name>.so.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import tvm
from tvm import relax, tirx
from tvm.script import ir as I
from tvm.script import relax as R

OPERATORS = 300
WARM = 20  # calls before the measurement: this process has slept


def chain(extent: Any) -> tvm.IRModule:
    """A chain of operators, each on a vector of a few floats."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((extent,), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            value = x
            for index in range(OPERATORS):
                kinds = (relax.op.add, relax.op.multiply, relax.op.subtract)
                value = builder.emit(kinds[index % 3](value, x))
            output = builder.emit_output(value)
        builder.emit_func_output(output)
    return builder.get()


def mlp() -> tvm.IRModule:
    """Ten layers of 16 neurons: 20 operators."""
    weights = np.random.default_rng(1).standard_normal((10, 16, 16)).astype("float32") / 4
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 16), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            value = x
            for weight in weights:
                value = builder.emit(relax.op.matmul(value, relax.const(weight)))
                value = builder.emit(relax.op.nn.relu(value))
            output = builder.emit_output(value)
        builder.emit_func_output(output)
    return builder.get()


@I.ir_module
class Loop:
    """A while loop of 100 steps, as relax writes it: by recursion."""

    @R.function(private=True)
    def loop(i: R.Tensor((), "int64"), x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        again: R.Tensor((), "bool") = R.less(i, R.const(100, "int64"))
        if again:
            r = Loop.loop(R.add(i, R.const(1, "int64")), R.add(x, R.const(0.5, "float32")))
        else:
            r = x
        return r

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = Loop.loop(R.const(0, "int64"), x)
        return y


@I.ir_module
class Results:
    """Four results, of which one is the argument."""

    @R.function
    def main(x: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            y = R.add(x, x)
            z = R.multiply(y, x)
            w = R.subtract(z, y)
            R.output(y, z, w)
        return (x, y, z, w)


# By name: the model, the extents of its argument, and whether its table is per instruction.
MODELS = {
    "static": (lambda: chain(4), (4,), True),
    "dynamic": (lambda: chain(tirx.Var("n", "int64")), (4,), True),
    "mlp": (mlp, (1, 16), False),
    "loop": (lambda: Loop, (4,), False),
    "results": (lambda: Results, (4, 4), False),
}


def make(folder: Path) -> dict[str, Any]:
    """Compile, export and load the models; return the functions by name."""
    functions = {}
    for name, (model, extents, is_per_instruction) in MODELS.items():
        executable = tvm.compile(model(), target="llvm")
        executable.export_library(str(folder / f"{name}.so"))
        module = tvm.runtime.load_module(str(folder / f"{name}.so"))
        functions[name] = relax.VirtualMachine(module, tvm.cpu())["main"]
        lines = executable.as_text().splitlines()
        count = sum(line.startswith("  ") for line in lines) if is_per_instruction else 1
        print(name, count, *extents)
    return functions


def main() -> None:
    """Make the models, then answer until the input ends."""
    functions = make(Path(sys.argv[1]))
    print(flush=True)
    arguments = {
        name: tvm.runtime.tensor(np.ones(extents, "float32"))
        for name, (_, extents, _) in MODELS.items()
    }
    for line in sys.stdin:
        name, calls = line.split()
        function, x = functions[name], arguments[name]
        for _ in range(WARM):
            function(x)
        start = perf_counter()
        for _ in range(int(calls)):
            function(x)
        print(perf_counter() - start, flush=True)


main()
