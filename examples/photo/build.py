"""The modules that packer.toml makes by Python: code of llvmlite; and the filter bank's numbers."""

from pathlib import Path

import numpy as np
from llvmlite import ir

import packer


def gamma():
    """Build ``gamma(pixels, n, exponent)``: each value is clamped to 0..1 and raised to a power.

    libm has a function of this name too; calls in the library use the library's own.
    """
    f32, i64, pointer = ir.FloatType(), ir.IntType(64), ir.PointerType()
    module = ir.Module("gamma")
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer, i64, f32]), "gamma")
    pixels, n, exponent = function.args
    entry, head, body, end = map(function.append_basic_block, ("entry", "head", "body", "end"))
    ir.IRBuilder(entry).branch(head)

    builder = ir.IRBuilder(head)
    i = builder.phi(i64)
    builder.cbranch(builder.icmp_signed("<", i, n), body, end)

    builder = ir.IRBuilder(body)
    place = builder.gep(pixels, [i], source_etype=f32)
    value = builder.load(place, typ=f32)
    for beyond, limit in (("<", f32(0.0)), (">", f32(1.0))):
        value = builder.select(builder.fcmp_ordered(beyond, value, limit), limit, value)
    value = builder.call(module.declare_intrinsic("llvm.pow", [f32]), [value, exponent])
    builder.store(value, place)
    i.add_incoming(i64(0), entry)
    i.add_incoming(builder.add(i, i64(1)), body)
    builder.branch(head)

    ir.IRBuilder(end).ret_void()
    functions = {"gamma": "void(float *pixels, int64_t n, float exponent)"}
    return packer.LLVMModule(module, functions=functions)


def filters(size=7, sigma=1.3):
    """Compute the bank: the slope of a Gaussian in four directions, (4, size, size) float32.

    The scale is such that a step of a third of the range from black to white gives 1.
    """
    y, x = np.mgrid[:size, :size] - size // 2
    hill = np.exp(-(x**2 + y**2) / (2 * sigma**2))
    angles = np.deg2rad([0, 45, 90, 135])[:, None, None]
    slopes = (np.cos(angles) * x + np.sin(angles) * y) * hill
    return (6 * slopes / np.abs(slopes).sum(axis=(1, 2), keepdims=True)).astype(np.float32)


if __name__ == "__main__":
    np.save(Path(__file__).with_name("filters.npy"), filters())
