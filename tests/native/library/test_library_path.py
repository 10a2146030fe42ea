"""The file of a library: which image a path means, any name, files replaced."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from runtime._core import Library
from runtime.error import LibraryLoadError

from ...support.mapped import is_mapped
from ..plain_library import ADD, CompileLibrary, answer


def test_key_is_that_of_the_file(library_file: Path) -> None:
    """Device, inode, size and time distinguish one file from another."""
    status = library_file.stat()
    expected = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    library = Library(os.fsencode(library_file))
    assert (library.key, library.path) == (expected, str(library_file))


def test_same_file_by_another_name_is_one_image(library_file: Path, tmp_path: Path) -> None:
    """A hard link and a second opening share the variables of the first."""
    os.link(library_file, tmp_path / "link.so")
    paths = [library_file, library_file, tmp_path / "link.so"]
    views = [Library(str(path)).data("blob") for path in paths]
    assert len({np.frombuffer(view, "u1").ctypes.data for view in views if view}) == 1


def test_new_file_at_an_old_path_is_new_code(
    compile_library: CompileLibrary, library_file: Path
) -> None:
    """Each replacement is loaded while the others are open, and found again."""
    libraries = []
    for value in range(1, 6):
        made = compile_library(ADD, f"-DANSWER={value}")
        fresh = library_file.with_name("fresh.so")
        shutil.copy(made, fresh)
        os.replace(fresh, library_file)
        libraries += [Library(str(library_file)), Library(str(library_file))]
    assert [answer(library) for library in libraries] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    del libraries
    assert not is_mapped(library_file)


def test_origin_is_the_folder_of_the_library(
    compile_library: CompileLibrary, tmp_path: Path
) -> None:
    """A dependency in the library's folder is found, also under the second spelling."""
    needed = compile_library("int needed(void) { return 1; }", "-Wl,-soname,libneeded.so")
    shutil.copy(needed, tmp_path / "libneeded.so")
    source = "int needed(void); int use(void) { return needed(); } int v%d;"
    for version in range(2):
        made = compile_library(
            source % version, str(tmp_path / "libneeded.so"), "-Wl,-rpath,$ORIGIN"
        )
        shutil.copy(made, tmp_path / "fresh.so")
        os.replace(tmp_path / "fresh.so", tmp_path / "lib.so")
        library = Library(str(tmp_path / "lib.so"))
        assert is_mapped(tmp_path / "libneeded.so")
    del library


def test_bare_name_is_a_file_here(
    library_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The working directory counts, the library search path never."""
    monkeypatch.chdir(tmp_path)
    assert answer(Library("lib.so")) == 1
    assert Library("lib.so").path == str(library_file)
    with pytest.raises(
        LibraryLoadError, match=r"/libc\.so\.6: cannot open: No such file"
    ) as caught:
        Library("libc.so.6")
    assert caught.value.reason == "io"


@pytest.mark.parametrize(
    "name", [b"with space.so", "ümläut 🐢.so".encode(), b"\xff\xfe.so", b"-rf.so", b"$(x)'\".so"]
)
def test_any_file_name_works(library_file: Path, tmp_path: Path, name: bytes) -> None:
    """Names are bytes, in arguments and in results."""
    path = os.path.join(os.fsencode(tmp_path), name)
    os.rename(library_file, path)
    assert answer(Library(path)) == answer(Library(os.fsdecode(path))) == 1
    assert os.fsencode(Library(path).path) == path


def test_unprintable_path_is_quoted() -> None:
    """No control character reaches a terminal through a message."""
    with pytest.raises(LibraryLoadError, match=r"^'/no\\nsuch\\x1b\\udcff': cannot open") as caught:
        Library(b"/no\nsuch\x1b\xff")
    assert caught.value.path == "/no\nsuch\x1b\udcff"


def test_nul_in_a_path_is_a_value_error() -> None:
    """Nul in a path is a value error."""
    with pytest.raises(ValueError, match="embedded null"):
        Library("a\0b")


def test_empty_path_is_refused() -> None:
    """Empty path is refused."""
    with pytest.raises(LibraryLoadError, match=r"^'': expected a path, found an empty one$"):
        Library("")


TOUCHES_ITSELF = """
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
__attribute__((constructor)) static void touch(void) {
  struct timespec times[2] = {{0, 0}, {rand() & 0xfffff, 0}};
  if (unlink(getenv("ONCE")) == 0 || getenv("ALWAYS"))
    utimensat(AT_FDCWD, getenv("TOUCHED"), times, 0);
}
"""


def test_file_replaced_while_it_is_opened(
    compile_library: CompileLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that changes once is opened again; one that changes repeatedly is busy."""
    path = Path(shutil.copy(compile_library(TOUCHES_ITSELF), tmp_path / "lib.so"))
    (tmp_path / "once").touch()
    monkeypatch.setenv("TOUCHED", str(path))
    monkeypatch.setenv("ONCE", str(tmp_path / "once"))
    assert Library(str(path)).key[3] == path.stat().st_mtime_ns
    monkeypatch.setenv("ALWAYS", "1")
    with pytest.raises(LibraryLoadError, match="replaced during 8 attempts to open it") as caught:
        Library(str(path))
    assert (caught.value.reason, is_mapped(path)) == ("busy", False)


def test_file_without_a_name(library_file: Path) -> None:
    """Bytes in memory are a file too; a reused descriptor number is another file."""
    for _ in range(2):
        descriptor = os.memfd_create("library")
        try:
            os.write(descriptor, library_file.read_bytes())
            library = Library(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
        assert answer(library) == 1
