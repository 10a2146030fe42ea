"""SPIR-V of llvmlite's spirv64 target, as a user makes it who packs kernels from LLVM IR."""

from __future__ import annotations

from llvmlite import binding

TRIPLE = "spirv64v1.2-unknown-unknown"
# void fill(global int *x, int value): x[get_global_id(0)] = value
FILL = """
declare spir_func i64 @_Z13get_global_idj(i32)
define spir_kernel void @fill(ptr addrspace(1) %x, i32 %value) {
  %index = call spir_func i64 @_Z13get_global_idj(i32 0)
  %place = getelementptr inbounds i32, ptr addrspace(1) %x, i64 %index
  store i32 %value, ptr addrspace(1) %place
  ret void
}
"""


def compile_spirv(ir: str) -> bytes:
    """A SPIR-V module of LLVM IR."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    machine = binding.Target.from_triple(TRIPLE).create_target_machine()
    module = binding.parse_assembly(f'target triple = "{TRIPLE}"\n{ir}')
    return bytes(machine.emit_object(module))
