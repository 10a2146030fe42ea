"""The judgement of an input: a valid object or an error of runtime, soon and in little memory."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from runtime import PackerError

MOST_SECONDS, MOST_NBYTES = 1.0, 64 << 20


class Target(NamedTuple):
    """A function under test: `parse` takes the bytes, and reads all of the object that it makes.

    Attributes
    ----------
    inputs : strategy of bytes
        The inputs to try.
    valid : sequence of bytes
        Inputs that `parse` accepts.
    errors : classes
        The errors that it may raise.
    """

    name: str
    inputs: st.SearchStrategy[bytes]
    valid: Sequence[bytes]
    parse: Callable[[bytes], Any]
    errors: tuple[type[Exception], ...] = (PackerError,)


class FoundError(AssertionError):
    """An input failed; the message is one line, the same for the same cause."""


def judge(target: Target, data: bytes) -> bool:
    """Return True if a target accepts an input.

    Raises
    ------
    FoundError
        It raises an unexpected error, takes too long, or too much memory.
    """
    _reset_peak()
    before, start = _status("VmRSS"), time.process_time()
    accepted = _parse(target, data)
    seconds = time.process_time() - start
    nbytes = _status("VmHWM") - before
    if seconds > MOST_SECONDS and _is_slow_again(target, data):
        raise FoundError(f"takes more than {MOST_SECONDS} s")
    if nbytes > MOST_NBYTES + len(data):
        raise FoundError(f"takes more than {MOST_NBYTES >> 20} MiB")
    return accepted


def _parse(target: Target, data: bytes) -> bool:
    try:
        target.parse(data)
    except target.errors as error:
        if not str(error):
            raise FoundError(f"{type(error).__name__} without a message") from error
        return False
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{Path(frames[-1].filename).name}:{frames[-1].name}"
        raise FoundError(f"{type(error).__name__} in {place}: {error!s:.80}") from error
    return True


def _is_slow_again(target: Target, data: bytes) -> bool:
    """A machine may be busy once."""
    start = time.process_time()
    _parse(target, data)
    return time.process_time() - start > MOST_SECONDS


def _reset_peak() -> None:
    """proc(5): 5 sets the peak of the resident set to its current size."""
    Path("/proc/self/clear_refs").write_text("5")


def _status(field: str) -> int:
    text = Path("/proc/self/status").read_text()
    return int(text.partition(f"{field}:")[2].split()[0]) << 10
