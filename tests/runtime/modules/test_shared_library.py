"""Whole libraries in a tree: loaded again, exported, damaged, nested."""

from __future__ import annotations

import base64
import copy
import gc
import pickle

import pytest

import packer
import runtime
from runtime.blob import Blob, Entry, dump

from ...support.process import run_python
from ..interchanged import device, each_form, host


@each_form
def test_loaded_library_is_itself_again(form, build) -> None:
    """Equal bytes are loaded once, so the restored module is the same in one process."""
    module = runtime.load(build(1))
    assert form(module) is module
    assert form(runtime.load_from_bytes(build(2).read_bytes()))["answer"]() == 2


@each_form
@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.import_module(device("more")),
        lambda m: m.clear_imports(),
        lambda m: m.imported_modules[0].import_module(device("deep")),
    ],
    ids=["imported", "cleared", "deep"],
)
def test_library_whose_imports_were_changed_is_refused(form, change, build, tmp_path) -> None:
    """Its file does not know of the change, which would be lost."""
    path = tmp_path / "changed.so"
    path.write_bytes(build(1).read_bytes())
    module = runtime.load(path)
    change(module)
    with pytest.raises(runtime.ExportError, match="had its imports changed after it was loaded"):
        form(device("top", module))
    with pytest.raises(runtime.ExportError, match=r"^the root module \(<LibraryModule"):
        form(module)


def test_library_whose_file_is_missing_or_replaced_is_refused(build, tmp_path) -> None:
    """The file must still contain the loaded library when it is read again."""
    path = tmp_path / "lib.so"
    path.write_bytes(build(1).read_bytes())
    module = runtime.load(path)
    path.unlink()
    with pytest.raises(runtime.ExportError, match="cannot be read again: No such file") as info:
        pickle.dumps(module)
    assert info.value.path == str(path)
    path.write_bytes(build(2).read_bytes())
    with pytest.raises(runtime.ExportError, match="was replaced or changed after it was loaded"):
        pickle.dumps(module)


def test_root_that_is_not_host_code_is_stored_as_the_file(tmp_path) -> None:
    """The factory of a model, its library and its parameters are one file; nothing is twice."""
    root = runtime.GraphExecutorFactory("{}", {}, "default")
    root.import_module(host(7))
    path = packer.export_library(root, tmp_path / "model.so")
    loaded = runtime.load(path)
    assert base64.b64decode(runtime.export_module_to_base64(loaded)) == path.read_bytes()
    assert copy.deepcopy(loaded) is loaded


@each_form
def test_library_in_a_tree_that_was_made_here(form, build) -> None:
    """It is an entry of the blob, `shared_library`, and a loaded library again afterwards."""
    library = runtime.load(build(3))
    back = form(device("top", device("kernels"), library))
    assert [m.type_key for m in back.imported_modules] == ["cuda", "library"]
    assert back.imported_modules[1] is library
    assert back["answer"]() == 3


def test_tree_with_libraries_is_exported(build, tmp_path) -> None:
    """Two loaded libraries and host code in one file; the others are not needed any more."""
    paths = [tmp_path / "1.so", tmp_path / "2.so"]
    root = host(0)
    for path, number in zip(paths, (1, 2), strict=True):
        path.write_bytes(build(number).read_bytes())
        root.import_module(runtime.load(path))
    exported = packer.export_library(root, tmp_path / "all.so")
    del root
    gc.collect()
    for path in paths:
        path.unlink()
    code = """
import json, sys, runtime
root = runtime.load(sys.argv[1])
modules = [root, *root.imported_modules]
below = [m.type_key for library in root.imported_modules for m in library.imported_modules]
print(json.dumps([[m["answer"]() for m in modules], below]))
"""
    assert run_python(code, str(exported)) == [[0, 1, 2], ["cuda", "cuda"]]


def test_static_tools_do_not_load_a_carried_library(compile_library, tmp_path) -> None:
    """`packer inspect` and `blob.parse` run none of its code; building the tree does."""
    trace = tmp_path / "ran"
    source = f"""#include <stdio.h>
__attribute__((constructor)) static void run(void) {{ fclose(fopen("{trace}", "w")); }}"""
    data = compile_library(source).read_bytes()
    root = device("top", runtime.CarriedSharedLibraryModule(data))
    path = packer.export_library(root, tmp_path / "outer.so")
    blob = runtime.serialize_module_to_bytes(root, export_dso=False)
    assert [m.type_key for m in runtime.blob.parse(blob).modules] == ["cuda", "shared_library"]
    report = packer.inspect_library(path)
    assert [module.type_key for module in report.modules] == ["cuda", "shared_library"]
    assert report.notes[-1].startswith("'shared_library' (module 1) is loaded too")
    assert not trace.exists()
    runtime.load(path)
    assert trace.exists()


def wrapped(data: bytes) -> bytes:
    """A blob: a device module that imports a carried library."""
    root = device("top", runtime.CarriedSharedLibraryModule(data))
    return runtime.serialize_module_to_bytes(root, export_dso=False)


def test_damaged_carried_library_is_refused_at_its_offset() -> None:
    """The message has the offset in the blob, then the problem of the file."""
    with pytest.raises(runtime.LibraryLoadError, match="^blob at 0x.*: <5 bytes>: .*not an ELF"):
        runtime.deserialize_module_from_bytes(wrapped(b"hello"))


def test_carried_library_with_imports_beside_it_is_refused(build) -> None:
    """The file has its imports; others would change a module that is shared."""
    library = runtime.CarriedSharedLibraryModule(build(1).read_bytes())
    entries = [Entry("shared_library", library), Entry("metadata_module", runtime.MetadataModule())]
    tree = Entry("_import_tree", None)
    chunks = dump(Blob([*entries, tree], (0, 1, 1), (1,)))
    damaged = b"".join(chunks)
    with pytest.raises(runtime.BlobFormatError, match="'shared_library' with imports, expected"):
        runtime.deserialize_module_from_bytes(damaged)


def test_carried_library_without_host_code_is_refused(tmp_path) -> None:
    """A file that only carries modules has no library module for the tree."""
    path = packer.export_library(device("alone"), tmp_path / "alone.so")
    with pytest.raises(runtime.BlobFormatError, match="a library without host code"):
        runtime.deserialize_module_from_bytes(wrapped(path.read_bytes()))


def test_libraries_nested_too_deep_are_refused(build, tmp_path) -> None:
    """Each level of a load within a load costs stack; eight are enough for anyone."""
    data = build(1).read_bytes()
    for level in range(9):
        root = host(level)
        root.import_module(runtime.CarriedSharedLibraryModule(data))
        path = packer.export_library(root, tmp_path / f"{level}.so")
        data = path.read_bytes()
    with pytest.raises(runtime.BlobFormatError, match="libraries nested deeper than 8"):
        runtime.load(path)
    assert runtime.load(tmp_path / "7.so").imported_modules[0]["answer"]() == 6
