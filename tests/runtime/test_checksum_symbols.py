"""__packer_checksums: the symbols that a library must define, and the CRC-32 of their bytes."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import runtime
from runtime._core import ElfFile, crc32, fail_allocation
from runtime.blob import parse, structure_of

from ..support.paths import GOLDEN

CompileLibrary = Callable[..., Path]


CRC = f"{zlib.crc32(b'one' + bytes(1)):08x}"
GOOD = f"packer-checksums 1\ndata {CRC} some_data\ncode some_code\n"


def library(compile_library: CompileLibrary, listed: str, *more: str) -> Path:
    """Compile a library with some data, some code and a list."""
    text = "".join(f"\\{byte:03o}" for byte in listed.encode())
    lines = ['const char some_data[] = "one";', "int some_code(void) { return 1; }", *more]
    return compile_library("\n".join([*lines, f'const char __packer_checksums[] = "{text}";']))


@given(st.binary(max_size=100))
def test_crc_is_the_one_of_zlib(data: bytes) -> None:
    """Eight bytes in each step, and the rest."""
    assert crc32(data) == zlib.crc32(data)


def test_library_with_all_listed_symbols_loads(compile_library) -> None:
    """A symbol that the list does not name is not a fault."""
    runtime.load(library(compile_library, GOOD, 'const char other[] = "two";'))


def test_library_without_a_list_loads(compile_library) -> None:
    """Libraries of 0.1.0 have no list."""
    runtime.load(compile_library("int some_code(void) { return 1; }"))


DAMAGE = "; the file is damaged: export it again, or copy it again"
WRONG = [
    (GOOD.replace("some_data", "no_data"), "symbol no_data: expected as listed in"),
    (GOOD.replace("some_code", "no_code"), "symbol no_code: expected as listed in"),
    (GOOD.replace("some_code", "some_data"), "symbol some_data: expected as listed in"),
    (GOOD.replace("some_data", "some_code"), "symbol some_code: expected as listed in"),
    (GOOD + f"blob {CRC} no_blob\n", "symbol no_blob: expected as listed in"),
    (
        GOOD.replace(CRC, "0123abcd"),
        f"symbol some_data: CRC-32, expected 0123abcd as listed in __packer_checksums, found {CRC}",
    ),
    (GOOD.replace(CRC, CRC.upper()), f"line 'data {CRC.upper()} some_data', expected blob, data"),
    (GOOD.replace(CRC, CRC[1:]), f"line 'data {CRC[1:]} some_data', expected"),
    (GOOD.replace(CRC, CRC + "0"), f"line 'data {CRC}0 some_data', expected"),
    (GOOD + "size 1 some_data\n", "line 'size 1 some_data', expected blob, data or code"),
    (GOOD + "\n", "line '', expected blob, data or code"),
    (GOOD[:-1], "line 'code some_code', expected blob"),
    (GOOD + f"blob {CRC} some_data\n" * 2, f"line 'blob {CRC} some_data', expected"),
    ("packer-sums 1\n", "first line 'packer-sums 1', expected 'packer-checksums 1'"),
    ("", "first line '', expected 'packer-checksums 1'"),
    ("packer-checksums 1\0\n", "expected text that ends with its only NUL"),
    ("packer-checksums 1\ncode \x1b[1mred\n", r"symbol ?[1mred: expected as listed in"),
]


@pytest.mark.parametrize(("listed", "match"), WRONG, ids=[match for _, match in WRONG])
def test_wrong_list_is_refused(listed, match, compile_library) -> None:
    """Each message has the problem and the fix; a check of the file alone has the same."""
    path = library(compile_library, listed)
    text = f"{re.escape(match)}.*{re.escape(DAMAGE)}$"
    with pytest.raises(runtime.LibraryLoadError, match=text):
        runtime.load(path)
    with pytest.raises(runtime.LibraryLoadError, match=text):
        ElfFile(str(path)).checksums("__packer_checksums")


def test_newer_list_names_the_version_that_reads_it(compile_library) -> None:
    """The error names the version that reads the newer list."""
    path = library(compile_library, "packer-checksums 2\nsize 4 some_data\n")
    text = "first line 'packer-checksums 2', expected 'packer-checksums 1'; load it with the "
    with pytest.raises(runtime.LibraryLoadError, match=f"{text}dso-packer that wrote it, or a new"):
        runtime.load(path)


def test_list_cannot_ask_for_endless_work(compile_library) -> None:
    """64 MiB of data, named 1,000 times: refused after four of them."""
    big = "const char big[1 << 26] = {1};"
    crc = f"{zlib.crc32(bytes([1]) + bytes((1 << 26) - 1)):08x}"
    path = library(compile_library, "packer-checksums 1\n" + f"data {crc} big\n" * 1000, big)
    with pytest.raises(runtime.LibraryLoadError, match="data, expected at most 268435456 bytes"):
        runtime.load(path)


def test_failing_allocation_is_an_error(compile_library) -> None:
    """The core copies the list, once."""
    file = ElfFile(str(library(compile_library, GOOD)))
    fail_allocation(1)
    with pytest.raises(runtime.LibraryLoadError, match="out of memory"):
        file.checksums("__packer_checksums")
    assert fail_allocation(0) == 0


def test_manifest_without_a_blob_is_refused(compile_library) -> None:
    """A writer of any version stores both or neither."""
    path = compile_library('const char __packer_manifest[] = "{}"; int f(void) { return 1; }')
    text = "__packer_manifest: expected a blob beside it (__tvm_dev_mblob or "
    with pytest.raises(runtime.LibraryLoadError, match=re.escape(text)) as caught:
        runtime.load(path)
    assert caught.value.reason == "blob"


def test_nothing_of_a_damaged_library_runs(compile_library, tmp_path) -> None:
    """The file is checked first, so its constructors are not run."""
    mark = tmp_path / "ran"
    code = f"""
    #include <fcntl.h>
    #include <unistd.h>
    __attribute__((constructor)) static void run(void) {{ close(open("{mark}", O_CREAT, 0600)); }}
    """
    with pytest.raises(runtime.LibraryLoadError, match="no_data: expected as listed"):
        runtime.load(library(compile_library, GOOD.replace("some_data", "no_data"), code))
    assert not mark.exists()
    runtime.load(library(compile_library, GOOD, code))
    assert mark.exists()


def test_structure_of_a_blob_is_the_one_of_the_documentation() -> None:
    """docs/format.md shows that of this blob."""
    blob = parse((GOLDEN / "b_c_cuda.bin").read_bytes())
    assert structure_of(blob) == b"_lib 8 12\ncuda 20 225\n_import_tree 245 68\n0 1 1\n1"
