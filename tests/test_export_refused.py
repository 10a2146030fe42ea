"""Modules, declarations and outputs that an export refuses."""

from __future__ import annotations

import pytest

import packer
import runtime

from .support.host_modules import ADD, MUL, device, host


def test_wrong_declaration_is_a_compile_error_that_names_the_function(tmp_path) -> None:
    """The user's compiler compares the declaration with the definition."""
    module = packer.CSourceModule(ADD, functions={"add": "double(double a, double b)"})
    with pytest.raises(packer.ToolchainError, match="conflicting types for .add.") as info:
        packer.export_library(module, tmp_path / "lib.so")
    assert info.value.returncode == 1
    assert not list(tmp_path.iterdir())


def test_wrong_declaration_of_ir_is_refused_with_both_types() -> None:
    """The IR type is compared at once."""
    with pytest.raises(
        packer.ExportError, match=r"has type i64 \(i64, i64\), expected double \(i64"
    ):
        packer.LLVMModule(MUL, functions={"mul": "double(int64_t a, int64_t b)"})


def test_declared_function_without_definition_is_detected(tmp_path) -> None:
    """A static function, or none at all, would be an undefined symbol at load."""
    module = packer.CSourceModule("int other;", functions={"missing": "int(void)"})
    with pytest.raises(packer.ToolchainError, match="undefined reference to .missing'"):
        packer.export_library(module, tmp_path / "lib.so")


def test_function_declared_twice_is_refused_before_linking(tmp_path) -> None:
    """Two host modules cannot both have it."""
    root = host()
    root.import_module(host())
    with pytest.raises(packer.ExportError, match="add: declared by .* expected once"):
        packer.export_library(root, tmp_path / "lib.so", fcompile=_must_not_run)


def _must_not_run(output, files, options):
    raise AssertionError("the linker was reached")


def test_unknown_entry_is_refused_before_linking(tmp_path) -> None:
    """An entry must be declared."""
    with pytest.raises(packer.ExportError, match="entry 'nope' is not declared; declared: add"):
        packer.export_library(host(), tmp_path / "lib.so", entry="nope", fcompile=_must_not_run)


def test_main_is_the_entry_or_refused(tmp_path) -> None:
    """The symbol of `main` is the entry's."""
    module = packer.CSourceModule("int main(void) { return 3; }", functions={"main": "int(void)"})
    with pytest.raises(packer.ExportError, match="main: reserved for the entry function"):
        packer.export_library(module, tmp_path / "lib.so")
    assert runtime.load(packer.export_library(module, tmp_path / "m.so", entry="main"))() == 3


def test_module_that_cannot_be_exported_is_named_before_any_work(tmp_path) -> None:
    """Neither host code nor serialisable: refused, nothing written."""

    class Odd(runtime.Module):
        type_key = "test.odd2"

    root = host()
    root.import_module(Odd())
    with pytest.raises(packer.ExportError, match=r"root\.imported_modules\[0\] \(<Odd"):
        packer.export_library(root, tmp_path / "lib.so", fcompile=_must_not_run)
    assert not list(tmp_path.iterdir())


def test_output_that_is_an_input_is_refused(tmp_path) -> None:
    """The source is not replaced by the library."""
    source = tmp_path / "add.c"
    source.write_text(ADD)
    with pytest.raises(packer.ExportError, match=r"add\.c: is also an input"):
        packer.export_library(packer.CSourceModule(source), source)
    assert source.read_text() == ADD


def test_prefix_without_system_lib_is_refused() -> None:
    """Formats, system library: a prefix serves static linking only."""
    for pack in (packer.pack_imports_to_c, packer.pack_imports_to_llvm):
        with pytest.raises(packer.ExportError, match="'p_' without system_lib"):
            pack(device(), c_symbol_prefix="p_")
