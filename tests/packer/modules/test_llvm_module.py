"""LLVM modules: run before the export, bitcode and text, bad IR."""

from __future__ import annotations

import pytest

import packer
import runtime

from ...support.host_modules import MUL


def test_llvm_module_runs_before_it_is_exported() -> None:
    """is_runnable: exported to a temporary library and loaded, one mechanism."""
    import llvmlite.ir as ir

    module = ir.Module()
    i64 = ir.IntType(64)
    function = ir.Function(module, ir.FunctionType(i64, [i64]), "twice")
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(builder.add(function.args[0], function.args[0]))
    twice = packer.LLVMModule(module, functions={"twice": "int64_t(int64_t x)"})
    assert twice.is_runnable
    assert twice["twice"](21) == 42
    with pytest.raises(runtime.FunctionNotFoundError, match="near names: 'twice'"):
        twice["twic"]


def test_bitcode_and_text_give_the_same_object(tmp_path) -> None:
    """IR is text, bitcode or an object of llvmlite; LLVM emits for any of its targets."""
    text = packer.LLVMModule(MUL)
    text.save(tmp_path / "m.bc")
    bitcode = packer.LLVMModule((tmp_path / "m.bc").read_bytes())
    text.save(tmp_path / "a.o")
    bitcode.save(tmp_path / "b.o")
    assert (tmp_path / "a.o").read_bytes() == (tmp_path / "b.o").read_bytes()
    arm = packer.LLVMModule(MUL, target="aarch64-unknown-linux-gnu")
    arm.save(tmp_path / "arm.o")
    assert (tmp_path / "arm.o").read_bytes()[18:20] == (183).to_bytes(2, "little")
    assert ".globl" in arm.get_source("s")


@pytest.mark.parametrize(
    ("ir", "message"),
    [
        ("define nonsense", r"LLVM refuses the IR: (.|\n)*expected type"),
        (b"BC nonsense", "LLVM refuses the IR"),
    ],
)
def test_bad_ir_is_an_export_error(ir, message) -> None:
    """LLVM's message is in the error."""
    with pytest.raises(packer.ExportError, match=message):
        packer.LLVMModule(ir)


def test_unknown_target_is_named() -> None:
    """A triple that this LLVM does not know."""
    with pytest.raises(packer.ToolchainError, match="no target 'nosuch-unknown-linux'"):
        packer.LLVMModule(MUL, target="nosuch-unknown-linux").save("/dev/null", "o")
