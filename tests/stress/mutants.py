"""Load mutants of packed libraries: our error or a tree, and nothing else.

mutants.py [--count N] [--seed N] [--first N] [--processes N] [--keep FOLDER | --write FOLDER]

Mutant number i of a seed is the same in each run. The bytes of code are never changed. Each mutant
that passes the static check is loaded, walked, read and closed in an expendable process, many in
each; one that ends it, again in its own. A crash in the core, or in ld.so outside of the code that
it calls, is a finding; so are a hang, more than 64 MB, and an exception that is not ours. Crashes
in the library's code are counted by cause. --write stores mutants, and loads none.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from subprocess import PIPE

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent.parent))  # at the end: runtime is the installed one

from campaign import DAMAGE, Campaign, Finding, make_mutant, visit  # noqa: E402
from mutant_libraries import make_libraries  # noqa: E402
from mutation import Library  # noqa: E402

BATCH = 5_000
MOST_SHOWN = 50

Result = tuple[Counter[str], list[Finding]]


def work(folder: Path, seed: int, first: int, count: int) -> None:
    """Try some mutants, and print the outcomes as JSON. The number of the last one is in a file."""
    libraries = [Library(path) for path in sorted((folder / "libraries").glob("*.so"))]
    for library in libraries:  # imports here, once, the modules of the children
        visit(str(folder / "libraries" / f"{library.name}.so"))
    campaign = Campaign(libraries, seed, folder)
    campaign.run(first, count)
    print(json.dumps([campaign.outcomes, campaign.findings]))


def run_batch(options: argparse.Namespace, folder: Path, first: int, count: int) -> Result:
    """Run a worker; where it dies, the check of one mutant crashed: go on after that."""
    if count == 0:
        return Counter(), []
    task = map(str, (folder, options.seed, first, count))
    worker = subprocess.run([sys.executable, __file__, "--work", *task], stdout=PIPE, check=False)
    if worker.returncode == 0:
        outcomes, findings = json.loads(worker.stdout)
        return Counter(outcomes), findings
    if worker.returncode > 0:
        raise SystemExit(f"the worker of mutants {first} and on failed; see above")
    last = int((folder / f"progress{first}").read_text())
    before = run_batch(options, folder, first, last - first)
    after = run_batch(options, folder, last + 1, first + count - last - 1)
    found: Finding = (last, f"the static check ended with {worker.returncode}", [])
    outcomes = before[0] + after[0] + Counter([f"FOUND: {found[1]}"])
    return outcomes, [*before[1], found, *after[1]]


def run(options: argparse.Namespace, folder: Path) -> Result:
    """Run all batches, and keep the mutants that found something."""
    outcomes: Counter[str] = Counter()
    findings = []
    end = options.first + options.count
    with ThreadPoolExecutor(options.processes) as threads:
        runs = [
            threads.submit(run_batch, options, folder, first, min(BATCH, end - first))
            for first in range(options.first, end, BATCH)
        ]
        for done in as_completed(runs):
            outcomes += done.result()[0]
            findings += done.result()[1]
    if options.keep:
        keep(options, folder, findings)
    return outcomes, findings


def keep(options: argparse.Namespace, folder: Path, findings: list[Finding]) -> None:
    """Write the mutants that found something."""
    options.keep.mkdir(parents=True, exist_ok=True)
    libraries = [Library(path) for path in sorted((folder / "libraries").glob("*.so"))]
    for index, _, _ in findings:
        name, data = make_mutant(libraries, options.seed, index)
        (options.keep / f"{index}-{name}.so").write_bytes(data)


def write(options: argparse.Namespace, folder: Path) -> None:
    """Write the mutants, and nothing else."""
    with tempfile.TemporaryDirectory() as name:
        libraries = [Library(path) for path in sorted(make_libraries(Path(name)))]
    for index in range(options.first, options.first + options.count):
        name, data = make_mutant(libraries, options.seed, index)
        (folder / f"{index:06}-{name}.so").write_bytes(data)


def main() -> int:
    """Run the campaign; 1 if it found something."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first mutant")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a folder for the mutants that found something")
    parser.add_argument("--write", type=Path, help="a folder for all of them; none is loaded")
    options = parser.parse_args()
    if options.write:
        write(options, options.write)
        return 0
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = Path(name)
        (folder / "libraries").mkdir()
        make_libraries(folder / "libraries")
        command = [
            "cc",
            "-O1",
            "-shared",
            "-fPIC",
            str(HERE / "crash.c"),
            "-o",
            str(folder / "crash.so"),
        ]
        subprocess.run(command, check=True)
        outcomes, findings = run(options, folder)
    print(f"{options.count:,} of seed {options.seed} in {time.monotonic() - begin:.0f} s")
    for cause, count in outcomes.most_common():
        print(f"{count:>10,}  {cause}")
    for index, cause, lines in findings[:MOST_SHOWN]:
        print(f"mutant {index}: {cause}", *lines, sep="\n    ")
    return int(any(DAMAGE not in cause for _, cause, _ in findings))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(Path(sys.argv[2]), *map(int, sys.argv[3:]))
    else:
        sys.exit(main())
