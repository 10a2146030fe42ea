"""Replace an output file as a whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import stat
import threading
from collections.abc import Container, Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

from runtime.error import ExportError, PackerError

from .private_directory import private_directory, sweep
from .text import shown_path

# What a write runs into: whoever wrote, the disk under the output is to blame. EIO may come of a
# read, too; who reads an input says so itself.
_CANNOT_WRITE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


class Workspace:
    """Where one output is built.

    Attributes
    ----------
    directory : Path
        For intermediate files; private, mode 0700.
    output : Path
        Where the new file is to be made, on the target's own file system.
    ahead : Path
        For what is copied on that file system before there is an output.
    target : Path
        What `commit` replaces; links are resolved.
    """

    def __init__(self, path: str, target: Path, private: Path, directory: Path) -> None:
        self._path = path
        self.target = target
        self.directory = directory
        self.output = private / "library.so"
        self.ahead = private / "library.ahead"

    def writing(self) -> contextlib.AbstractContextManager[None]:
        """Have whatever the system says in a block that only writes `output` be an ExportError."""
        return _reporting(self._path)

    def commit(self, *, is_program: bool = True) -> None:
        """Put the finished output in the target's place, on disk and under its name at once.

        Parameters
        ----------
        is_program : bool
            Whether the file may be executed, as far as the umask lets it: a library may.

        Raises
        ------
        ExportError
            The file cannot be flushed or renamed: the target is as it was. Or it was renamed,
            but the disk broke under the folder's own flush: the target is the new file, as yet.
        """
        with _reporting(self._path):
            mode = _mode_of_new_file(self.output.parent, 0o777 if is_program else 0o666)
            _flush_file(self.output, mode)
            os.replace(self.output, self.target)  # from here on the target is the new file
            _flush_folder(self.target.parent)


@contextlib.contextmanager
def replacing(
    path: str | bytes | os.PathLike[str], *, workspace_dir: str | os.PathLike[str] | None = None
) -> Iterator[Workspace]:
    """Build a new file beside `path`, then replace `path` with it.

    Parameters
    ----------
    path : path
        The file to make or to replace. Of a symbolic link, what it points to is replaced; of a
        file with several names, the others keep the old bytes.
    workspace_dir : path, optional
        Keep the intermediate files: in a new folder ``packer-XXXX`` inside this one.

    Yields
    ------
    Workspace
        Make its `output`, then call `commit`; without that the target stays as it is.

    Raises
    ------
    ExportError
        Before any work: `path` cannot be written. Later: the disk is full or breaks.

    Notes
    -----
    Whatever ends the block, the private folder beside the target goes. What a killed process
    left behind goes with the next call for the same folder.
    """
    shown = os.fsdecode(path)
    with contextlib.ExitStack() as stack:
        with _reporting(shown):
            target = _check_target(shown)
            sweep(target.parent)
            # Again at the end: a killed export's compiler may outlive it by a moment, and write.
            stack.callback(sweep, target.parent)
            private = stack.enter_context(private_directory(target.parent))
        stack.enter_context(_reporting(shown, _CANNOT_WRITE))
        directory = private if workspace_dir is None else _kept_directory(workspace_dir)
        yield Workspace(shown, target, private, directory)


@contextlib.contextmanager
def terminate_as_exception() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise SystemExit(128 + number), so that the block cleans up.

    Only where they have their default effect and in the main thread; restored afterwards. Once
    one has arrived both are ignored, so that the cleaning itself is not broken off.

    Raises
    ------
    SystemExit
        One of the signals arrived.
    """
    numbers: list[int] = []
    if threading.current_thread() is threading.main_thread():
        candidates = (signal.SIGTERM, signal.SIGHUP)
        numbers = [n for n in candidates if signal.getsignal(n) is signal.SIG_DFL]

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        for other in numbers:
            signal.signal(other, signal.SIG_IGN)
        raise SystemExit(128 + number)

    try:
        for number in numbers:
            signal.signal(number, end)
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def is_same_file(path: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two paths lead to one file; not where one of them leads to none."""
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):
        return False


@contextlib.contextmanager
def _reporting(path: str, codes: Container[int | None] | None = None) -> Iterator[None]:
    """Turn an OSError (with one of these codes) into an ExportError about the output."""
    try:
        yield
    except PackerError:  # some of ours are OSErrors
        raise
    except OSError as error:
        if codes is not None and error.errno not in codes:
            raise
        reason = error.strerror or error
        raise ExportError(f"{shown_path(path)}: cannot write: {reason}", path=path) from error


def _check_target(path: str) -> Path:
    """Find what is to be replaced, and refuse what cannot be before any work is done."""
    if not _is_path(path):
        raise ExportError(f"{path!r}: no file can have this name", path=path)
    if os.path.basename(path) in ("", ".", ".."):
        raise ExportError(f"{shown_path(path)}: not the name of a file to write", path=path)
    with contextlib.suppress(FileNotFoundError):  # new, or a link whose end does not exist yet
        _check_existing(path, os.stat(path).st_mode)
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        folder = shown_path(target.parent)
        raise ExportError(f"{shown_path(path)}: there is no folder {folder}", path=path)
    if not _is_writable(target.parent):
        folder = shown_path(target.parent)
        raise ExportError(f"{shown_path(path)}: cannot write in folder {folder}", path=path)
    return target


def _is_path(path: str) -> bool:
    """Whether the system can be asked for the path at all: no NUL, no lone surrogate."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def _check_existing(path: str, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise ExportError(f"{shown_path(path)}: is a folder, expected a file", path=path)
    if not stat.S_ISREG(mode):
        kind = "device, pipe or socket"
        raise ExportError(f"{shown_path(path)}: is a {kind}, expected a file", path=path)
    if not _is_writable(path):
        raise ExportError(f"{shown_path(path)}: is write-protected", path=path)


def _is_writable(path: str | Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _mode_of_new_file(directory: Path, mode: int) -> int:
    """The mode that a new file has: a linker's output has 0777 less the umask.

    The kernel is left to say it. Reading the umask by os.umask would set it for a moment, for
    every thread; and where a default ACL stands in for the umask this is right too.
    """
    probe = os.open(directory / ".mode", os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
    try:
        return stat.S_IMODE(os.fstat(probe).st_mode)
    finally:
        os.close(probe)


def _flush_file(path: Path, mode: int) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _flush_folder(path: Path) -> None:
    """Flush a new name to disk, unless this may not be asked of the folder or file system."""
    with contextlib.suppress(PermissionError):  # mode 0300: to be written, not to be read
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno != errno.EINVAL:  # fsync(2): not supported here
                raise
        finally:
            os.close(descriptor)


def _kept_directory(workspace_dir: str | os.PathLike[str]) -> Path:
    with _reporting(os.fspath(workspace_dir)):
        import tempfile  # not at start-up: it is rarely needed

        return Path(tempfile.mkdtemp(prefix="packer-", dir=workspace_dir)).absolute()
