"""Code generation by LLVM through llvmlite, for embedded bytes and for modules of LLVM IR."""

from __future__ import annotations

import re
from typing import Any

from runtime.error import ExportError, ToolchainError

from ..target import machine_word
from .llvm_processor import DEFAULT_OPT, PLAIN, Processor, refuse_unknown


def default_triple() -> str:
    """Return the triple of this machine, as LLVM writes it."""
    return str(_binding().get_process_triple())


def is_native(triple: str) -> bool:
    """Return True if a triple is of this machine's architecture."""
    return triple.split("-")[0] == default_triple().split("-")[0]


def parse_ir(ir: Any) -> Any:
    """Parse and verify IR text, an llvmlite module or bitcode.

    Raises ExportError if LLVM refuses the IR, and ToolchainError without llvmlite.
    """
    llvm = _binding()
    try:
        if isinstance(ir, (bytes, bytearray, memoryview)):
            module = llvm.parse_bitcode(bytes(ir))
        else:
            module = llvm.parse_assembly(str(ir))
        module.verify()
    except RuntimeError as error:
        text = f"LLVM refuses the IR: {str(error).strip()}"
        raise ExportError(text, module="llvm") from error
    return module


def emit(parsed: Any, suffix: str, triple: str, processor: Processor = PLAIN) -> bytes:
    """Return a parsed module as ``"ll"``, ``"bc"``, ``"s"`` or ``"o"``, without changing it.

    The processor matters to ``"s"`` and ``"o"`` only.

    Raises ToolchainError if llvmlite does not support the target, and ExportError if the target
    does not have the processor.
    """
    llvm = _binding()
    module = llvm.parse_bitcode(parsed.as_bitcode())
    module.triple = triple
    if suffix == "ll":
        return str(module).encode()
    if suffix == "bc":
        return bytes(module.as_bitcode())
    processor = processor.resolved(triple)
    machine = _target_machine(triple, processor)
    if processor.is_named and (ir := str(module)) != (changed := processor.in_attributes(ir)):
        module = llvm.parse_assembly(changed)
    _optimize(llvm, module, machine, processor.opt)
    if suffix == "o" and has_assembly(str(module)) and not is_native(triple):
        # LLVM would abort the process: llvmlite contains this machine's assembler only.
        text = f"assembly in IR for {triple!r}: LLVM has no assembler for it here; use fmt 's'"
        raise ToolchainError(text)
    code = machine.emit_object(module) if suffix == "o" else machine.emit_assembly(module).encode()
    return bytes(code)


def has_assembly(ir: str) -> bool:
    """Return True if IR text contains inline or module assembly, outside quotes."""
    return re.search(r"\basm\b", re.sub(r'"[^"]*"', "", ir)) is not None


def _binding() -> Any:
    try:
        from llvmlite import binding
    except ImportError as error:
        raise ToolchainError(f"LLVM needs llvmlite: pip install llvmlite ({error})") from error
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    binding.initialize_native_asmparser()
    return binding


def _target_machine(triple: str, processor: Processor) -> Any:
    llvm = _binding()
    machine = machine_word(triple)
    features = (machine.features if machine else "", processor.features)

    def create() -> Any:
        return llvm.Target.from_triple(triple).create_target_machine(
            cpu=processor.cpu,
            features=",".join(filter(None, features)),
            opt=processor.opt,
            reloc="pic",
            codemodel="small",
            abiname=machine.abi if machine else "",
        )

    try:
        return refuse_unknown(create, triple) if processor.is_named else create()
    except RuntimeError as error:
        text = f"llvmlite has no target {triple!r}: {str(error).strip()}"
        raise ToolchainError(text) from error


def _optimize(llvm: Any, module: Any, machine: Any, opt: int) -> None:
    tuning = llvm.create_pipeline_tuning_options(speed_level=opt)
    tuning.slp_vectorization = opt > DEFAULT_OPT
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
