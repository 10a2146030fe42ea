"""The operators on an emulated AArch64: the vectors of NEON."""

from __future__ import annotations

import subprocess
from pathlib import Path

import packer.operators

from ..support import needs

SOURCE = Path(__file__).parents[1] / "support/c/operators.c"


def test_operators_run_on_aarch64(tmp_path) -> None:
    """Results equal plain loops, by the accuracy of their sums."""
    compiler = needs.program("aarch64-linux-gnu-gcc")
    emulator = needs.program("qemu-aarch64")
    program = tmp_path / "operators"
    command = [compiler, "-O2", "-static", f"-I{packer.operators.INCLUDE}", "-o", program, SOURCE]
    subprocess.run([*command, *packer.operators.sources(), "-lm"], check=True)
    ran = subprocess.run([emulator, program], capture_output=True, text=True, check=True)
    *errors, wrong = [float(word) for word in ran.stdout.split()]
    assert len(errors) == 4
    assert wrong == 0  # sums of integers
    assert max(errors) < 1e-5  # the greatest results are about 10
