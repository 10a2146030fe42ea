"""All recorded files of Numba's tests, a process for each: `make parity`.

    python -P importers/numba/tests/parity [--seconds N] [--json FILE] [TEST ...]

The counts are written to counts.json beside this file; what differs is printed. The tests of a file
end after N seconds of the processor.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from files import FILES  # noqa: E402

# A hash of text, and memory that nothing has written, are the same in both processes.
ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "GLIBC_TUNABLES": "glibc.malloc.perturb=90:glibc.malloc.tcache_count=0",
}
COUNTED = ("recorded", "same", "raised the same", "refused", "different", "lost")


def run(test: str, seconds: float) -> dict[str, Any]:
    """Record and check one file of tests."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        words = [sys.executable, "-P", str(HERE / "record.py"), "--json", str(report)]
        words += ["--seconds", str(seconds), test]
        environment = {**os.environ, **ENVIRONMENT}
        try:
            done = subprocess.run(
                words, env=environment, capture_output=True, text=True, timeout=10 * seconds + 300
            )
        except subprocess.TimeoutExpired:
            return {"lost": 1, "texts": [f"lost: {test}: it did not end"]}
        if report.exists():
            found: dict[str, Any] = json.loads(report.read_text())
            return found
    end = f"ended with {done.returncode}: {done.stderr[-600:]}"
    return {"lost": 1, "texts": [f"lost: {test}: {end}"]}


def main() -> int:
    """Run all, and return 1 if a function gave another result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tests", nargs="*")
    parser.add_argument("--seconds", type=float, default=60, help="of the processor, for a file")
    parser.add_argument("--json", type=Path, default=HERE / "counts.json")
    arguments = parser.parse_args()
    faults = 0
    for test in arguments.tests or FILES:
        report = run(test, arguments.seconds)
        counts = {key: report[key] for key in COUNTED if report.get(key)}
        faults += report.get("different", 0) + report.get("lost", 0)
        counts["not recorded"] = sum(report.get("not recorded", {}).values())
        store(arguments.json, report.get("numba", ""), test, counts)
        print(f"{test}: {counts}", flush=True)
        for text in report["texts"]:
            if arguments.tests or not text.startswith("refused: "):
                print(f"  {text}", flush=True)
    return 1 if faults else 0


def store(path: Path, release: str, test: str, counts: dict[str, int]) -> None:
    """Write the counts of one file of tests into the file of all."""
    files = json.loads(path.read_text())["files"] if path.exists() else {}
    files[test] = counts
    total: Counter[str] = Counter()
    for one in files.values():
        total.update(one)
    summary = {"numba": release, "all": dict(total), "files": dict(sorted(files.items()))}
    path.write_text(json.dumps(summary, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
