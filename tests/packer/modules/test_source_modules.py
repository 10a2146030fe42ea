"""C, C++ and static modules: merged, linked, compiled again."""

from __future__ import annotations

import pytest

import packer
import runtime

from ...support.host_modules import MUL, device, host


def test_c_llvm_and_static_modules_merge_anywhere_in_the_tree(tmp_path, compile_object) -> None:
    """Host code of three kinds, at three places, is one library below the root."""
    static = packer.StaticLibraryModule(
        compile_object("int neg(int x) { return -x; }"), {"neg": "int(int x)"}
    )
    root = device(b"root")
    middle = runtime.MetadataModule()
    root.import_module(host())
    root.import_module(middle)
    middle.import_module(packer.LLVMModule(MUL, functions={"mul": "int64_t(int64_t, int64_t)"}))
    middle.import_module(static)
    loaded = runtime.load(packer.export_library(root, tmp_path / "lib.so"))
    assert [m.type_key for m in loaded.imported_modules] == ["library", "metadata_module"]
    assert [m.type_key for m in loaded.imported_modules[1].imported_modules] == ["library"]
    assert (loaded["add"](1, 2), loaded["mul"](3, 4), loaded["neg"](5)) == (3, 12, -5)


def test_archive_is_linked_with_all_its_members(tmp_path, compile_object) -> None:
    """A function without references is linked: members are not picked."""
    import subprocess

    members = [compile_object(f"int f{i}(void) {{ return {i}; }}") for i in range(2)]
    archive = tmp_path / "two.a"
    subprocess.run(["ar", "rcs", archive, *members], check=True)
    module = packer.StaticLibraryModule(archive, {"f1": "int(void)"})
    path = packer.export_library(module, tmp_path / "lib.so")
    import ctypes

    assert runtime.load(path)["f1"]() == 1
    assert ctypes.CDLL(str(path)).f0() == 0


def test_cpp_source_is_compiled_as_cpp(tmp_path) -> None:
    """fmt="cc": C++ with extern "C" functions."""
    source = '#include <vector>\nextern "C" int f(int n) { return std::vector<int>(n, 1).size(); }'
    module = packer.CSourceModule(source, fmt="cc", functions={"f": "int(int n)"})
    assert runtime.load(packer.export_library(module, tmp_path / "lib.so"))["f"](5) == 5


def test_carried_source_is_compiled_when_it_is_exported_again(tmp_path) -> None:
    """A `c` module from a blob is host code for the next export; a load compiles nothing."""
    data = runtime.serialize_module_to_bytes(
        runtime.CarriedSourceModule("int carried(void) { return 5; }", "c", ["carried"]), False
    )
    carried = runtime.deserialize_module_from_bytes(data)
    assert not carried.is_runnable
    with pytest.raises(runtime.FunctionNotFoundError, match="carries it, but cannot run here"):
        carried["carried"]
    import ctypes

    path = packer.export_library(carried, tmp_path / "lib.so")
    assert ctypes.CDLL(str(path)).carried() == 5
