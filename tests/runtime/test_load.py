"""load: which files are packed, which are plain, and which blobs are refused at their offset."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

import pytest

import runtime

EMPTY = struct.pack("<QQ", 8, 0)

VERSION = """#include "dso_packer.h"
DSO_EXPORT int __tvm_ffi_version(void *h, const dso_any *a, int32_t n, dso_any *result) {
  *result = dso_int(NUMBER);
  return 0;
}
"""


def data_symbol(name: str, data: bytes, qualifier: str = "const") -> str:
    """C text of an exported array."""
    numbers = ",".join(map(str, data))
    return f"{qualifier} unsigned char {name}[] = {{{numbers}}};\n"


def test_plain_library_is_one_module_without_imports(compile_library) -> None:
    """A library without the blob symbol has no tree."""
    module = runtime.load(compile_library("int x;"))
    assert (module.type_key, module.imported_modules) == ("library", [])
    assert module.function_names() == []
    with pytest.raises(runtime.FunctionNotFoundError, match="has no function 'f'"):
        module["f"]


def test_system_library_of_this_machine_loads() -> None:
    """Any shared library is one; its plain C symbols are not callable by name."""
    maps = Path("/proc/self/maps").read_text()
    (path,) = {Path(s.split()[-1]) for s in maps.splitlines() if "/libc.so.6" in s}
    module = runtime.load(path)
    assert module.type_key == "library"
    assert not module.implements_function("strlen")


def test_root_without_imports_is_the_library(compile_library) -> None:
    """Count 0: the library is the whole tree."""
    module = runtime.load(compile_library(data_symbol("__tvm_dev_mblob", EMPTY)))
    assert (module.type_key, module.imported_modules) == ("library", [])


def test_blob_of_a_dependency_is_not_taken(compile_library) -> None:
    """The symbol must be defined by this very file."""
    inner = compile_library(data_symbol("__tvm_dev_mblob", EMPTY + b"!"))
    outer = compile_library(
        "int x;", str(inner), "-Wl,--no-as-needed", f"-Wl,-rpath,{inner.parent}"
    )
    assert runtime.load(outer).imported_modules == []
    with pytest.raises(runtime.BlobFormatError, match="nbytes is 8, expected 9"):
        runtime.load(inner)


def test_refused_library_is_closed_again(compile_library) -> None:
    """A blob that is refused does not leave its file mapped."""
    path = compile_library(data_symbol("__tvm_dev_mblob", bytes(9)))
    with pytest.raises(runtime.BlobFormatError):
        runtime.load(path)
    assert str(path) not in Path("/proc/self/maps").read_text()


def test_bare_name_means_the_current_directory(compile_library, tmp_path, monkeypatch) -> None:
    """Never the library search path; path objects and bytes are paths too."""
    path = compile_library("int y;")
    monkeypatch.chdir(path.parent)
    assert runtime.load(path.name) is runtime.load(path) is runtime.load(os.fsencode(path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(runtime.LibraryLoadError, match="No such file"):
        runtime.load("libc.so.6")


@pytest.mark.parametrize("name", ["$LIB", "${ORIGIN}", "a$PLATFORM.b", "${LIB}/$ORIGIN"])
def test_name_that_dlopen_would_expand_is_taken_literally(name, compile_library, tmp_path) -> None:
    """The file that the expanded name means is a different module."""
    paths = [tmp_path / name / "lib.so", tmp_path / f"{name}.so", tmp_path / f"{name}2.so"]
    for number, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(compile_library(VERSION, f"-DNUMBER={number}").read_bytes())
    modules = [runtime.load(path) for path in paths]
    assert [module["version"]() for module in modules] == [0, 1, 2]


def test_link_to_a_loaded_file_gives_the_same_module(compile_library, tmp_path) -> None:
    """The file is compared, not its name."""
    path = compile_library("int link;")
    os.symlink(path, tmp_path / "soft.so")
    os.link(path, tmp_path / "hard.so")
    module = runtime.load(path)
    assert runtime.load(tmp_path / "soft.so") is runtime.load(tmp_path / "hard.so") is module


def test_stripped_library_loads(pack_blob) -> None:
    """The dynamic section is sufficient."""
    path = pack_blob(bytes(8))
    subprocess.run(["strip", "--strip-section-headers", path], check=False, capture_output=True)
    subprocess.run(["strip", path], check=True)
    assert runtime.load(path).type_key == "library"


def test_entry_name_that_is_not_text_is_refused(compile_library) -> None:
    """The text of the entry must be ASCII."""
    module = runtime.load(compile_library(data_symbol("__tvm_main__", b"\xff\xfe\0")))
    with pytest.raises(runtime.LibraryLoadError, match="__tvm_main__ holds"):
        _ = module.entry_name
