"""The fuzzing of inputs: its seeds are valid, failures are found, a short run finds nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from runtime import BlobFormatError

from ..support import needs
from .judge import FoundError, Target, judge

SCRIPT = Path(__file__).with_name("inputs.py")


def fed(read: Callable[[bytes], Any], data: bytes = b"") -> bool:
    """The verdict on one input of a target that reads it so."""
    return judge(Target("planted", st.just(data), [data], read), data)


def fail(error: BaseException) -> Callable[[bytes], Any]:
    """A reader that raises."""

    def read(_: bytes) -> None:
        raise error

    return read


def work(seconds: float) -> None:
    """Be busy."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_our_errors_are_not_findings() -> None:
    """A value is accepted, and one of our errors refused."""
    assert fed(len)
    assert not fed(fail(BlobFormatError("blob at 0x0: wrong")))


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (fail(KeyError("lost")), "KeyError in test_inputs.py:read: 'lost'"),
        (fail(BlobFormatError("")), "BlobFormatError without a message"),
        (lambda _: work(1.2), "takes more than 1.0 s"),
        (lambda _: bytes(bytearray(100 << 20)), "takes more than 64 MiB"),
    ],
    ids=["error", "message", "time", "memory"],
)
def test_failures_are_found(read: Callable[[bytes], Any], message: str) -> None:
    """Any other error, a second of work, and memory beyond the input's size."""
    with pytest.raises(FoundError, match=message):
        fed(read)


PLANTED = """
import os, sys
sys.path.append(sys.argv[1])
from hypothesis import strategies as st
from runtime import BlobFormatError
from tests.fuzz import inputs
from tests.fuzz.judge import Target

def read(data):
    if sys.argv[3] == "seed":
        raise BlobFormatError("planted")
    if len(data) > 2 and data[2] > 99:
        os.abort() if sys.argv[3] == "crash" else int("x")

inputs.OUTPUT = inputs.Path(sys.argv[2])
target = Target("planted", st.binary(min_size=0, max_size=4), [b""], read)
sys.exit(inputs.run([target], range(1), 0, 500))
"""


@pytest.mark.parametrize(
    ("kind", "message"),
    [("crash", "crash: SIGABRT"), ("error", "ValueError in <string>:read: invalid literal")],
)
def test_input_of_a_finding_is_saved(tmp_path: Path, kind: str, message: str) -> None:
    """A crash ends the child alone; of an error the shrunk input is kept."""
    command = [sys.executable, "-c", PLANTED, str(SCRIPT.parents[2]), str(tmp_path), kind]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stderr
    assert f"FOUND planted: {message}" in run.stdout
    [path] = tmp_path.iterdir()
    assert path.read_bytes()[2] > 99
    assert kind == "crash" or path.read_bytes() == b"\0\0d"


def test_refused_seed_is_found(tmp_path: Path) -> None:
    """A target whose valid input is refused."""
    command = [sys.executable, "-c", PLANTED, str(SCRIPT.parents[2]), str(tmp_path), "seed"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stderr
    assert "FOUND planted: a valid input is refused" in run.stdout


def test_short_run_finds_nothing() -> None:
    """Each target accepts its seeds, and is fed some inputs; CI runs it for longer."""
    needs.program("openssl")
    command = [sys.executable, str(SCRIPT), "--seconds", "1", "--examples", "10"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, ""), run.stdout
    rows = run.stdout.splitlines()
    assert len(rows) > 16
    assert rows[-1].startswith("0 findings, seeds 1 to ")
