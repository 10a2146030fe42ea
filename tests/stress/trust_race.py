"""Load a signed library while a process writes to it: the verified bytes are used, or an error.

trust_race.py [--count N] [--seed N]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))  # at the end: runtime is the installed one

from tests.support.trust_campaigns import is_allowed, load_beside_writer


def main() -> int:
    """Print the outcomes; return 1 if other code or other weights were used."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=10_000, help="loads (%(default)s)")
    parser.add_argument("--seed", type=int, default=22, help="(%(default)s)")
    options = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        outcomes = load_beside_writer(Path(folder), options.count, options.seed)
    counts = ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items()))
    seconds = time.monotonic() - start
    print(f"seed {options.seed}, {outcomes.total()} loads: {counts}, in {seconds:.0f} s")
    return int(not all(map(is_allowed, outcomes)))


if __name__ == "__main__":
    sys.exit(main())
