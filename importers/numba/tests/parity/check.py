"""Recorded calls, exported and run in a process without Numba, llvmlite and NumPy."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plain import items_of

import packer
from dso_packer_numba.module import NumbaModule
from dso_packer_numba.source import Objects

if TYPE_CHECKING:
    from record import Call


class Lenient(Objects):
    """Functions; the refused ones are left out."""

    @property
    def named(self) -> frozenset[str]:
        return frozenset()


def replay(calls: list[Call], counts: Counter[str], texts: list[str]) -> None:
    """Export functions, run them elsewhere, and compare."""
    named = {f"f{i}": call for i, call in enumerate(calls)}
    with tempfile.TemporaryDirectory() as folder:
        dispatchers = {name: call.dispatcher for name, call in named.items()}
        signatures: Any = {name: call.signatures for name, call in named.items()}
        module = NumbaModule._of(Lenient(dispatchers, signatures, False))
        for name, why in module.left_out.items():
            counts["refused"] += 1
            texts.append(f"refused: {named[name].test} {_shown(named[name])}: {why}")
        names = module.function_names()
        if not names:
            return
        library = packer.export_library(module, f"{folder}/functions.so")
        answers = _answers(library, {name: named[name].arguments for name in names}, Path(folder))
    for name in names:
        verdict, text = compare(named[name], answers[name])
        counts[verdict] += 1
        if text:
            texts.append(f"{verdict}: {named[name].test} {_shown(named[name])}: {text}")


def _answers(library: Path, calls: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Call functions in another process; where one ends it, another process has the rest."""
    answers: dict[str, Any] = {}
    calls_file, results = folder / "calls", folder / "results"
    words = [sys.executable, "-P", str(Path(__file__).with_name("replay.py")), str(library)]
    while rest := [name for name in calls if name not in answers]:
        calls_file.write_bytes(pickle.dumps([(name, calls[name]) for name in rest]))
        results.unlink(missing_ok=True)
        done = subprocess.run(
            [*words, str(calls_file), str(results)], capture_output=True, text=True, timeout=600
        )
        found = pickle.loads(results.read_bytes()) if results.exists() else []
        answers.update(zip(rest, found, strict=False))
        if len(found) < len(rest):
            ended = f"ended with {done.returncode}: {done.stderr[-300:]}"
            answers[rest[len(found)]] = (("ended", ended), [])
    return answers


def _shown(call: Call) -> str:
    function = call.dispatcher.py_func
    types = "; ".join(", ".join(map(str, one.args)) for one in call.signatures)
    return f"{function.__qualname__}({types})"


def compare(call: Call, answer: tuple[Any, list[Any]]) -> tuple[str, str]:
    """Return the verdict on a call, and what is different."""
    outcome, after = answer
    if call.outcome[0] != outcome[0]:
        return "different", f"{call.outcome!r:.200} here, {outcome!r:.400} there"
    if outcome[0] == "raised":
        if call.outcome[1] != outcome[1] or not _is_same_text(call.outcome[2], outcome[2]):
            return "different", f"{call.outcome!r:.200} here, {outcome!r:.200} there"
        return "raised the same", ""
    here, there = items_of(call.outcome[1]), items_of(outcome[1])
    if not same(here, there):
        return "different", f"{here!r:.200} here, {there!r:.200} there"
    for one, other in zip(call.after, after, strict=True):
        if items_of(one) != items_of(other):
            return "different", "an argument after the call"
    return "same", ""


def _is_same_text(here: str, there: str) -> bool:
    """An exception of compiled code also says where; a refused argument has our words."""
    return here in there or here.startswith(("No matching definition", "Ambiguous overloading"))


def same(here: Any, there: Any) -> bool:
    """Complex numbers in tuples are tuples there: safe calls have no complex numbers."""
    if here[0] == "complex" and there[0] == "tuple":
        return b"".join(item[1] for item in there[1]) == here[1]
    if here[0] == there[0] == "tuple":
        pairs = zip(here[1], there[1], strict=False)
        return len(here[1]) == len(there[1]) and all(same(one, other) for one, other in pairs)
    return bool(here == there)
