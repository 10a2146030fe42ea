"""Compile models of many small operators with real TVM, then time its virtual machine on demand.

python benchmarks/vm_peer.py FOLDER

Prints a line "<name> <instructions>" for each model and an empty one; then reads lines "<name>
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


def make(folder: Path) -> dict[str, Any]:
    """Compile, export and load the models; return the functions by name."""
    functions = {}
    for name, extent in {"static": 4, "dynamic": tirx.Var("n", "int64")}.items():
        executable = tvm.compile(chain(extent), target="llvm")
        executable.export_library(str(folder / f"{name}.so"))
        module = tvm.runtime.load_module(str(folder / f"{name}.so"))
        functions[name] = relax.VirtualMachine(module, tvm.cpu())["main"]
        count = sum(line.startswith("  ") for line in executable.as_text().splitlines())
        print(name, count)
    return functions


def main() -> None:
    """Make the models, then answer until the input ends."""
    functions = make(Path(sys.argv[1]))
    print(flush=True)
    x = tvm.runtime.tensor(np.ones(4, "float32"))
    for line in sys.stdin:
        name, calls = line.split()
        function = functions[name]
        for _ in range(WARM):
            function(x)
        start = perf_counter()
        for _ in range(int(calls)):
            function(x)
        print(perf_counter() - start, flush=True)


main()
