"""Files that are not libraries, or cannot be opened, are refused before dlopen."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from runtime._core import ElfFile, Library
from runtime.error import LibraryLoadError

from ..plain_library import CompileLibrary


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "a directory"),
        (".", "a directory"),
        ("..", "a directory"),
        ("/dev/null", "a character device"),
        ("/dev/zero", "a character device"),
        ("/dev/full", "a character device"),
    ],
)
@pytest.mark.parametrize("opener", [Library, ElfFile])
def test_not_a_regular_file(opener: type, path: str, kind: str) -> None:
    """The error names the kind of file."""
    with pytest.raises(LibraryLoadError, match=f": not a regular file, found {kind}$") as caught:
        opener(path)
    assert caught.value.reason == "not-a-file"


def test_fifo_and_socket_do_not_block(tmp_path: Path) -> None:
    """A FIFO without a writer and a socket without a server are refused at once."""
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for name, kind in (("fifo", "a FIFO"), ("socket", "a socket")):
            with pytest.raises(LibraryLoadError, match=f"found {kind}$") as caught:
                Library(str(tmp_path / name))
            assert caught.value.reason == "not-a-file"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("missing.so", "cannot open: No such file or directory"),
        ("lib.so/", "cannot open: Not a directory"),
        ("loop", "cannot open: Too many levels of symbolic links"),
        ("x" * 256, "cannot open: File name too long"),
        ("x/" * 2048, "cannot open: File name too long"),
    ],
)
def test_file_that_cannot_be_opened(library_file: Path, name: str, expected: str) -> None:
    """The error has the system's message, and the path."""
    (library_file.parent / "loop").symlink_to("loop")
    path = f"{library_file.parent}/{name}"
    with pytest.raises(LibraryLoadError) as caught:
        Library(path)
    assert (str(caught.value), caught.value.reason) == (f"{path}: {expected}", "io")
    assert caught.value.path == path


def test_unreadable_file_is_refused(library_file: Path) -> None:
    """The system refuses it; root runs as another user, since root may read anything."""
    library_file.chmod(0)
    code = f"""
import os
from runtime._core import Library
from runtime.error import LibraryLoadError  # now: the other user may not read the package
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    Library({str(library_file)!r})
except LibraryLoadError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == f"{library_file}: cannot open: Permission denied\n"


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"text " * 100])
def test_content_is_checked_before_dlopen(tmp_path: Path, content: bytes) -> None:
    """The message is the static check's, not the dynamic loader's."""
    path = tmp_path / "bad.so"
    path.write_bytes(content)
    with pytest.raises(LibraryLoadError, match=f"^{path}: ") as caught:
        Library(str(path))
    assert caught.value.reason in ("not-elf", "truncated")


def test_proc_self_mem_is_refused() -> None:
    """The kernel reports such a file as a regular one of size 0."""
    with pytest.raises(LibraryLoadError):
        Library("/proc/self/mem")


def test_undefined_symbol_is_named(compile_library: CompileLibrary) -> None:
    """All symbols are bound at load, and the missing one is named."""
    path = compile_library("int nowhere(void); int f(void) { return nowhere(); }")
    with pytest.raises(LibraryLoadError, match=f"^{path}: undefined symbol: nowhere$") as caught:
        Library(str(path))
    assert caught.value.reason == "dlopen"


def test_missing_dependency_is_named(compile_library: CompileLibrary, tmp_path: Path) -> None:
    """The error names the missing library."""
    gone = compile_library("int gone(void) { return 1; }", "-Wl,-soname,libgone.so")
    path = compile_library("int gone(void); int f(void) { return gone(); }", str(gone))
    with pytest.raises(LibraryLoadError, match=f"^{path}: libgone.so: cannot open") as caught:
        Library(str(path))
    assert caught.value.reason == "dlopen"
