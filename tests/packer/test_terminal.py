"""What a terminal shows of a long copy."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

_COPY = """
import time
from packer.cli.terminal import showing_steps
with showing_steps(verbose=False) as steps:
    steps("place")
    steps.bytes(1, 4 << 30)
    time.sleep(1.1)
    steps.bytes(3 << 29, 4 << 30)
    steps.bytes(3 << 30, 4 << 30)
"""


def test_copy_that_takes_over_a_second_shows_bytes_and_rate() -> None:
    """Not before, and not for every piece; the line is gone in the end."""
    parent, child = pty.openpty()
    subprocess.run([sys.executable, "-c", _COPY], stderr=child, check=True)
    os.close(child)
    shown = os.read(parent, 65536).decode()
    os.close(parent)
    lines = shown.split("\r\x1b[K")
    assert lines[1] == "packer: place"
    assert lines[2].startswith("packer: place 1.5 GiB of 4.0 GiB, 1.")
    assert lines[2].endswith(" GiB/s")
    assert lines[3:] == [""]
