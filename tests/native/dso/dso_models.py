"""Libraries that run, and the scripts of calls (dso_script.py) that use all that they have.

``dso_models.py FOLDER`` exports them, packs the golden and malformed blobs of the tests, and writes
each script as FOLDER/<name>.txt.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import packer
import runtime
from runtime.modules.vm import load as load_bytecode
from runtime.serial.stream import Reader

ROOT = Path(__file__).parents[3]
if __name__ == "__main__":
    sys.path.append(str(ROOT))  # after the installed packages

from tests.fuzz.seeds import safetensors  # noqa: E402
from tests.support.compile import compile_c  # noqa: E402
from tests.support.dso_script import tensor  # noqa: E402
from tests.support.graphs import factory, graph, host, null, op, sum_graph  # noqa: E402
from tests.support.paths import GOLDEN  # noqa: E402
from tests.support.vm_assembler import (  # noqa: E402
    TWICE,
    TWICE_SOURCE,
    Code,
    Program,
    call,
    doubling,
    packed,
    reg,
    ret,
)

X = np.arange(6, dtype="f4").reshape(2, 3)
OPENCL = """
__kernel void twice_kernel(__global const float *x, __global float *y) {
  y[get_global_id(0)] = 2 * x[get_global_id(0)];
}
"""
LAUNCH = """
#include "dso_packer.h"
DSO_EXPORT int __tvm_ffi_twice(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  (void)handle, (void)count;
  return dso_call("twice_kernel", result, args[0], args[1], dso_int(1), dso_int(6));
}
"""
INIT = (
    "static const float *w; void __init_f(const float *x) { w = x; } float f(void) { return *w; }"
)
INIT_DECLARED = {"__init_f": "void(const float *x)", "f": "float(void)"}


def graph_model(path: Path) -> list[str]:
    """A graph executor, used rightly and wrongly."""
    packer.export_library(factory(sum_graph(), {"w": X + 1}, host()), path)
    run = ["call 1 run", "call 1 get_output i:0"]
    wrong = ["call 1 set_input s:nothing " + tensor(X), "call 1 get_output i:7"]
    return [
        f"load {path}",
        "call 0 default d:1:0",
        *("call 1 get_num_inputs", "call 1 get_num_outputs", "call 1 get_input_index s:w"),
        f"call 1 set_input s:x {tensor(X)}",
        *run,
        *wrong,
        f"call 1 set_input i:1 {tensor(X)}",
        *run,
        *("call 0 get_graph_json", "call 0 default"),
        *("weight 0 w", "drop 0", *run, "drop 1"),
    ]


def opencl_model(path: Path) -> list[str]:
    """A graph over the CPU and an OpenCL device."""
    nodes = [null("x"), op("up", "__copy", [0]), op("y", "twice", [1]), op("down", "__copy", [2])]
    fields = graph(nodes, [3])
    fields["attrs"]["device_index"] = ["list_int", [1, 4, 4, 1]]
    info = runtime.FunctionInfo("twice_kernel", ["handle"] * 2, ["blockIdx.x", "threadIdx.x"])
    compiled = compile_c(LAUNCH, path.with_suffix(".o"), "-c")
    code = packer.StaticLibraryModule(compiled)
    code.import_module(runtime.DeviceModule("opencl", OPENCL, "cl", [info]))
    packer.export_library(factory(fields, {}, code), path)
    run = [f"call 1 set_input s:x {tensor(X)}", "call 1 run", "call 1 get_output i:0"]
    return [f"load {path}", "call 0 default d:1:0 d:4:0", *run, *run]


def vm_model(path: Path) -> list[str]:
    """Bytecode over host code, called by name and as a virtual machine."""
    model = load_bytecode(Reader(doubling().payload()))
    model.import_module(packer.CSourceModule(TWICE_SOURCE, functions={"twice": TWICE}))
    packer.export_library(model, path, format="tvm-ffi")
    x = tensor(np.arange(4, dtype="f4"))
    return [
        *(f"load {path}", f"call 0 main {x}", "call 0 main i:1", "call 0 main"),
        *("call 0 vm_load_executable", "call 1 vm_initialization i:1 i:0 i:2"),
        *(f"call 1 main {x}", f"call 1 set_input s:main {x}", "call 1 invoke_stateful s:main"),
        *("call 1 get_output s:main", "call 1 get_output_arity s:main"),
        *("call 1 get_function_arity s:main", "call 1 get_output s:other", "drop 0", "drop 1"),
    ]


def tuples_model(path: Path) -> list[str]:
    """Tuples, shapes and strided tensors, which bytecode takes and returns."""
    swap = Code("swap", ["x", "y"], [call(2, 1, reg(1), reg(0)), ret(2)], 3)
    program = Program([swap, packed("vm.builtin.make_tuple")])
    packer.export_library(load_bytecode(Reader(program.payload())), path)
    nested = f"( {tensor(X, 'm')} ( h:2,3 i:4 ( ) ) )"
    return [f"load {path}", f"call 0 swap {nested} s:a", f"call 0 swap {tensor(X.T)} n"]


def weights_model(path: Path) -> list[str]:
    """Constants that host code gets, and a safetensors module beside them."""
    constants = runtime.ConstLoaderModule({"c": X + 5}, {"f": ["c"]})
    constants.import_module(packer.CSourceModule(INIT, functions=INIT_DECLARED))
    constants.import_module(runtime.SafetensorsModule(safetensors()))
    packer.export_library(constants, path)
    names = ["weight 0 c", "weight 0 w", "weight 0 b"]
    return [f"load {path}", "call 0 f", "call 0 f i:1", *names, "call 0 f", "drop 0"]


MODELS: dict[str, Callable[[Path], list[str]]] = {
    "graph": graph_model,
    "vm": vm_model,
    "tuples": tuples_model,
    "weights": weights_model,
    "opencl": opencl_model,
}


def pack(path: Path) -> None:
    """Make a library that holds a blob."""
    blob = path.with_suffix(".bin").read_bytes()
    values = ",".join(map(str, len(blob).to_bytes(8, "little") + blob))
    compile_c(f"const unsigned char __tvm_dev_mblob[] = {{{values}}};", path.with_suffix(".so"))


def main(folder: Path) -> None:
    """Write all files."""
    for name, make in MODELS.items():
        lines = make(folder / f"model_{name}.so")
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    for blob in sorted(GOLDEN.glob("**/*.bin")):
        if blob.stat().st_size < 8192:
            path = folder / f"{blob.parent.name}_{blob.name}"
            path.write_bytes(blob.read_bytes())
            pack(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
