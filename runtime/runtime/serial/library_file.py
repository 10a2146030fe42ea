"""A loaded library's file as bytes, and bytes as a file that can be loaded."""

from __future__ import annotations

import os

from .._core import Library, prove
from ..error import ExportError, LibraryLoadError
from ..trust.sealed_memory import mapped, sealed_file, write_pieces

# The bytes compared per step: malloc maps and unmaps larger pieces, which takes five times longer.
_STEP = 1 << 16


def file_bytes(library: Library) -> memoryview:
    """View the file that a library was loaded from; it may be closed later.

    Only weights that are mapped from a signed file are copied, since the file may change; all of
    them are verified. Raises ExportError if the file was removed or replaced.
    """
    if library.descriptor >= 0:
        whole = mapped(library.descriptor)
        return whole if library.pieces is None else _with_pieces(whole, *library.pieces)
    again = "load the file that is there now, and serialise that"
    try:
        descriptor = os.open(library.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        text = f"{library.path}: cannot be read again: {error.strerror}; {again}"
        raise ExportError(text, module="library", path=library.path) from error
    try:
        state = os.fstat(descriptor)
        if library.key != (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns):
            text = f"{library.path}: was replaced or changed after it was loaded; {again}"
            raise ExportError(text, module="library", path=library.path)
        return mapped(descriptor)
    finally:
        os.close(descriptor)


def _with_pieces(whole: memoryview, offset: int, pieces: memoryview) -> memoryview:
    end = offset + len(pieces)
    return memoryview(b"".join((whole[:offset], prove(pieces), whole[end:])))


def has_bytes(library: Library, data: memoryview) -> bool:
    """Return True if a library was loaded from equal bytes.

    A file on disk must not have changed since it was loaded. Its change time decides: unlike the
    time of modification, programs cannot set it.
    """
    if library.key[2] != len(data) or library.pieces is not None:  # others may write to its file
        return False
    try:
        if library.descriptor < 0 and os.stat(library.path).st_ctime_ns != library.ctime_ns:
            return False
        loaded = file_bytes(library)
    except (ExportError, OSError):
        return False
    starts = range(0, len(data), _STEP)
    return all(bytes(loaded[i : i + _STEP]) == bytes(data[i : i + _STEP]) for i in starts)


def open_bytes(data: memoryview, *, allow_file: bool) -> Library:
    """Open a library from its bytes: of a sealed file in memory, to which they are copied.

    If that fails, and `allow_file`, of a private file, which is not sealed and removed immediately.
    Raises LibraryLoadError if the bytes are not a library for this machine, or there is no file.
    """
    try:
        return _open(sealed_file([data]), data)
    except LibraryLoadError as error:
        # A policy may refuse code in sealed memory; dlopen of a private file succeeds then.
        if error.reason != "io" and not (error.reason == "dlopen" and allow_file):
            raise
        reason = str(error).removeprefix(f"{_name(data)}: ")
    except OSError as error:
        reason = str(error.strerror)
    if not allow_file:
        text = (
            f"{_name(data)}: cannot be loaded from a sealed file in memory: {reason}; to load a "
            f"private file that is not sealed, use load_from_bytes(data, allow_file=True)"
        )
        raise LibraryLoadError(text, path=_name(data), reason="io")
    try:
        return _open_private_file(data)
    except LibraryLoadError:
        raise
    except OSError as error:
        text = f"{_name(data)}: cannot be written to a private file: {error.strerror}"
        raise LibraryLoadError(text, path=_name(data), reason="io") from error


def _name(data: memoryview) -> str:
    return f"<{len(data)} bytes>"


def _open(descriptor: int, data: memoryview, path: str | None = None) -> Library:
    """Open the file; the library owns the descriptor until it is closed.

    dlopen identifies a library by its name: if another file got the same number, dlopen would
    return the old library.
    """
    try:
        path = path or f"/proc/self/fd/{descriptor}"
        return Library(path, name=_name(data), descriptor=descriptor)
    except BaseException:
        os.close(descriptor)
        raise


def _open_private_file(data: memoryview) -> Library:
    from tempfile import mkdtemp

    folder = mkdtemp(prefix="packer-")
    path = f"{folder}/library.so"
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        try:
            try:
                write_pieces(descriptor, [data])
            except BaseException:
                os.close(descriptor)
                raise
            return _open(descriptor, data, path)
        finally:
            os.unlink(path)
    finally:
        os.rmdir(folder)
