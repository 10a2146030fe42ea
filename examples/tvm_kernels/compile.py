"""Compile an ONNX model with TVM and fast kernels: ``python compile.py MODEL.onnx MODEL.so [CPU]``.

Needs apache-tvm, onnx and dso-packer. CPU is a level such as x86-64-v3, the default.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

import packer
import packer.operators
import runtime

KERNELS = Path(__file__).with_name("kernels.c")


def conv2d(_builder, call):
    """Lower a convolution with constant weights to the function conv2d of kernels.c."""
    (x, weight), attributes = call.args, call.attrs
    if not is_weight(weight, 4) or attributes.data_layout != "NCHW":
        return DEFAULT["relax.nn.conv2d"](_builder, call)
    array, groups = weight.value.numpy(), int(attributes.groups)
    block = 16 if array.shape[1] * groups >= 16 else 1
    packed = packer.operators.pack_conv2d(array, groups=groups, block=block)
    numbers = [*array.shape[2:], *attributes.strides, *attributes.dilation]
    numbers += [*attributes.padding[:2], groups]
    return to_c("conv2d", call, x, relax.const(packed), *map(relax.prim_value, map(int, numbers)))


def matmul(_builder, call):
    """Lower a product to the functions dense and matmul of kernels.c."""
    a, b = call.args
    if is_weight(b, 2):
        packed = packer.operators.pack_matmul(b.value.numpy())
        return to_c("dense", call, a, relax.const(packed))
    before = [tuple(side.ty.shape.values[:-2]) for side in (a, b)]
    if before[0] != before[1] or a.ty.dtype != "float32":
        return DEFAULT["relax.matmul"](_builder, call)
    return to_c("matmul", call, a, b)


DEFAULT = {
    name: tvm.ir.Op.get(name).get_attr("FLegalize") for name in ("relax.nn.conv2d", "relax.matmul")
}


def is_weight(value, ndim):
    """Return True if a value is a constant of float32 with this number of dimensions."""
    constant = isinstance(value, tvm.ir.GenericConst) and value.value.dtype == "float32"
    return constant and value.value.ndim == ndim


def to_c(name, call, *arguments):
    """Call a C function, which gets the result as its last argument."""
    return relax.call_dps_packed(name, relax.Tuple(arguments), call.ty)


PASSES = tvm.transform.Sequential(
    [
        relax.transform.FoldBatchnormToConv2D(),
        relax.transform.FoldConstant(),
        relax.transform.DecomposeOpsForInference(),
        relax.transform.FoldConstant(),
        relax.transform.DeadCodeElimination(),
        relax.transform.LegalizeOps({"relax.nn.conv2d": conv2d, "relax.matmul": matmul}),
        relax.transform.FoldConstant(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
    ]
)


def compile_model(path, output, cpu="x86-64-v3"):
    """Compile, and export bytecode, weights, TVM's operators and the kernels as one library."""
    with tvm.transform.PassContext(opt_level=3):
        module = PASSES(from_onnx(onnx.load(path)))
        target = tvm.target.Target({"kind": "llvm", "mcpu": cpu})
        executable = tvm.compile(module, target=target)
    with TemporaryDirectory() as folder:
        theirs, operators = Path(folder, "model.so"), Path(folder, "operators.o")
        executable.export_library(str(theirs))
        root = runtime.load(theirs)  # the bytecode; its import is TVM's code in this file
        root.clear_imports()
        for code in executable.mod.imports:
            code.write_to_file(str(operators))
            root.import_module(packer.StaticLibraryModule(operators))
        add_kernels(root, [f"-march={cpu}"])
        packer.export_library(root, output)


def add_kernels(root, options):
    """Import kernels.c, and the operators that it calls."""
    include = [packer.operators.INCLUDE]
    functions = dict.fromkeys(("conv2d", "dense", "matmul"), "auto")
    kernels = packer.CSourceModule(KERNELS, functions=functions, include=include, options=options)
    for part in packer.operators.modules("conv2d", "matmul", options=options):
        kernels.import_module(part)
    root.import_module(kernels)


if __name__ == "__main__":
    compile_model(*sys.argv[1:])
