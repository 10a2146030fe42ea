"""make sanitize: the native core under ASan, UBSan, LeakSanitizer, valgrind and TSan.

Prints the findings of each, then a table; the exit status is 1 if there is a finding.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from asan import run_tests
from libdso import run_libdso
from memcheck import run_script
from pool import run_loops, run_pool
from row import Row
from tsan import run_threads


def main() -> int:
    """Run the checks, each in a separate folder."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="sanitize-") as folder:
        checks = (run_threads, run_pool, run_loops, run_libdso, run_script, run_tests)
        for check in checks:
            start = time.monotonic()
            own = Path(folder) / check.__name__
            own.mkdir()
            found = check(own)
            found = found if isinstance(found, list) else [found]
            rows += found
            show(found, time.monotonic() - start)
    print("\n" + "\n".join(map(line, rows)))
    return int(any(row.passed is False for row in rows))


def line(row: Row) -> str:
    """One line of the table."""
    verdict = {True: "clean", False: "FOUND", None: "skipped"}[row.passed]
    return f"{row.name:36} {verdict:8} {row.detail}"


def show(rows: list[Row], seconds: float) -> None:
    """Print the output of a check that found something."""
    for row in rows:
        if row.passed is False:
            print(f"---- {row.name}\n{row.output}\n", flush=True)
    print(f"{rows[0].name}: {seconds:.0f} s", flush=True)


sys.exit(main())
