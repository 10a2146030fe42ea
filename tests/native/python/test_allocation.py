"""Whichever allocation fails, the outcome is an error of the project or the right result."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ...support import needs
from ...support.paths import TESTS
from ...support.process import EXACT_HEAP

SCRIPT = TESTS / "support" / "each_allocation.py"
OPERATIONS = (
    *("load", "load_from_bytes", "call", "fail", "run_graph", "run_bytecode", "use_tensors"),
    *("call_declared", "launch_kernel"),
)


@pytest.mark.parametrize("allocator", ["core", "python"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_allocation_may_fail(operation: str, allocator: str, tmp_path: Path) -> None:
    """Each allocation of the core, then of Python, fails in turn: no crash and no leak."""
    if operation == "launch_kernel":
        needs.opencl_device()
    command = [sys.executable, SCRIPT, tmp_path, operation, allocator]
    done = subprocess.run(command, env=EXACT_HEAP, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
