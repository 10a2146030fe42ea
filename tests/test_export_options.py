"""The options of an export: fcompile, fpack_imports, addons, workspace_dir."""

from __future__ import annotations

from pathlib import Path

import pytest

import packer
import runtime

from .support.host_modules import MUL, device, host


def test_fpack_imports_replaces_the_embedder(tmp_path) -> None:
    """TVM's hook: a function that packs the imports, and returns the file to link."""
    calls = []

    def fpack_imports(module, system_lib, c_symbol_prefix, workspace_dir):
        calls.append((system_lib, c_symbol_prefix))
        path = Path(workspace_dir) / "packed.c"
        path.write_text(packer.pack_imports_to_c(module))
        return path

    root = host()
    root.import_module(device())
    path = packer.export_library(root, tmp_path / "lib.so", fpack_imports=fpack_imports)
    assert calls == [(False, "")]
    assert runtime.load(path).imported_modules[0].type_key == "cuda"


def test_pack_imports_to_llvm_gives_the_same_library(tmp_path) -> None:
    """devc.o as TVM's pack_imports_to_llvm makes it."""

    def fpack_imports(module, system_lib, c_symbol_prefix, workspace_dir):
        path = Path(workspace_dir) / "packed.o"
        packer.pack_imports_to_llvm(module).save(path)
        return path

    root = host()
    root.import_module(device())
    path = packer.export_library(root, tmp_path / "lib.so", fpack_imports=fpack_imports)
    assert runtime.load(path).imported_modules[0].type_key == "cuda"


def test_fcompile_gets_sources_and_objects_and_its_object_format(tmp_path) -> None:
    """A user's linker takes LLVM modules in the format that it asks for."""
    seen = []

    def fcompile(output, files, options=None):
        seen.extend(Path(f).suffix for f in files)
        packer.create_shared(output, files, options=options)

    fcompile.object_format = "s"
    root = host()
    root.import_module(packer.LLVMModule(MUL, functions={"mul": "int64_t(int64_t, int64_t)"}))
    path = packer.export_library(
        root, tmp_path / "lib.so", fcompile=fcompile, build=packer.Build(embed="c")
    )
    assert seen == [".c", ".s", ".c", ".c"]  # host code, its IR, glue.c, devc.c
    assert runtime.load(path)["mul"](6, 7) == 42


def test_options_addons_and_workspace_dir_are_used(tmp_path, compile_object) -> None:
    """The linker gets them; the caller's lists stay as they were; the workspace is kept."""
    addon = compile_object("int helper(void) { return 7; }")
    source = "int helper(void); int f(void) { return helper(); }"
    module = packer.CSourceModule(source, functions={"f": "int(void)"})
    options, addons = ["-Wl,-soname,mine.so"], [addon]
    (tmp_path / "work").mkdir()
    path = packer.export_library(
        module,
        tmp_path / "lib.so",
        options=options,
        addons=addons,
        workspace_dir=tmp_path / "work",
    )
    assert runtime.load(path)["f"]() == 7
    assert (options, addons) == (["-Wl,-soname,mine.so"], [addon])
    assert b"mine.so" in path.read_bytes()
    (kept,) = (tmp_path / "work").iterdir()
    assert "glue.c" in {p.name for p in kept.iterdir()}


def test_an_error_of_fcompile_is_passed_on(tmp_path) -> None:
    """A ValueError of the caller's own linker says nothing about the output."""

    def fails(output, files, options=()) -> None:
        raise ValueError("no licence")

    root = packer.CSourceModule("int one(void) { return 1; }", functions={"one": "int(void)"})
    with pytest.raises(ValueError, match=r"^no licence$"):
        packer.export_library(root, tmp_path / "one.so", fcompile=fails)


@pytest.mark.parametrize(("name", "value"), [("output", "lib.so"), ("build", {"cpu": "native"})])
def test_a_value_of_another_kind_is_refused(name, value, tmp_path) -> None:
    """Before anything is made, with the type that is expected."""
    text = f"^{name}: expected a packer.{name.title()}, found "
    with pytest.raises(packer.ExportError, match=text):
        packer.export_library(host(), tmp_path / "lib.so", **{name: value})
    assert list(tmp_path.iterdir()) == []
