"""make stress: the tests that take minutes.

One script per row; each prints its results, and its exit status is 0 if they are right.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
ROWS = (
    *("load_rounds", "kill_export", "faults", "reflink", "readers", "embed_llvm", "mutants"),
    *("blob_mutants", "pool_swaps", "verified_loads", "trust_flips", "trust_race"),
    *("encrypted_flips", "references", "numba_calls", "model_memory", "start_up_mutants"),
    *("c_libraries", "random_types"),
)


def main(names: list[str]) -> int:
    """Run the rows, or the named ones."""
    failed = []
    for name in names or ROWS:
        print(f"---- {name}", flush=True)
        start = time.monotonic()
        status = subprocess.run([sys.executable, HERE / f"{name}.py"], check=False).returncode
        verdict = "ok" if status == 0 else f"exited with {status}"
        print(f"{verdict}, {time.monotonic() - start:.0f} s", flush=True)
        failed += [name] if status else []
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
