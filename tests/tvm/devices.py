"""Models for two devices: a value moves to the second one, and its results back."""

from __future__ import annotations

from typing import Any

import numpy as np

# SECOND is the second device, as TVM's script spells it.
_TWICE = """
# from tvm.script import ir as I
# from tvm.script import relax as R

@I.ir_module
class Module:
    I.module_global_infos({"vdevice": [I.vdevice("llvm", 0), I.vdevice(SECOND)]})
    @R.function
    def main(x: R.Tensor((8, 8), "float32", "llvm:0"), y: R.Tensor((8, 8), "float32", "llvm:0")):
        with R.dataflow():
            a = R.add(x, y)
            b = R.to_vdevice(a, "NAME")
            c = R.multiply(b, b)
            d = R.to_vdevice(c, "llvm:0")
            e = R.subtract(d, x)
            R.output(c, e)
        return (e, c)
"""

# The shapes are known at run time, and a constant is copied to the second device.
_DYNAMIC = """
# from tvm.script import ir as I
# from tvm.script import relax as R
# from tvm.script import tirx as T

@I.ir_module
class Module:
    I.module_global_infos({"vdevice": [I.vdevice("llvm", 0), I.vdevice(SECOND)]})
    @R.function
    def main(x: R.Tensor(("n", 8), "float32", "llvm:0")):
        n = T.int64()
        with R.dataflow():
            w = R.to_vdevice(R.const(0.25, "float32"), "NAME")
            b = R.to_vdevice(x, "NAME")
            c = R.multiply(b, w)
            d = R.to_vdevice(R.reshape(c, R.shape([8, n])), "llvm:0")
            e = R.add(d, d)
            R.output(e)
        return e
"""

_SOURCES = {"twice": _TWICE, "dynamic": _DYNAMIC}
NAMES = tuple(_SOURCES)
SHAPES = {"twice": [(8, 8), (8, 8)], "dynamic": [(6, 8)]}


def source_of(name: str, kind: str, index: int) -> str:
    """The model for a second device, as ``("opencl", 0)``."""
    text = _SOURCES[name].replace("SECOND", f'"{kind}", {index}')
    return text.replace("NAME", f"{kind}:{index}")


def inputs(name: str) -> list[Any]:
    """The arguments of a call of `main`."""
    numbers = np.random.default_rng(3)
    return [numbers.standard_normal(shape).astype("float32") for shape in SHAPES[name]]
