"""inspect_library: the other dialect, bytecode, system libraries, types without a loader."""

from __future__ import annotations

import json
import platform

import numpy as np
import pytest

import packer
import runtime
from packer.inspect import inspect_library, render
from runtime.modules.vm import load as load_executable
from runtime.serial.stream import Reader

from ...support.vm_assembler import SHAPE, TENSOR, Code, Program, call, packed, reg, ret
from .inspected import SAFE_CALL, entry, library_bin, u64, with_blob


def test_other_dialect_is_listed(compile_library) -> None:
    """A tvm-ffi library: functions, entries and tree; a type without a loader is carried."""
    cuda = u64(3) + b"ptx" + u64(0) + u64(4) + b"code"
    source = library_bin(
        entry("_lib"),
        entry("cuda", u64(len(cuda)) + cuda),
        entry("vendor.thing", u64(0)),
        tree=u64(4, 0, 2, 2, 2) + u64(2, 1, 2),
    )
    report = inspect_library(compile_library(source))
    assert (report.dialect, report.problems) == ("tvm-ffi", ())
    assert [(m.type_key, m.imports, m.loadable) for m in report.modules] == [
        ("library", (1, 2), True),
        ("cuda", (), True),
        ("vendor.thing", (), False),
    ]
    assert report.blob.symbol == "__tvm_ffi__library_bin"
    assert [e.key for e in report.blob.entries] == ["_lib", "cuda", "vendor.thing"]
    assert [f.text for f in report.blob.entries[1].fields] == ["ptx", "none", '4 bytes: "code"']
    assert [f.name for f in report.functions] == ["f"]


def test_types_that_only_code_states_are_marked(compile_library) -> None:
    """TVM's metadata of a function is a function itself: it is named, and never run."""
    source = SAFE_CALL.format("f") + SAFE_CALL.format("g") + SAFE_CALL.format("_metadata_f")
    report = inspect_library(compile_library(source))
    assert {f.name: f.metadata for f in report.functions} == {
        "f": "__tvm_ffi__metadata_f",
        "g": None,
    }
    text = render(report)
    assert "f: safe_call; its types are only known to __tvm_ffi__metadata_f" in text
    assert "g: safe_call, no declaration" in text


def test_bytecode_lists_its_functions_and_calls(tmp_path) -> None:
    """A model of relax: its functions are first, its constants are weights."""
    code = Code("main", ["x"], [call(1, 1, reg(0)), ret(1)], 2)
    constants = [(TENSOR, np.zeros((2, 3), "f4")), (SHAPE, (4,))]
    program = Program([code, packed("vm.builtin.copy")], constants)
    executable = load_executable(Reader(program.payload()))
    executable.import_module(packer.CSourceModule("int f;", functions=[]))
    path = packer.export_library(executable, tmp_path / "vm.so", format="tvm-ffi")
    report = inspect_library(path)
    root = report.modules[0]
    assert (root.type_key, root.loadable) == ("relax.VMExecutable", True)
    assert (root.functions, root.signatures) == (("main",), ("main(x)",))
    assert [(t.name, t.shape) for t in root.tensors] == [("constant_0", (2, 3))]
    fields = {f.name: f.text for f in report.blob.entries[0].fields}
    assert fields["functions"] == "main(x)"
    assert fields["calls"] == "vm.builtin.copy"
    assert fields["constants"] == "float32[2, 3], (4,)"
    assert "  main(x)  in relax.VMExecutable\n" in render(report)


def test_tree_of_a_system_library_is_shown(tmp_path) -> None:
    """Its symbols have a prefix; of several such trees in a library each is named."""
    objects = []
    for prefix in ("net1_", "net2_"):
        root = packer.CSourceModule("int f(void) { return 1; }", functions={"f": "int(void)"})
        root.import_module(runtime.DeviceModule("opencl", "// cl", "cl", []))
        path = tmp_path / f"{prefix}.o"
        packer.export_library(root, path, system_lib=True, c_symbol_prefix=prefix)
        objects.append(path)
    one = inspect_library(packer.link_library(objects[:1], tmp_path / "one.so"))
    assert (one.problems, one.dialect) == ((), "tvm")
    assert one.blob.symbol == "net1___tvm_dev_mblob"
    assert [m.type_key for m in one.modules] == ["library", "opencl"]
    assert [f.name for f in one.functions] == ["net1_f"]
    both = inspect_library(packer.link_library(objects, tmp_path / "both.so"))
    assert (both.blob, [m.type_key for m in both.modules]) == (None, ["library"])
    assert [note.split(":")[0] for note in both.notes] == [
        "net1___tvm_dev_mblob",
        "net2___tvm_dev_mblob",
    ]


def test_blob_of_another_object_is_not_shown(compile_library, packed_library, tmp_path) -> None:
    """An undefined blob symbol, that a needed library defines, is not this file's."""
    path = compile_library(
        "extern const char __tvm_dev_mblob[]; const char *f(void) { return __tvm_dev_mblob; }",
        str(packed_library),
    )
    assert inspect_library(path).blob is None


def test_same_name_in_two_modules_is_reported(packed_library, tmp_path) -> None:
    """The report states which of them a look-up finds."""
    root = packer.CSourceModule("int k(void) { return 1; }", functions={"k": "int(void)"})
    kernel = runtime.FunctionInfo("k", [], [])
    root.import_module(runtime.DeviceModule("cuda", "//", "ptx", [kernel]))
    report = inspect_library(packer.export_library(root, tmp_path / "twice.so"))
    text = (
        "function 'k' is in 'library' (module 0) and 'cuda' (module 1): a look-up finds the first"
    )
    assert report.notes == (text,)
    assert report.problems == ()


def test_type_without_loader_is_carried_with_a_manifest_alone(compile_library, tmp_path) -> None:
    """With lengths it is a module; without them it is a problem of the blob."""
    blob = u64(1) + entry("strange", b"123")
    bare = inspect_library(with_blob(compile_library, tmp_path, blob))
    assert "module type 'strange' has no loader here" in bare.blob.error
    assert bare.modules == ()
    listed = json.dumps(
        {"schema": 1, "producer": "p", "target": "t", "entries": [
            {"type_key": "strange", "offset": 8, "nbytes": 18}]}
    )  # fmt: skip
    source = f"const char __packer_manifest[] = {json.dumps(listed)};"
    report = inspect_library(with_blob(compile_library, tmp_path, blob, source))
    assert [(m.type_key, m.loadable) for m in report.modules] == [
        ("library", True),
        ("strange", False),
    ]
    assert (report.producer, report.target, report.problems) == ("p", "t", ())
    assert "strange  18 bytes, no loader here" in render(report)


def test_deep_and_wide_trees_stay_on_one_screen(tmp_path) -> None:
    """3,000 modules in a row, and diamonds with 2^50 paths."""
    chain = [runtime.DeviceModule("cuda", "//", "ptx", []) for _ in range(3000)]
    for parent, child in zip(chain, chain[1:], strict=False):
        parent.set_imports([child])
    report = inspect_library(packer.export_library(chain[0], tmp_path / "deep.so"))
    assert len(report.modules) == 3000
    assert len(render(report).splitlines()) < 60
    assert "more, listed with --json" in render(report)
    layers = [[runtime.DeviceModule("cuda", "//", "ptx", []) for _ in "ab"] for _ in range(50)]
    for upper, lower in zip(layers, layers[1:], strict=False):
        for parent in upper:
            parent.set_imports(lower)
    root = packer.CSourceModule("int f;")
    root.set_imports(layers[0])
    report = inspect_library(packer.export_library(root, tmp_path / "diamonds.so"))
    assert len(report.modules) == 101
    assert len(render(report).splitlines()) < 60


@pytest.mark.parametrize("dialect", ["tvm", "tvm-ffi"])
def test_a_library_of_ours_without_a_tree_says_so(tmp_path, dialect) -> None:
    """It has no manifest; other compilers' libraries have no producer."""
    module = packer.CSourceModule("int one(void) { return 1; }", functions="auto")
    path = packer.export_library(module, tmp_path / "m.so", format=dialect)
    report = inspect_library(path).to_dict()
    assert report["blob"] is None
    assert (report["producer"], report["dialect"]) == ("dso-packer", dialect)
    assert report["target"] == f"{platform.machine()}-linux-gnu"
    assert "no blob, dso-packer for " in render(inspect_library(path)).splitlines()[0]
