"""Libraries that were made once must load for ever: tests/data/libraries_with_checksums."""

from __future__ import annotations

import platform

import numpy as np
import pytest

import packer
import runtime
from runtime._core import ElfFile

from ..support import needs
from ..support.paths import DATA
from ..support.process import run_python

LIBRARIES = DATA / "libraries_with_checksums"

needs.hardware(platform.machine() == "x86_64", "x86-64, for which these libraries were made")


def shape(module: runtime.Module) -> tuple[str, list[object]]:
    """The type keys of a tree."""
    return module.type_key, [shape(child) for child in module.imported_modules]


DEVICES = [("cuda", [("hip", [])]), ("opencl", [("hip", [])])]


@pytest.mark.parametrize(
    ("name", "imports"), [("host", DEVICES), ("ffi", DEVICES), ("functions", [])]
)
def test_library_with_host_code_loads(name, imports) -> None:
    """Tree, entry, functions and metadata are there."""
    module = runtime.load(LIBRARIES / f"{name}.so")
    assert shape(module) == ("library", imports)
    assert module(40, 2) == module["add"](40, 2) == 42
    assert module["add"].signature == "int64_t add(int64_t a, int64_t b)"
    assert module["add"].__doc__ == "Adds."
    result = np.zeros(3, "float32")
    module["twice"](np.arange(3, dtype="float32"), result, 3)
    assert result.tolist() == [0, 2, 4]
    if imports:
        sources = [bytes(child.data) for child in module.imported_modules]
        assert sources == [b"source of cuda", b"source of opencl"]


def test_library_without_host_code_loads() -> None:
    """The root is the device module."""
    module = runtime.load(LIBRARIES / "tree.so")
    assert shape(module) == ("cuda", [("hip", [])])
    assert bytes(module.data) == b"source of cuda"


_SYSTEM = """
import json, runtime, sys
runtime.load(sys.argv[1])
module = runtime.system_lib("net1_")
print(json.dumps([[m.type_key for m in module.imported_modules], module(40, 2)]))
"""


def test_system_library_loads() -> None:
    """The library registers for ever, so it runs in a separate process."""
    assert run_python(_SYSTEM, str(LIBRARIES / "system.so")) == [["cuda", "opencl"], 42]


LISTED = {
    "host": {"__tvm_dev_mblob", "__packer_manifest", "__packer_fn_add", "__tvm_ffi_main"},
    "functions": {"__packer_fn_add", "__packer_fn_twice", "__tvm_main__", "__tvm_ffi_twice"},
    "tree": {"__tvm_dev_mblob", "__packer_manifest"},
    "ffi": {"__tvm_ffi__library_bin", "__tvm_ffi__metadata_add", "__tvm_ffi__doc_add"},
    "system": {"net1___tvm_dev_mblob", "__packer_fn_net1_add", "net1___tvm_main__"},
}


@pytest.mark.parametrize("name", LISTED)
def test_list_is_there_and_nothing_is_wrong(name) -> None:
    """A newer reader finds no fault with these files."""
    path = LIBRARIES / f"{name}.so"
    report = packer.inspect_library(path)
    assert report.problems == ()
    symbol = "net1___packer_checksums" if name == "system" else "__packer_checksums"
    structure = ElfFile(str(path)).checksums(symbol)
    assert (structure is None) == (name == "functions")
    found = ElfFile(str(path)).symbol(symbol)
    assert found is not None
    lines = path.read_bytes()[found[0] : sum(found) - 1].decode().splitlines()
    assert lines[0] == "packer-checksums 1"
    assert LISTED[name] <= {line.rpartition(" ")[2] for line in lines[1:]}


def test_library_whose_blob_symbol_was_renamed_is_refused() -> None:
    """A library of 0.1.0, which loaded as a plain one: its manifest shows that it had a blob."""
    path = DATA / "found" / "elf_blob_symbol_renamed_tree_lost.so"
    with pytest.raises(runtime.LibraryLoadError, match=r"DT_GNU_HASH|expected a blob beside it"):
        runtime.load(path)
    assert packer.inspect_library(path).problems
