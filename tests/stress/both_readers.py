"""Compare Python's reader of blobs with libdso's on mutants, in one process.

both_readers.py [--count N] [--seed N] [--first N]: mutant number i of a seed is the same in each
run. A finding is a mutant that the readers describe differently, or refuse with different texts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))  # at the end: runtime is the installed one

from tests.fuzz.reader_mutants import Mutants
from tests.support.both_readers import NativeReader, is_refused, read_in_python

MOST_SHOWN = 20


def main() -> int:
    """Compare, and print the counts and the differences; return 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=20_000, help="mutants (%(default)s)")
    parser.add_argument("--seed", type=int, default=17, help="(%(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number of the first (%(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        native = NativeReader(Path(folder))
    mutants, outcomes, start = Mutants(options.seed), Counter[str](), time.monotonic()
    for number in range(options.first, options.first + options.count):
        outcomes[compare(mutants, native, number)] += 1
        if outcomes["different"] >= MOST_SHOWN:
            break
    seconds = time.monotonic() - start
    counts = ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items()))
    print(f"seed {options.seed}, {outcomes.total()} mutants: {counts}, in {seconds:.0f} s")
    return int(outcomes["different"] > 0)


def compare(mutants: Mutants, native: NativeReader, number: int) -> str:
    """Read a mutant twice; return the outcome."""
    what, data, manifest = mutants.make(number)
    text = manifest.data if manifest is not None else None
    found, expected = native.read(what, data.data, text), read_in_python(what, data.data, text)
    if found == expected:
        return "refused" if is_refused(found) else "accepted"
    print(f"mutant {number}, {what}:\n  libdso: {found[:500]}\n  Python: {expected[:500]}")
    return "different"


if __name__ == "__main__":
    sys.exit(main())
