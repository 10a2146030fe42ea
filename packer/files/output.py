"""Replace an output file as a whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import stat
import threading
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

from runtime.error import ExportError, PackerError

from .private_directory import private_directory, sweep
from .text import path_error, shown_path

AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]

# Errors of the output's disk, whichever call returned them. A read can fail with EIO too; the
# readers of inputs report that themselves.
_CANNOT_WRITE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


class Workspace:
    """The private folders in which one output is built.

    `directory` is for intermediate files, mode 0700. `output` is the new file, on the file system
    of the file that it replaces; `ahead` is a file there for bytes that are copied before `output`
    exists. `final` is the file that `commit` replaces; links are resolved.
    """

    def __init__(self, path: str, final: Path, private: Path, directory: Path) -> None:
        self._path = path
        self.final = final
        self.directory = directory
        self.output = private / "library.so"
        self.ahead = private / "library.ahead"

    def writing(self) -> contextlib.AbstractContextManager[None]:
        """Raise an ExportError for any OSError in a block that only writes `output`."""
        return reporting(self._path)

    def commit(self, *, is_program: bool = True) -> None:
        """Flush the finished output, and rename it to `final`.

        A program or library gets the execute permissions that the umask allows. Raises ExportError
        if the file cannot be flushed or renamed; the old file is unchanged. Or if the folder cannot
        be flushed after the rename; the new file may not survive a power failure.
        """
        with reporting(self._path):
            mode = _mode_of_new_file(self.output.parent, 0o777 if is_program else 0o666)
            _flush_file(self.output, mode)
            os.replace(self.output, self.final)  # from here on the path names the new file
            _flush_folder(self.final.parent)


@contextlib.contextmanager
def replacing(
    path: AnyPath, workspace_dir: str | os.PathLike[str] | None = None
) -> Iterator[Workspace]:
    """Build a new file beside `path`, then replace `path` with it; make missing folders.

    The block makes the `output` of the workspace, then calls `commit`; otherwise the old file
    stays. If `path` is a symbolic link, the file that it points to is replaced. Other hard links to
    the file keep the old bytes. The intermediate files are kept in a new folder ``packer-XXXX``
    inside `workspace_dir`, which is made if it is missing. Raises ExportError before any work if
    `path` cannot be written; later if the disk is full or fails.

    The private folder beside `path` is removed however the block ends. The folder of a killed
    process is removed by the next call for the same parent folder.
    """
    shown = os.fsdecode(path)
    with contextlib.ExitStack() as stack:
        with reporting(shown):
            final = _check_path(shown)
            stack.enter_context(_made_folders(final.parent))
            _refuse_protected(shown, final.parent)
            sweep(final.parent)
            # Again at the end: the compiler of a killed export may still write for a moment.
            stack.callback(sweep, final.parent)
            private = stack.enter_context(private_directory(final.parent))
        stack.enter_context(reporting(shown, codes=_CANNOT_WRITE))
        directory = private if workspace_dir is None else _kept_directory(workspace_dir)
        yield Workspace(shown, final, private, directory)


@contextlib.contextmanager
def terminate_as_exception() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise SystemExit(128 + number), so that the block cleans up.

    Only in the main thread, and only signals with the default handler, which is restored
    afterwards. After the first signal both are ignored, so that the cleanup is not interrupted.
    Raises SystemExit if one of the signals arrives.
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


def refuse_output_among_inputs(output: AnyPath, inputs: Iterable[AnyPath]) -> None:
    """Raise an ExportError if the output would replace one of the inputs."""
    if any(_is_same_file(path, output) for path in inputs):
        raise path_error(os.fsdecode(output), "is also an input; choose a different output")


@contextlib.contextmanager
def reporting(
    path: str | os.PathLike[str], what: str = "write", *, codes: Container[int | None] | None = None
) -> Iterator[None]:
    """Turn an OSError of a block (with one of these codes) or a NUL in `path` into ExportError."""
    try:
        yield
    except PackerError:  # some PackerErrors are OSErrors or ValueErrors
        raise
    except OSError as error:
        if codes is not None and error.errno not in codes:
            raise
        raise path_error(path, f"cannot {what}: {error.strerror or error}") from error
    except ValueError as error:
        if _is_path(os.fspath(path)):
            raise
        raise path_error(path, f"cannot {what}: {error}") from error


def _is_same_file(path: AnyPath, other: AnyPath) -> bool:
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):  # one of them does not exist
        return False


def _check_path(path: str) -> Path:
    """Resolve the path of an output, and refuse one that cannot be written."""
    if not _is_path(path):
        raise ExportError(f"{path!r}: no file can have this name", path=path)
    if os.path.basename(path) in ("", ".", ".."):
        raise path_error(path, "not the name of a file to write")
    with contextlib.suppress(FileNotFoundError):  # a new file, or a link to one
        _check_existing(path, os.stat(path).st_mode)
    final = Path(os.path.realpath(path))
    if os.path.islink(path) and not final.parent.is_dir():
        raise path_error(path, f"there is no folder {shown_path(final.parent)}")
    return final


def _refuse_protected(path: str, folder: Path) -> None:
    if not _is_writable(folder):
        raise path_error(path, f"cannot write in folder {shown_path(folder)}")


@contextlib.contextmanager
def _made_folders(folder: Path) -> Iterator[None]:
    """Make a folder and its parents, where missing; if the block fails, remove them."""
    missing: list[Path] = []
    made: list[Path] = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = folder.parent
    try:
        for new in reversed(missing):
            with contextlib.suppress(FileExistsError):  # another export made it meanwhile
                new.mkdir()
                made.append(new)
        yield
    except BaseException:
        for new in reversed(made):
            with contextlib.suppress(OSError):  # it is not empty
                new.rmdir()
        raise


def _is_path(path: str) -> bool:
    """Return True if the system accepts the path: no NUL, no lone surrogate."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def _check_existing(path: str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        what = "folder" if stat.S_ISDIR(mode) else "device, pipe or socket"
        raise path_error(path, f"is a {what}, expected a file")
    if not _is_writable(path):
        raise path_error(path, "is write-protected")


def _is_writable(path: str | Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _mode_of_new_file(directory: Path, mode: int) -> int:
    """Return the mode that the kernel gives a new file.

    os.umask cannot read the umask without setting it for every thread, and a default ACL of the
    folder replaces the umask.
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
    """Flush a new name to disk, if the folder may be read and its file system supports that."""
    with contextlib.suppress(PermissionError):  # mode 0300: writable, not readable
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno != errno.EINVAL:  # fsync(2): not supported here
                raise
        finally:
            os.close(descriptor)


def _kept_directory(workspace_dir: str | os.PathLike[str]) -> Path:
    with reporting(workspace_dir):
        import tempfile  # not at start-up: rarely needed

        os.makedirs(workspace_dir, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="packer-", dir=workspace_dir)).absolute()
