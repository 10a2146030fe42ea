"""Change each of many bytes of a signed library, and load it: nothing of it may run or leave.

trust_flips.py [--count N] [--seed N]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))  # at the end: runtime is the installed one

from tests.support.trust_campaigns import flip_bytes

EXPECTED = {"copy: refused", "map: refused", "map: weight refused"}


def main() -> int:
    """Print the outcomes; return 1 if there is another one than a refusal."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100_000, help="bytes (%(default)s)")
    parser.add_argument("--seed", type=int, default=22, help="(%(default)s)")
    options = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        outcomes = flip_bytes(Path(folder), options.count, options.seed)
    counts = ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items()))
    seconds = time.monotonic() - start
    print(f"seed {options.seed}, {options.count} bytes: {counts}, in {seconds:.0f} s")
    return int(not set(outcomes) <= EXPECTED)


if __name__ == "__main__":
    sys.exit(main())
