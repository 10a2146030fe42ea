"""10^5 random types in 1,000 units, and 10^5 wrong arguments (tests/support/random_types.py).

python tests/stress/random_types.py [UNITS] [SEED]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support.random_types import Unit, call_wrongly, compare, load


def main(units: int, seed: int) -> int:
    """Compare the units one after the other; an assertion tells the seed by its traceback."""
    start, types, values, taken, refused = time.monotonic(), 0, 0, 0, 0
    for i in range(units):
        unit = Unit(seed + i)
        with TemporaryDirectory() as folder:
            try:
                values += compare(unit, load(unit, Path(folder)))
                if i % 10 == 0:
                    more = call_wrongly(unit, Path(folder), 1000)
                    taken, refused = taken + more[0], refused + more[1]
            except Exception:
                print(f"seed {seed + i}", flush=True)
                raise
        types += unit.count
        if i % 50 == 49 or i + 1 == units:
            text = f"{types} types in {i + 1} units from seed {seed}: {values} values are right;"
            calls = f"{taken + refused} random calls, {refused} refused"
            print(f"{text} {calls}; {time.monotonic() - start:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    sys.exit(main(*[*given, *(1000, 1)[len(given) :]]))
