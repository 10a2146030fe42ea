"""Write to the terminal: lines without control characters, and the current step of an export."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

from runtime.error import PackerError

from ..files.text import printable

if TYPE_CHECKING:
    from ..inspect.drawing import Line

# A copy shows its bytes after this time, and then at this interval.
_BYTES_AFTER_S, _BYTES_EVERY_S = 1.0, 0.1
# Without a terminal, the steps of an export that takes longer are lines.
_LINES_AFTER_S = 10.0
_ERASE_LINE = "\r\x1b[K"  # ECMA-48, EL: erase to the end of the line


def write(text: str) -> None:
    """Write a line to stdout, and flush it.

    Raises BrokenPipeError if the reader of the pipe has closed it. Raises PackerError if it cannot
    be written.
    """
    with _reporting_stdout():
        print(printable(text), flush=True)


def write_parts(parts: Iterable[str]) -> None:
    """Write parts of printable text to stdout, with the errors of `write`."""
    with _reporting_stdout():
        for part in parts:
            sys.stdout.write(part)
        sys.stdout.flush()


def show(lines: Iterable[Line]) -> None:
    """Write lines to stdout, with the errors of `write`.

    On a terminal they have colours and its width, unless the environment sets NO_COLOR
    (no-color.org) or COLUMNS.
    """
    from ..inspect.drawing import draw

    text = draw(lines, colour=_shows_colour(), width=_width())
    with _reporting_stdout():
        print(text, end="", flush=True)


def flush() -> None:
    """Flush the output of other code, with the errors of `write`."""
    with _reporting_stdout():
        sys.stdout.flush()


def write_error(text: str) -> None:
    """Write a line to stderr; errors are ignored."""
    _put(f"{printable(text)}\n")


class Steps:
    """Shows each step of an export as it begins, and the bytes of a copy that takes long.

    If `verbose`, each step, command and written file has a line. Otherwise a terminal shows the
    step in one line that is overwritten; elsewhere each step has a line from the tenth second on.
    """

    def __init__(self, verbose: bool) -> None:
        self._shows_lines = verbose
        self.transient = not verbose and sys.stderr.isatty()
        self._step = "export"
        self._next = 0.0
        self._first: tuple[float, int] | None = None

    def __call__(self, step: str) -> None:
        """Show a step."""
        self._step = step
        self._next = time.monotonic() + _BYTES_AFTER_S
        self._first = None
        if self._shows_lines:
            write_error(f"packer: {step}")
        elif self.transient:
            _put(f"{_ERASE_LINE}packer: {step}")

    def show_lines(self) -> None:
        """Show the current step, and each one that follows, as a line."""
        self._shows_lines = True
        write_error(f"packer: {self._step}")

    def output(self, text: str) -> None:
        """Show the warnings of a compiler or linker; they stay."""
        if self.transient:
            _put(_ERASE_LINE)
        write_error(text)

    def sources(self, done: int, total: int, cached: int) -> None:
        """Show how many sources of the step were compiled, or found in the cache."""
        if self.transient and time.monotonic() >= self._next:
            shown = f"{done} of {total} sources" + (f", {cached} from the cache" if cached else "")
            _put(f"{_ERASE_LINE}packer: {self._step} {shown}")

    def bytes(self, done: int, total: int) -> None:
        """Show the progress of the step, and its rate since the first call.

        The bytes of the first call were copied before, while the compiler and the linker ran.
        """
        now = time.monotonic()
        began, before = self._first = self._first or (now, done)
        if self.transient and now >= self._next and now > began:
            self._next = now + _BYTES_EVERY_S
            rate = size_text(int((done - before) / (now - began)))
            shown = f"{size_text(done)} of {size_text(total)}, {rate}/s"
            _put(f"{_ERASE_LINE}packer: {self._step} {shown}")


@contextlib.contextmanager
def showing_steps(verbose: bool) -> Iterator[Steps]:
    """Show the steps of an export during a block; see `Steps`."""
    steps = Steps(verbose)
    late = threading.Timer(_LINES_AFTER_S, steps.show_lines)
    late.daemon = True
    if verbose:
        sys.addaudithook(_show_event)
    elif not steps.transient:
        late.start()
    try:
        yield steps
    finally:
        late.cancel()
        if steps.transient:
            _put(_ERASE_LINE)


def size_text(nbytes: int) -> str:
    """Write a number of bytes as ``1.5 MiB``."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if nbytes >> shift:
            return f"{nbytes / (1 << shift):.1f} {unit}"
    return f"{nbytes} bytes"


def open_missing_streams() -> None:
    """Open the standard streams that were closed when the process started.

    Otherwise the next file that is opened becomes stdout, and output is written into it.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number: this one
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a locale's encoding may lack a character
            stream.reconfigure(errors="backslashreplace")


def _shows_colour() -> bool:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    return sys.stdout.isatty() and not plain


def _width() -> int | None:
    if not sys.stdout.isatty():
        return None
    import shutil

    return shutil.get_terminal_size().columns


def _show_event(event: str, arguments: tuple[Any, ...]) -> None:
    """Show the command, written file or renamed file of an audit event."""
    if event == "subprocess.Popen":
        import shlex

        from ..toolchain.process import GUARD

        if arguments[1] == [*GUARD]:
            return
        write_error(f"  {shlex.join(map(os.fsdecode, arguments[1]))}")
    elif event == "open" and isinstance(arguments[0], (str, bytes)):
        path, _, flags = arguments
        name = os.fsdecode(path)
        is_hidden = os.path.basename(name).startswith(".") or name == os.devnull
        if flags & (os.O_WRONLY | os.O_RDWR) and not is_hidden:
            write_error(f"  write {printable(name)}")
    elif event == "os.rename":
        old, new = (os.fsdecode(path) for path in arguments[:2])
        write_error(f"  rename {printable(old)} {printable(new)}")


def _put(text: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


@contextlib.contextmanager
def _reporting_stdout() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # Discard the buffered output: the interpreter would write it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(error, BrokenPipeError):
            raise
        raise PackerError(f"cannot write to stdout: {error.strerror}") from error
