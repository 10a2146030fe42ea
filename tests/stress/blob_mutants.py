"""Read mutants of blobs, symbols, manifests and params files: our errors, or a blob.

blob_mutants.py [--count N] [--seed N] [--first N]: mutant number i of a seed is the same in each
run. A finding is an exception of another kind, or a blob that Python does not read as the core
accepted it, or does not write again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))  # at the end: runtime is the installed one

from tests.fuzz.reader_mutants import Mutants
from tests.support.payloads import refusal

MOST_SHOWN = 20


def main() -> int:
    """Read them, and print the counts and the findings; return 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=50_000, help="mutants (%(default)s)")
    parser.add_argument("--seed", type=int, default=17, help="(%(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number of the first (%(default)s)")
    options = parser.parse_args()
    mutants, outcomes, start = Mutants(options.seed), Counter[str](), time.monotonic()
    for number in range(options.first, options.first + options.count):
        what, data, manifest = mutants.make(number)
        try:
            is_refused = refusal(what, data.data, manifest and manifest.data) != ""
        except Exception as error:
            print(f"mutant {number}, {what}: {type(error).__name__}: {error}")
            outcomes["FOUND"] += 1
            if outcomes["FOUND"] >= MOST_SHOWN:
                break
        else:
            outcomes["refused" if is_refused else "accepted"] += 1
    counts = ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items()))
    print(f"seed {options.seed}: {counts}, in {time.monotonic() - start:.0f} s")
    return int(outcomes["FOUND"] > 0)


if __name__ == "__main__":
    sys.exit(main())
