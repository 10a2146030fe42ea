"""Let every n-th allocation of the core fail, for all n, in each operation; prints what happened.

each_allocation.py FOLDER OPERATION core|python: FOLDER is empty; `core` and `python`
name the allocations. Exits with 1 if a failure ends in anything but an error of the project or the
right result, or if it leaks.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

import packer
import runtime
from runtime import _core
from runtime.modules.vm import load as load_bytecode
from runtime.serial.stream import Reader

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.stress.load_rounds import left
from tests.support import graphs, vm_assembler
from tests.support.compile import compile_c
from tests.support.paths import C_SOURCES

COMPLETE = "complete"
ROUNDS = 4
MOST = 100_000  # allocations of one operation: more is a loop that never ends

SOURCE = """
#include "dso_packer.h"
double sum(const double *x, int64_t n) { double s = 0; while (n-- > 0) s += x[n]; return s; }
const char *text(const char *a) { return a; }
dso_status scaled(int64_t a) { return dso_call("scale", NULL, dso_int(a)); }
DSO_EXPORT int __tvm_ffi_apply(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  (void)handle;
  return dso_call_function((dso_object *)args[0].v_ptr, result, args + 1, count - 1);
}
"""
FUNCTIONS = {
    "sum": "double(const double *x, int64_t n)",
    "text": "const char *(const char *a)",
    "scaled": "dso_status(int64_t a)",
}
KERNEL = "__kernel void fill(__global int *x, int n) { x[get_global_id(0)] = n; }"


def make_library(folder: Path) -> Path:
    """Export host code, a kernel, bytecode and weights as one file."""
    root = packer.CSourceModule(SOURCE, functions=FUNCTIONS)
    fill = runtime.FunctionInfo("fill", ["handle", "int32"], ["blockIdx.x"])
    root.import_module(runtime.DeviceModule("opencl", KERNEL, "cl", [fill]))
    root.import_module(runtime.ConstLoaderModule({"w": np.arange(6, dtype="f4")}, {}))
    root.import_module(load_bytecode(Reader(memoryview(vm_assembler.doubling().payload()))))
    return packer.export_library(root, folder / "model.so")


class Scaling(runtime.Module):
    """A module that the host code imports."""

    type_key = "scaling"

    def find_function(self, name: str) -> Callable[..., Any] | None:
        """The one function."""
        return abs if name == "scale" else None


def load(folder: Path) -> Callable[[], Any]:
    """Load a file that no other module keeps open."""
    path = make_library(folder)

    def operation() -> int:
        return len(list(runtime.load(path).imported_modules))

    return operation


def load_from_bytes(folder: Path) -> Callable[[], Any]:
    """Load it from memory."""
    data = make_library(folder).read_bytes()
    return lambda: len(list(runtime.load_from_bytes(data).imported_modules))


def call(folder: Path) -> Callable[[], Any]:
    """Call with an array, with text, with a callable, and through the imports."""
    path = make_library(folder)
    array, text, many = np.arange(9.0), "text" * 9, list(range(40))

    def operation() -> Any:
        module = runtime.load(path)
        # If CPython has no memory for a call's frame, it leaks the arguments: then the module of an
        # earlier round is still there, with its imports.
        module.clear_imports()
        module.import_module(Scaling())
        results = module["sum"](array, 9), module["text"](text)
        module["scaled"](-7)
        return *results, module["apply"](lambda *values: sum(values), *many)

    return operation


def fail(folder: Path) -> Callable[[], Any]:
    """Call a failing function, through C code."""
    module = runtime.load(make_library(folder))

    def operation() -> Any:
        try:
            module["apply"](lambda value: [][value], 1)
        except IndexError as error:
            return str(error)

    return operation


def run_graph(folder: Path) -> Callable[[], Any]:
    """Make an executor and run it."""
    nodes = [graphs.null("x"), graphs.null("y"), graphs.op("z", "add", [0, 1])]
    graph = graphs.graph(nodes, [2])
    library = runtime.load(packer.export_library(graphs.host(), folder / "graph.so"))
    ones = np.ones((2, 3), "f4")

    def operation() -> Any:
        # The name of a device, since CPython may leak an argument, as in `call`.
        executor = runtime.graph_executor.create(json.dumps(graph), library, "cpu")
        executor.run(x=ones, y=ones)
        return executor.get_output(0).numpy().tolist()

    return operation


def run_bytecode(folder: Path) -> Callable[[], Any]:
    """Load bytecode and run it."""
    source, functions = vm_assembler.TWICE_SOURCE, {"twice": vm_assembler.TWICE}
    host = packer.CSourceModule(source, functions=functions)
    library = runtime.load(packer.export_library(host, folder / "twice.so"))
    payload = memoryview(vm_assembler.doubling().payload())

    def operation() -> Any:
        module = load_bytecode(Reader(payload))
        module.import_module(library)
        return module["main"](np.arange(4, dtype="f4")).numpy().tolist()

    return operation


def use_tensors(folder: Path) -> Callable[[], Any]:
    """Make tensors, copy them and exchange them."""
    array = np.arange(12, dtype="f4").reshape(3, 4)

    def operation() -> Any:
        tensor = runtime.tensor(array[:, ::2], "cpu:0")
        same = runtime.from_dlpack(np.from_dlpack(tensor))
        empty = runtime.empty((3, 2), "float32")
        empty.copy_from(same)
        return empty.numpy().tolist()

    return operation


def call_declared(folder: Path) -> Callable[[], Any]:
    """Call with keywords, handles, structs and complex numbers."""
    source = (C_SOURCES / "declared.c").read_text()
    path = compile_c(source, folder / "declared.so")
    data = np.array([2, 3], "f4")

    def operation() -> Any:
        module = runtime.load(path)
        with module["counter_new"](3) as counter:
            record = {"x": 1.0, "data": data, "name": "abc", "counter": counter}
            results = [module["update"](record), module["counter_next"](counter), record["x"]]
        results += [module["line_of"]({"x": 1, "n": 2}), module["square"](1 + 2j)]
        results += [module["scale"](2, offset=0.0), module["count_texts"](["a", "b" * 20], n=2)]
        return [*results, str(inspect.signature(module["scale"])), module["texts"]()]

    return operation


def launch_kernel(folder: Path) -> Callable[[], Any]:
    """Build a kernel and launch it."""
    path = make_library(folder)

    def operation() -> Any:
        tensor = runtime.empty((4,), "int32", "opencl:0")
        runtime.load(path)["fill"](tensor, 7, 4)
        return tensor.numpy().tolist()

    return operation


OPERATIONS = {
    made.__name__: made
    for made in (
        *(load, load_from_bytes, call, fail, run_graph, run_bytecode, use_tensors),
        *(call_declared, launch_kernel),
    )
}


# A driver's memory grows with each launch; the sanitizers watch ours there.
GROWS = {"launch_kernel"}
# The error that CPython, not this project, raises when one of its allocations fails.
CPYTHONS = (
    "TypeError: expected str, bytes or os.PathLike object, not PosixPath",
    "NotImplementedError: multi-dimensional sub-views are not implemented",
    "SystemError: <function fail.<locals>",
)

Fail = Callable[[int], int]


def python_hook(folder: Path) -> Fail:
    """Make the hook of Python's allocators: as the core's, which is `_core.fail_allocation`."""
    output = folder / "failing_allocator.so"
    include = f"-I{sysconfig.get_path('include')}"
    source = C_SOURCES / "failing_allocator.c"
    subprocess.run(["cc", "-shared", "-fPIC", include, source, "-o", output], check=True)
    spec = spec_from_file_location("failing_allocator", output)
    assert spec is not None
    fail: Fail = module_from_spec(spec).fail_allocation
    return fail


def outcome(operation: Callable[[], Any], fail: Fail, n: int, expected: Any) -> str:
    """Say how an operation ends whose n-th allocation fails."""
    accepted = runtime.PackerError if fail is _core.fail_allocation else MemoryError
    fail(n)
    try:
        result = operation()
    except (accepted, runtime.PackerError) as error:
        missing = fail(0)
        text = f"{type(error).__name__}: {error}"
    except BaseException as error:
        missing = fail(0)
        text = f"{type(error).__name__}: {error}"
        if accepted is runtime.PackerError or not text.startswith(CPYTHONS):
            text = f"FOREIGN {text}"
    else:
        missing = fail(0)
        text = "right" if result == expected else f"WRONG {result!r}"
    return COMPLETE if missing > 0 else text


def growth(operation: Callable[[], Any], fail: Fail, n: int, expected: Any) -> int:
    """Count the bytes of heap that each failure of the n-th allocation leaves allocated."""

    def heap_after(rounds: int) -> int:
        for _ in range(rounds):
            outcome(operation, fail, n, expected)
        return left().heap

    before = heap_after(2)
    after = [heap_after(ROUNDS) for _ in range(2)]
    return min(after[0] - before, after[1] - after[0]) // ROUNDS


def main(folder: Path, name: str, allocator: str) -> int:
    """Fail the first, the second, ... allocation, until an operation needs fewer."""
    operation = OPERATIONS[name](folder)
    expected = operation()  # so that objects that are made once exist
    fail = _core.fail_allocation if allocator == "core" else python_hook(folder)
    outcomes: dict[str, list[int]] = {}
    bad = 0
    for n in range(1, MOST):
        text = outcome(operation, fail, n, expected)
        if text == COMPLETE:
            break
        outcomes.setdefault(text, []).append(n)
        is_watched = allocator == "core" and name not in GROWS
        if is_watched and (leaked := growth(operation, fail, n, expected)) > 0:
            bad += 1
            print(f"LEAK of {leaked} bytes when allocation {n} fails: {text}")
    for text, numbers in outcomes.items():
        bad += text.startswith(("FOREIGN", "WRONG"))
        print(f"{len(numbers):5} x {text}  {numbers[:4]}")
    print(f"{n - 1} allocations")
    return int(bad > 0 or not 1 < n < MOST - 1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
