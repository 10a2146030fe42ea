"""The output of a terminal during a long copy."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from ...support.compile import compile_c

# argv: how many GiB there are when the step begins.
_COPY = """
import sys, time
from packer.cli.terminal import showing_steps
before = int(sys.argv[1]) << 30
with showing_steps(verbose=False) as steps:
    steps("place")
    steps.bytes(1 + before, 4 << 30)
    time.sleep(1.1)
    steps.bytes(before + (3 << 29), 4 << 30)
    steps.bytes(before + (3 << 29) + 1, 4 << 30)
"""


@pytest.mark.parametrize("before", [0, 2])
def test_copy_that_takes_over_a_second_shows_bytes_and_rate(before: int) -> None:
    """The line appears late, not for every piece, and is removed in the end.

    Bytes that were copied during the link count as done, not as copied in the time since.
    """
    parent, child = pty.openpty()
    subprocess.run([sys.executable, "-c", _COPY, str(before)], stderr=child, check=True)
    os.close(child)
    shown = os.read(parent, 65536).decode()
    os.close(parent)
    lines = shown.split("\r\x1b[K")
    assert lines[1] == "packer: place"
    assert lines[2].startswith(f"packer: place {before + 1.5} GiB of 4.0 GiB, 1.")
    assert lines[2].endswith(" GiB/s")
    assert lines[3:] == [""]


_COMPILE = """
import time
from packer.cli.terminal import showing_steps
with showing_steps(verbose=False) as steps:
    steps("link")
    steps.sources(40, 110, 40)
    time.sleep(1.1)
    steps.sources(41, 110, 40)
    steps.sources(42, 110, 40)
"""


def test_sources_that_take_over_a_second_are_counted() -> None:
    """With sources of the object cache; each one counts, since a source may take seconds."""
    parent, child = pty.openpty()
    subprocess.run([sys.executable, "-c", _COMPILE], stderr=child, check=True)
    os.close(child)
    lines = os.read(parent, 65536).decode().split("\r\x1b[K")
    os.close(parent)
    shown = [f"packer: link {done} of 110 sources, 40 from the cache" for done in (41, 42)]
    assert lines[1:] == ["packer: link", *shown, ""]


@pytest.mark.parametrize("code", [_COPY, _COMPILE])
def test_pipe_gets_nothing_of_it(code: str) -> None:
    """A log contains no line that is overwritten, however long the step takes."""
    run = subprocess.run([sys.executable, "-c", code, "0"], capture_output=True, check=True)
    assert (run.stdout, run.stderr) == (b"", b"")


# A disk that takes 2 MB/s.
_SLOW_DISK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>
ssize_t pwrite64(int file, const void *data, size_t nbytes, off_t offset) {
  ssize_t (*real)(int, const void *, size_t, off_t) =
      (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite64");
  usleep((useconds_t)(nbytes / 2));
  return real(file, data, nbytes, offset);
}
ssize_t pwrite(int file, const void *data, size_t nbytes, off_t offset) {
  return pwrite64(file, data, nbytes, offset);
}
"""


def test_export_to_a_slow_disk_shows_its_progress(tmp_path: Path) -> None:
    """The command line shows the progress of the copy."""
    header = b'{"w": {"dtype": "U8", "shape": [4194304], "data_offsets": [0, 4194304]}}'
    weights = tmp_path / "w.safetensors"
    weights.write_bytes(len(header).to_bytes(8, "little") + header + b"w" * (4 << 20))
    slow = compile_c(_SLOW_DISK, tmp_path / "slow.so", "-ldl")
    command = [sys.executable, "-m", "packer", "export", "w.so", "--weights", weights]
    parent, child = pty.openpty()
    environment = {**os.environ, "LD_PRELOAD": str(slow)}
    subprocess.run(
        command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=child, check=True
    )
    os.close(child)
    shown = os.read(parent, 65536).decode().split("\r\x1b[K")
    os.close(parent)
    told = [line for line in shown if " of 4.0 MiB, " in line]
    assert told
    assert all(line.startswith("packer: place ") and line.endswith("iB/s") for line in told)


_LONG = """
import time
from packer.cli import terminal
terminal._LINES_AFTER_S = 0.5
with terminal.showing_steps(verbose=False) as steps:
    steps("collect")
    steps("link")
    time.sleep(1.5)
    steps("verify")
"""


def test_an_export_that_takes_long_shows_its_steps_without_a_terminal() -> None:
    """The one that runs then, and the later ones; a short export shows none."""
    run = subprocess.run([sys.executable, "-c", _LONG], capture_output=True, text=True, check=True)
    assert run.stderr.splitlines() == ["packer: link", "packer: verify"]
    short = _LONG.replace("0.5", "50").replace("1.5", "0")
    run = subprocess.run([sys.executable, "-c", short], capture_output=True, text=True, check=True)
    assert run.stderr == ""
