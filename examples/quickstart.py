"""C code, LLVM IR and an OpenCL kernel become one library, and a load returns all of them."""

import packer
import runtime

code = "long add(long a, long b) { return a + b; }"
host = packer.CSourceModule(code, functions="auto")
ir = "define i64 @twice(i64 %x) { %y = add i64 %x, %x  ret i64 %y }"
host.import_module(packer.LLVMModule(ir, functions={"twice": "int64_t(int64_t x)"}))
kernel = "__kernel void fill(__global int *x) { x[get_global_id(0)] = 42; }"
fill = runtime.FunctionInfo("fill", ["handle"], ["blockIdx.x"])
host.import_module(runtime.DeviceModule("opencl", kernel, "cl", [fill]))
packer.export_library(host, "model.so")

model = runtime.load("model.so")
print(model["add"](model["twice"](20), 2), model.imported_modules)
