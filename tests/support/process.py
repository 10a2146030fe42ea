"""Run Python in a fresh process, and return its output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

# For processes that measure their heap: else glibc keeps freed blocks for each thread, and counts
# them as allocated.
EXACT_HEAP = {**os.environ, "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}

# Modules that a deployed process lacks; importing one of them is an error in it.
_BLOCKER = """
import sys
class _Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ImportError(name + " is blocked")
sys.meta_path.insert(0, _Blocked())
"""


def run_python(code: str, *args: str, blocked: tuple[str, ...] = (), timeout: float = 120) -> Any:
    """Run code in a fresh interpreter; its last line of output is JSON, and is returned.

    `blocked` names packages that cannot be imported there.
    """
    prefix = _BLOCKER.format(blocked=set(blocked)) if blocked else ""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", prefix + code, *args],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return json.loads(run.stdout.splitlines()[-1])
