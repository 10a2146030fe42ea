"""A Python file, imported and compiled by a separate process: it may raise, loop or print."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packer import ExportError
from packer.files.text import path_error, shown_path

if TYPE_CHECKING:
    from .source import Processor, Progress
    from .values import Unit

READY = b"\0ready\n"  # Numba is imported, the file is next
IMPORTED = b"\0imported\n"  # the file is imported; what follows has no deadline
ERROR = b"\0error\n"  # the text of an error follows
STEP = b"\0step "  # a line; only after IMPORTED, and before what is pickled
_BOOT = """\
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
request = pickle.load(sys.stdin.buffer)
from dso_packer_numba.worker import main
main(request)
"""
_STEP = re.compile(rb"(?<=\0imported\n)\0step ([^\n]*)\n")
_PLACE = re.compile(rb'File "([^"]+)", line (\d+)')


def run_script(
    path: Path,
    signatures: Mapping[str, Sequence[str]],
    only: Sequence[str],
    timeout: float,
    prefix: str,
    processors: Sequence[Processor],
    blas: Path | None,
    progress: Progress,
) -> list[Unit]:
    """Import a file in another process, and compile its functions there.

    Parameters
    ----------
    path : Path
        The file.
    signatures, only
        As for `from_numba`.
    timeout : float
        Seconds until the file must be imported.
    prefix, processors, blas, progress
        As for `compile_functions`.

    Raises
    ------
    ExportError
        If the file cannot be read, raises, or is not imported in time; names the line.
    """
    if not path.is_file():
        raise path_error(path, "there is no such file")
    reading, writing = os.pipe()
    request = {
        "path": os.fspath(path.absolute()),
        "signatures": dict(signatures),
        "only": tuple(only),
        "timeout": timeout,
        "prefix": prefix,
        "processors": list(processors),
        "blas": None if blas is None else os.fspath(blas.absolute()),
        "answer": writing,
    }
    with os.fdopen(reading, "rb", buffering=0) as answers:
        process = _start(writing, request)
        try:
            data = _answer(answers, timeout, path, progress)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            assert process.stdin is not None  # a pipe
            process.stdin.close()
            process.wait()
    return _units(path, data, process.returncode)


def _start(writing: int, request: Mapping[str, Any]) -> subprocess.Popen[bytes]:
    """Start the process; standard output of the file is not that of the export."""
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _BOOT],
            stdin=subprocess.PIPE,
            stdout=2,
            pass_fds=(writing,),
            start_new_session=True,
        )
    finally:
        os.close(writing)
    assert process.stdin is not None  # a pipe
    with contextlib.suppress(BrokenPipeError):  # the process ended, which `_units` reports
        pickle.dump(sys.path, process.stdin)
        pickle.dump(request, process.stdin)
        process.stdin.flush()  # it stays open: at its end the process ends too
    return process


def _answer(answers: Any, timeout: float, path: Path, progress: Progress) -> bytes:
    """Read what the process writes until it ends, without the steps that it tells."""
    end, data = 0.0, b""
    while True:
        if not end and READY in data:
            end = time.monotonic() + timeout
        left = max(0.0, end - time.monotonic()) if end and IMPORTED not in data else None
        if not select.select([answers], [], [], left)[0]:
            text = f"is not imported after {timeout:g} s{_line_in(data, path)}"
            raise path_error(path, f"{text}; move what runs on import into a function")
        part = answers.read(1 << 20)
        if not part:
            return data
        data += part
        while step := _STEP.search(data):
            progress(step[1].decode("utf-8", "replace"))
            data = data[: step.start()] + data[step.end() :]


def _line_in(data: bytes, path: Path) -> str:
    """Return the line of the file that ran, from the traceback that the process wrote."""
    place = os.fsencode(path.absolute())
    lines = [int(line) for name, line in _PLACE.findall(data) if name == place]
    return f", it runs line {lines[0]}" if lines else ""


def _units(path: Path, data: bytes, code: int) -> list[Unit]:
    """Return the units in an answer; raise what it reports."""
    _, mark, rest = data.partition(IMPORTED)
    _, is_error, error = data.partition(ERROR)
    if is_error:
        raise ExportError(error.decode("utf-8", "replace"), path=str(path))
    if not mark or not rest:
        text = f"{shown_path(path)}: the process that imports it ended with code {code}"
        raise ExportError(f"{text}, expected an answer", path=str(path))
    units: list[Unit] = pickle.loads(rest)
    return units
