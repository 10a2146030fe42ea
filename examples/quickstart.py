"""C code, LLVM IR and an OpenCL kernel become one library, and are there again after a load."""

import packer
import runtime

add = packer.CSourceModule(
    "long add(long a, long b) { return a + b; }", functions={"add": "long(long a, long b)"}
)
twice = packer.LLVMModule(
    "define i64 @twice(i64 %x) { %y = shl i64 %x, 1  ret i64 %y }",
    functions={"twice": "int64_t(int64_t x)"},
)
kernel = runtime.DeviceModule(
    "opencl",
    "__kernel void fill(__global int *x) { x[get_global_id(0)] = 42; }",
    fmt="cl",
    functions=[runtime.FunctionInfo("fill", ["handle"], ["blockIdx.x"])],
)
add.import_module(twice)
add.import_module(kernel)
packer.export_library(add, "model.so")

model = runtime.load("model.so")
print(model["add"](model["twice"](20), 2))  # 42
print(model, "imports", model.imported_modules)
