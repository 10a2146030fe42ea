"""Runs ONNX's node tests: each through a library, in a process without onnx.

    cd importers/onnx/tests
    python -P node_tests.py [--jobs N] [--cc NAME] [--json FILE] [--table] [NAME...]

Prints how many pass, fail and are refused, by cause. One process exports; another one, which has
only the runtime and NumPy, runs what was exported, and a crash there is the test's. Where an input
decides a shape, the test gives it while packing. Tests whose
outcome FILE has are not run again. --table writes the outcome of all tests into the committed
table, in the column of the compiler.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import packer
from runtime.error import PackerError
from runtime.modules.vm import VMExecutable

if __name__ == "__main__":  # the installed packer is tested, so the root is last
    sys.path.append(str(Path(__file__).parents[3]))
    from importers.onnx.tests.support import node_data, node_exact
else:
    from .support import node_data, node_exact

RUNNER = Path(__file__).with_name("support") / "node_runner.py"
TABLE = Path(__file__).with_name("node_tests.json")
_BATCH = 20  # tests of one process that runs


def main() -> int:
    """Run the tests that the command line names, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--cc", help="the C compiler, as in CC")
    parser.add_argument("--json", type=Path, help="where the outcome of each test is written")
    parser.add_argument("--table", action="store_true", help="write the committed table")
    options = parser.parse_args()
    if options.cc:
        os.environ["CC"] = options.cc
    names = options.names or node_data.all_names()
    known = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    outcomes = {name: known[name] for name in names if name in known}
    for done in run([name for name in names if name not in known], options.jobs):
        outcomes |= done
        print(f"{len(outcomes)} of {len(names)}", file=sys.stderr, flush=True)
        if options.json:
            options.json.write_text(json.dumps(outcomes, indent=0, sort_keys=True) + "\n")
    print(summary(outcomes))
    if options.table and len(outcomes) == len(node_data.all_names()):
        write_column(options.cc or "gcc", outcomes)
    return 0


def run(names: list[str], jobs: int) -> Iterator[dict[str, str]]:
    """Run tests, some at a time.

    Each outcome is ``"passed"``, ``"refused: CAUSE"``, ``"failed: WHY"``, or ``"right: REASON"`` if
    the expected result is not that of the model.
    """
    batches = [names[start : start + _BATCH] for start in range(0, len(names), _BATCH)]
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run_batch, batches)


def run_batch(names: list[str]) -> dict[str, str]:
    """Export some tests, run them, and compare."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        outcomes = {name: export(name, folder) for name in names}
        exported = [name for name, outcome in outcomes.items() if not outcome]
        crashes = call(folder, exported)
        for name in exported:
            outcomes[name] = crashes.get(name) or judged(name, folder)
    return outcomes


def export(name: str, folder: Path) -> str:
    """Export a test; return ``""``, or why it was refused."""
    try:
        module, arrays = imported(name)
        packer.export_library(module, folder / f"{name}.so", build=packer.Build(cpu=()))
        inputs = [node_data.packed_all(array) for array in arrays]
    except PackerError as error:
        return f"refused: {cause_of(error)}"
    except Exception as error:  # a defect; the others still run
        return f"failed: {type(error).__name__}: {error}"
    (folder / f"{name}.json").write_text(json.dumps(inputs))
    return ""


def imported(name: str) -> tuple[VMExecutable, list[Any]]:
    """Return the tree of a test, and its arguments: the inputs that decide no shape.

    A refusal that advises to give inputs by input_values is followed.
    """
    path = node_data.NODES / name / "model.onnx"
    values: dict[str, np.ndarray] = {}
    while True:
        try:
            module = packer.from_onnx(path, input_values=values, state={})
        except PackerError as error:
            advice = re.search(r"; give (.*), which decides it, by input_values", str(error))
            if not advice:
                raise
            arrays = node_data.named_inputs(name)
            values |= {key: arrays[key] for key in re.findall(r"'(.*?)'", advice[1])}
        else:
            arrays = node_data.named_inputs(name)
            return module, [array for key, array in arrays.items() if key not in values]


def cause_of(error: PackerError) -> str:
    """Return the cause of a refusal in a word; the whole message if it has none."""
    cause = getattr(error, "cause", None)
    if "shape, expected one that follows from the inputs" in str(error):
        return "shape"
    return cause or ("string" if "of strings" in str(error) else str(error))


def call(folder: Path, names: list[str]) -> dict[str, str]:
    """Run exported tests, and return the tests that ended the process."""
    crashes: dict[str, str] = {}
    while names:
        command = [sys.executable, "-P", str(RUNNER), str(folder), *names]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        if done.returncode == 0:
            return crashes
        crashed = (folder / "running").read_text()
        if not crashed:
            raise RuntimeError(done.stderr)
        crashes[crashed] = f"failed: the process ended with {done.returncode}"
        names = names[names.index(crashed) + 1 :]
    return crashes


def judged(name: str, folder: Path) -> str:
    """Compare what a test gave with what it should."""
    outcome = json.loads((folder / f"{name}.out.json").read_text())
    if "error" in outcome:
        return f"failed: {outcome['error']}"
    results = [node_data.unpacked_all(one) for one in outcome["outputs"]]
    why = node_data.difference(name, results)
    if why and node_exact.is_exact(name, results):
        return f"right: {node_exact.REASONS[name]}"
    return f"failed: {why}" if why else "passed"


def write_column(compiler: str, outcomes: dict[str, str]) -> None:
    """Write the outcomes with a compiler into the committed table."""
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    column: dict[str, Any] = {"passed": 0, "failed": {}, "right": {}, "refused": {}}
    for name, outcome in sorted(outcomes.items()):
        kind, _, why = outcome.partition(": ")
        if kind == "passed":
            column["passed"] += 1
        elif kind in ("failed", "right"):
            column[kind][name] = why
        else:
            column["refused"].setdefault(why, []).append(name)
    table |= {"onnx": onnx.__version__, "tests": len(outcomes), compiler.split("-")[0]: column}
    TABLE.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")


def summary(outcomes: dict[str, str]) -> str:
    """Show how many tests have each outcome."""
    counts = Counter("failed" if o.startswith("failed") else o for o in outcomes.values())
    total = len(outcomes)
    lines = [f"{count:6} {100 * count / total:5.1f} %  {o}" for o, count in counts.most_common()]
    return "\n".join([*lines, f"{total:6}         tests"])


if __name__ == "__main__":
    sys.exit(main())
