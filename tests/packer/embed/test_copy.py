"""The copy of bytes into a library: any alignment, other disks, holes, sources that change."""

from __future__ import annotations

import errno
import mmap
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import packer
from packer.embed.copy import write_chunks
from runtime._core import reserve
from runtime.serial.stream import FileRange

from ...support import needs

NBYTES = (1 << 20) + 12345


@pytest.fixture
def copy(tmp_path) -> Iterator[Callable[..., bytes]]:
    """``copy(offset, *chunks)``: the file after the chunks were written there."""
    descriptor = os.open(tmp_path / "target", os.O_RDWR | os.O_CREAT)

    def copy(offset: int, *chunks, report=lambda done, total: None) -> bytes:
        write_chunks(descriptor, offset, chunks, report)
        return os.pread(descriptor, 1 << 30, 0)

    yield copy
    os.close(descriptor)


@pytest.fixture
def source(tmp_path) -> Path:
    """A file of random bytes."""
    path = tmp_path / "source"
    path.write_bytes(random.Random(1).randbytes(NBYTES))
    return path


@pytest.mark.parametrize("at", [0, 1, 4096, 70_001])
@pytest.mark.parametrize("to", [0, 64, 65_536, 65_537, 70_001])
@pytest.mark.parametrize("nbytes", [0, 1, 4095, 4096, 65_537, NBYTES - 70_001])
def test_range_is_copied_whatever_its_alignment(at, to, nbytes, copy, source) -> None:
    """The kernel copies if both offsets are alike in their pages; otherwise the data is read."""
    data = source.read_bytes()
    written = copy(to, FileRange(str(source), at, nbytes))
    assert written[to:] == data[at : at + nbytes]


def test_chunks_of_all_kinds_follow_each_other(copy, source) -> None:
    """Bytes, views and ranges, without a gap; the report ends with all of them."""
    data, told = source.read_bytes(), []
    chunks = [b"head", FileRange(str(source), 5, 1000), b"", memoryview(data)[7:300_000], b"tail"]
    written = copy(100, *chunks, report=lambda done, total: told.append((done, total)))
    assert written[100:] == b"head" + data[5:1005] + data[7:300_000] + b"tail"
    assert told[-1] == (len(written) - 100, len(written) - 100)


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder on a file system that the kernel cannot copy from to this one."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.mark.parametrize("to", [0, 64])
def test_source_on_another_file_system_is_copied(to, copy, elsewhere, source) -> None:
    """copy_file_range returns EXDEV between them."""
    data = source.read_bytes()
    (elsewhere / "source").write_bytes(data)
    with (elsewhere / "source").open("rb") as file, (source.parent / "t").open("wb") as target:
        if os.fstat(file.fileno()).st_dev == os.fstat(target.fileno()).st_dev:
            needs.system("two file systems", "temporary files are stored in /dev/shm too")
        with pytest.raises(OSError, match=os.strerror(errno.EXDEV)):
            os.copy_file_range(file.fileno(), target.fileno(), 100)
    assert copy(to, FileRange(str(elsewhere / "source"), 0, NBYTES))[to:] == data


def test_holes_stay_holes(copy, tmp_path) -> None:
    """A gigabyte of holes takes no room: between data, in front and after it."""
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        for position in (1 << 28, 1 << 29):
            file.seek(position)
            file.write(b"data")
        file.truncate(1 << 30)
    descriptor = os.open(tmp_path / "target", os.O_RDWR)
    os.ftruncate(descriptor, 64 + (1 << 30))
    write_chunks(descriptor, 64, [FileRange(str(path), 0, 1 << 30)], lambda done, total: None)
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as mapped:
        assert mapped[64 + (1 << 28) : 68 + (1 << 28)] == b"data"
        assert mapped[64 + (1 << 29) : 68 + (1 << 29)] == b"data"
    assert os.fstat(descriptor).st_blocks * 512 < 1 << 20
    os.close(descriptor)


def test_blocks_are_reserved_for_the_bytes_to_write(tmp_path) -> None:
    """Reserved, they read as zeros; where that is impossible, nothing happens."""
    descriptor = os.open(tmp_path / "target", os.O_RDWR | os.O_CREAT)
    reserve(descriptor, 4096, NBYTES)
    assert os.fstat(descriptor).st_blocks * 512 >= NBYTES
    assert os.pread(descriptor, 1 << 30, 0) == bytes(4096 + NBYTES)
    os.close(descriptor)
    read_only = os.open(tmp_path / "target", os.O_RDONLY)
    reserve(read_only, 0, 1 << 30)
    assert os.fstat(read_only).st_size == 4096 + NBYTES
    os.close(read_only)


def test_much_is_reserved_before_it_is_written(copy, tmp_path) -> None:
    """The blocks of a range and of a view are reserved before the first piece is written."""

    def note(done: int, total: int) -> None:
        nblocks.append(os.stat(tmp_path / "target").st_blocks)

    data = bytes(40 << 20)
    path = tmp_path / "source"
    path.write_bytes(data)
    for chunk in (FileRange(str(path), 5, len(data) - 5), memoryview(data)):
        nblocks: list[int] = []
        os.truncate(tmp_path / "target", 0)
        copy(0, chunk, report=note)
        assert len(nblocks) > 1
        assert nblocks[0] * 512 >= len(data) - 5


def append(path: Path) -> None:
    """Make a file longer."""
    with path.open("ab") as file:
        file.write(b"more")


def overwrite(path: Path) -> None:
    """Change a byte."""
    with path.open("r+b") as file:
        file.write(b"?")


def shorten(path: Path) -> None:
    """Leave the first half."""
    os.truncate(path, NBYTES // 2)


@pytest.mark.parametrize("change", [append, overwrite, shorten])
@pytest.mark.parametrize("to", [0, 64])
def test_source_that_changes_meanwhile_is_an_export_error(change, to, copy, source) -> None:
    """The change is detected, and a half-old file is never accepted."""
    os.utime(source, (0, 0))
    with pytest.raises(packer.ExportError, match="source: .*it changed while it was read") as info:
        copy(to, FileRange(str(source), 0, NBYTES), report=lambda done, total: change(source))
    assert info.value.path == str(source)


def test_source_that_is_too_short_or_missing_is_an_export_error(copy, tmp_path, source) -> None:
    """The error is raised before the copy of a byte."""
    with pytest.raises(packer.ExportError, match="it changed while it was read"):
        copy(0, FileRange(str(source), 1, NBYTES))
    with pytest.raises(packer.ExportError, match="gone: cannot be copied: No such file"):
        copy(0, FileRange(str(tmp_path / "gone"), 0, 1))
    with pytest.raises(packer.ExportError, match="cannot be copied: Is a directory"):
        copy(0, FileRange(str(tmp_path), 0, 1))


def test_errors_of_source_and_target_are_distinguished(tmp_path, source) -> None:
    """A failing target raises a plain OSError, copied by the kernel or not."""
    for offset in (0, 64):
        descriptor = os.open(source, os.O_RDONLY)  # cannot be written
        with pytest.raises(OSError, match="Bad file descriptor"):
            write_chunks(descriptor, offset, [FileRange(str(source), 0, 64)], lambda *_: None)
        os.close(descriptor)


def test_signal_handlers_run_during_a_copy(copy, source) -> None:
    """An exception that a handler raises ends the copy; otherwise the copy continues."""
    import signal

    calls = []
    previous = signal.signal(signal.SIGALRM, lambda *_: calls.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)
    try:
        for to in (0, 64):
            assert copy(to, FileRange(str(source), 0, NBYTES))[to:] == source.read_bytes()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert calls
