"""vm: the cost of one instruction of relax bytecode, here and in TVM, with the same library."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
from measure import Case, Launcher, Row, Sample, interleave, is_installed
from table import Table

import runtime

ROUNDS = 21
CALLS = 100
WARM = 20  # calls before the measurement, as in vm_peer.py
TVM_PYTHON = Path(__file__).parents[1] / ".venv-tvm/bin/python"
TITLES = {
    "static": "vm: operators on 4 floats, memory planned, per instruction",
    "dynamic": "vm: the same with a symbolic extent, per instruction",
    "mlp": "vm: ten layers of 16 neurons, 20 operators, per call",
    "loop": "vm: a while loop of 100 steps, per call",
    "results": "vm: four results of which one is the argument, per call",
}


def tables(folder: Path, _launch: Launcher) -> list[Table]:
    """Measure calls of both models, divided by their instructions."""
    python = os.environ.get("DSO_PACKER_TVM_PYTHON") or (
        sys.executable if is_installed("tvm") else str(TVM_PYTHON)
    )
    if not Path(python).exists():
        row = Row("TVM (reference)", (), "not found: `make test-tvm` installs it in .venv-tvm")
        return [Table("vm: an instruction", [row], "ns")]
    with Peer(python, folder) as peer:
        return [_table(peer, name, folder) for name in TITLES]


class Peer:
    """A process with real TVM, which makes the models and times TVM's machine."""

    def __init__(self, python: str, folder: Path) -> None:
        script = Path(__file__).with_name("vm_peer.py")
        self._process = subprocess.Popen(
            [python, script, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.instructions: dict[str, int] = {}
        self.extents: dict[str, tuple[int, ...]] = {}
        while words := self._answer().split():
            self.instructions[words[0]] = int(words[1])
            self.extents[words[0]] = tuple(map(int, words[2:]))

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def seconds(self, name: str, calls: int) -> float:
        """Return the seconds of this number of calls there."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name} {calls}\n")
        self._process.stdin.flush()
        return float(self._answer())

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._process.communicate()


def _table(peer: Peer, name: str, folder: Path) -> Table:
    count = peer.instructions[name]
    cases = [
        Case("TVM (reference)", lambda: _sample(peer.seconds(name, CALLS), count)),
        Case("dso-packer", lambda: _sample(ours(CALLS), count)),
    ]
    ours = _calls(folder / f"{name}.so", peer.extents[name])
    note = f"{count} instructions, a third of them operators; " if count > 1 else ""
    note += "aim: a ratio of at most 1"
    return Table(TITLES[name], interleave(cases, ROUNDS), "ns", notes=(note,))


def _sample(seconds: float, instructions: int) -> Sample:
    return {"seconds": seconds / CALLS / instructions}


def _calls(library: Path, extents: tuple[int, ...]) -> Callable[[int], float]:
    function = runtime.load(library)["main"]
    x = runtime.empty(extents).copy_from(np.ones(extents, "float32"))

    def seconds(calls: int) -> float:
        for _ in range(WARM):
            function(x)
        start = perf_counter()
        for _ in range(calls):
            function(x)
        return perf_counter() - start

    return seconds
