"""Trees of modules that TVM exports: functions, constants, kernels. Read by TVM's Python only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import functions
import numpy as np
import tvm
import tvm_ffi
from calls import floats
from tvm.runtime import _ffi_api

HOSTS = ("llvm", "c")
# This TVM makes OpenCL code, but cannot run it; the same functions for the CPU are the oracle.
REFERENCE = "reference"
DEVICES = (REFERENCE, "opencl_llvm", "opencl_c")

# As TVM calls it: one Array of all constants. (TVM, src/runtime/const_loader_module.cc)
INITIALIZER = """
#include <tvm/ffi/c_api.h>
static const float* weights;
static int64_t initialised;
#ifdef __cplusplus
extern "C" {
#endif
float test_weight(int32_t index) { return weights[index] + (float)(initialised - 1); }
int __tvm_ffi___init_scale(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  if (num_args != 1 || args[0].type_index != kTVMFFIArray) return -1;
  const TVMFFISeqCell* cell = (const TVMFFISeqCell*)(args[0].v_obj + 1);
  const TVMFFIAny* item = (const TVMFFIAny*)cell->data;
  weights = (const float*)((const DLTensor*)(item->v_obj + 1))->data;
  initialised++;
  result->type_index = kTVMFFIInt;
  result->v_int64 = 0;
  return 0;
}
#ifdef __cplusplus
}
#endif
"""


def compiled(script: Any, target: str) -> Any:
    """Compile host code."""
    return tvm.compile(script, target=target).mod


def const_loader(arrays: dict[str, np.ndarray], symbols: dict[str, list[str]]) -> Any:
    """Make a module of constants."""
    create = tvm_ffi.get_global_func("ffi.Module.create.const_loader")
    return create({n: tvm.runtime.tensor(a) for n, a in arrays.items()}, symbols)


def constants(target: str) -> Any:
    """Constants that no code takes."""
    return const_loader({"c": floats(5)}, {})


def with_constants(target: str) -> Any:
    """Constants over the host code that takes them."""
    root = const_loader({"w": floats(8), "other": floats(3)}, {"scale": ["w"]})
    root.import_module(compiled(functions.Constant, target))
    root.import_module(_ffi_api.CSourceModuleCreate(INITIALIZER, "c", ["__init_scale"], ["w"]))
    return root


def nested(target: str) -> Any:
    """Host code in three modules, which merge, and constants below constants."""
    constants = const_loader({"a": floats(2)}, {})
    constants.import_module(const_loader({"b": floats(70, 3)}, {}))
    middle = compiled(functions.Plain, "llvm")
    middle.import_module(constants)
    root = compiled(functions.Parallel, target)
    root.import_module(compiled(functions.LlvmOnly, "llvm"))
    root.import_module(middle)
    return root


def kernels(target: str) -> Any:
    """Kernels, and the host code that launches them; or the expected results."""
    if target == REFERENCE:
        return compiled(functions.Serial, "llvm")
    host = target.removeprefix("opencl_")
    return compiled(functions.Kernels, tvm.target.Target("opencl", host=host))


def kernels_beside(*others: Callable[[str], Any]) -> Callable[[str], Any]:
    """Kernels in a tree with further modules."""

    def make(target: str) -> Any:
        root = kernels(target)
        for other in others:
            root.import_module(other("llvm"))
        return root

    return make


# name -> (the maker of the tree for a target, the targets)
LIBRARIES: dict[str, tuple[Callable[[str], Any], tuple[str, ...]]] = {
    "plain": (lambda target: compiled(functions.Plain, target), HOSTS),
    "errors": (lambda target: compiled(functions.Plain, target), HOSTS),
    "parallel": (lambda target: compiled(functions.Parallel, target), HOSTS),
    "packed": (lambda target: compiled(functions.Packed, target), HOSTS),
    "llvm_only": (lambda target: compiled(functions.LlvmOnly, target), ("llvm",)),
    "const": (with_constants, HOSTS),
    "nested": (nested, HOSTS),
    "kernels": (kernels, DEVICES),
    "kernels_const": (kernels_beside(constants), DEVICES),
    "kernels_parallel": (
        kernels_beside(lambda target: compiled(functions.Parallel, target)),
        DEVICES,
    ),
    "kernels_nested": (kernels_beside(nested, constants), DEVICES),
}
