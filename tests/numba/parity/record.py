"""Numba's own tests, recorded: the functions that they compile give the same bits elsewhere.

    python -P tests/numba/parity/record.py [--json FILE] [--seconds N] [TEST ...]

A test is a name such as test_indexing of numba.tests; by default those of `FILES`. While they run,
the first call of each signature is recorded with its arguments and its result. Afterwards the
functions are exported, and called in a process without Numba, llvmlite and NumPy.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import pickle
import subprocess
import sys
import tempfile
import time
import unittest
import warnings
from collections import Counter
from pathlib import Path
from types import CellType, FunctionType
from typing import Any, NamedTuple

import numba.tests
from numba import _dispatcher
from numba.core.registry import CPUDispatcher
from numba.core.types import Array, Number
from numba.core.typing.typeof import Purpose, typeof

import packer
from packer.importers.numba.module import NumbaModule
from packer.importers.numba.source import Objects

sys.path.insert(0, str(Path(__file__).parent))

from plain import NotPlainError, items_of, plain_of

FILES = [
    "test_array_attr",
    "test_array_iterators",
    "test_array_manipulation",
    "test_array_methods",
    "test_array_reductions",
    "test_builtins",
    "test_casting",
    "test_closure",
    "test_complex",
    "test_conditions_as_predicates",
    "test_dataflow",
    "test_dyn_array",
    "test_enums",
    "test_fancy_indexing",
    "test_flow_control",
    "test_globals",
    "test_hashing",
    "test_heapq",
    "test_indexing",
    "test_iteration",
    "test_lists",
    "test_mandelbrot",
    "test_mathlib",
    "test_maxmin",
    "test_multi3",
    "test_nan",
    "test_nested_calls",
    "test_numberctor",
    "test_operators",
    "test_optional",
    "test_parfors",
    "test_range",
    "test_recursion",
    "test_return_values",
    "test_sets",
    "test_slices",
    "test_sort",
    "test_storeslice",
    "test_tuples",
    "test_ufuncs",
    "test_unicode",
    "test_usecases",
]
_CHUNK = 40


class Call(NamedTuple):
    """The first call of one signature."""

    test: str
    dispatcher: Any
    types: tuple[Any, ...]
    arguments: list[Any]
    outcome: Any
    after: list[Any]


class Recorder:
    """Records the calls of dispatchers, and why others are not recorded."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.skipped: Counter[str] = Counter()
        self.test = ""
        self._depth = 0
        self._seen: set[Any] = set()

    def __enter__(self) -> Recorder:
        recorder, own = self, _dispatcher.Dispatcher.__call__

        def call(self: Any, *args: Any, **kws: Any) -> Any:
            if recorder._depth == 0:
                recorder._depth += 1
                try:
                    recorder._record(self, args, kws)
                finally:
                    recorder._depth -= 1
            return own(self, *args, **kws)

        CPUDispatcher.__call__ = call
        return self

    def __exit__(self, *_: object) -> None:
        del CPUDispatcher.__call__

    def _record(self, dispatcher: Any, args: tuple[Any, ...], kws: dict[str, Any]) -> None:
        try:
            if kws:
                raise NotPlainError("keywords")
            arguments = [plain_of(value) for value in args]
            with contextlib.suppress(Exception):
                dispatcher(*copy.deepcopy(args))  # compiles
            given = tuple(typeof(value, Purpose.argument) for value in args)
            types = given if given in dispatcher.overloads else _only_signature(dispatcher)
            key = (id(dispatcher), types)
            if key in self._seen:
                return
            self._seen.add(key)
            copies = copy.deepcopy(list(args))
            try:
                outcome = ("value", plain_of(dispatcher(*copies)))
            except NotPlainError:
                raise
            except Exception as error:
                outcome = ("raised", type(error).__name__, str(error))
            after = [plain_of(value) for value in copies]
        except NotPlainError as error:
            self.skipped[str(error)] += 1
            return
        except Exception as error:
            self.skipped[f"cannot be recorded: {type(error).__name__}"] += 1
            return
        self.calls.append(Call(self.test, _closed(dispatcher), types, arguments, outcome, after))


def _closed(dispatcher: Any) -> Any:
    """Return a dispatcher of the function as it is now: a test may change what it refers to."""
    function = dispatcher.py_func
    if not function.__closure__:
        return dispatcher
    cells = tuple(CellType(cell.cell_contents) for cell in function.__closure__)
    made = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, cells
    )
    made.__qualname__ = function.__qualname__
    return type(dispatcher)(made, targetoptions=dict(dispatcher.targetoptions))


def _only_signature(dispatcher: Any) -> tuple[Any, ...]:
    """Return the types of a function with one signature, to which arguments are converted."""
    found = list(dispatcher.overloads)
    if len(found) != 1 or not all(isinstance(kind, (Number, Array)) for kind in found[0]):
        raise NotPlainError("types of another signature")
    return found[0]


class Lenient(Objects):
    """Functions of which those that are refused are left out."""

    @property
    def named(self) -> frozenset[str]:
        return frozenset()


class _Deadline(unittest.TestResult):
    """Stops a file of tests after some seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._end = time.monotonic() + seconds

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        if time.monotonic() > self._end:
            self.stop()


def record(names: list[str], seconds: float) -> Recorder:
    """Run tests."""
    recorder = Recorder()
    with recorder:
        for name in names:
            recorder.test = name
            before = len(recorder.calls)
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                suite = unittest.defaultTestLoader.loadTestsFromName(f"numba.tests.{name}")
                suite.run(_Deadline(seconds))
            print(f"{name}: {len(recorder.calls) - before} functions", file=sys.stderr)
    return recorder


def replay(calls: list[Call], counts: Counter[str], texts: list[str]) -> None:
    """Export functions, run them elsewhere, and compare."""
    named = {f"f{i}": call for i, call in enumerate(calls)}
    with tempfile.TemporaryDirectory() as folder:
        source = Lenient(
            {name: call.dispatcher for name, call in named.items()},
            {name: [call.types] for name, call in named.items()},
            False,
        )
        module = NumbaModule._of(source)
        for name, why in module.left_out.items():
            counts["refused"] += 1
            texts.append(f"refused: {named[name].test} {_shown(named[name])}: {why}")
        names = module.function_names()
        if not names:
            return
        library = packer.export_library(module, f"{folder}/functions.so")
        calls_file, results = Path(folder, "calls"), Path(folder, "results")
        calls_file.write_bytes(pickle.dumps([(name, named[name].arguments) for name in names]))
        script = str(Path(__file__).with_name("replay.py"))
        words = [sys.executable, "-P", script, str(library), str(calls_file), str(results)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600)
        answers = pickle.loads(results.read_bytes()) if results.exists() else []
    for name, (outcome, after) in zip(names, answers, strict=False):
        verdict, text = compare(named[name], outcome, after)
        counts[verdict] += 1
        if text:
            texts.append(f"{verdict}: {named[name].test} {_shown(named[name])}: {text}")
    for name in names[len(answers) :]:
        counts["crashed"] += 1
        texts.append(f"crashed: {named[name].test} {_shown(named[name])}: {done.stderr[-300:]}")


def _shown(call: Call) -> str:
    function = call.dispatcher.py_func
    return f"{function.__qualname__}({', '.join(map(str, call.types))})"


def compare(call: Call, outcome: Any, after: list[Any]) -> tuple[str, str]:
    """Return the verdict on a call, and what is different."""
    if call.outcome[0] != outcome[0]:
        return "different", f"{call.outcome[:2]!r:.200} here, {outcome!r:.300} there"
    if outcome[0] == "raised":
        if call.outcome[1] != outcome[1] or call.outcome[2] not in outcome[2]:
            return "different", f"{call.outcome!r:.200} here, {outcome!r:.200} there"
        return "raised the same", ""
    here, there = items_of(call.outcome[1]), items_of(outcome[1])
    if not same(here, there):
        return "different", f"{here!r:.200} here, {there!r:.200} there"
    for one, other in zip(call.after, after, strict=True):
        if items_of(one) != items_of(other):
            return "different", "an argument after the call"
    return "same", ""


def same(here: Any, there: Any) -> bool:
    """Complex numbers in tuples are tuples there: safe calls have no complex numbers."""
    if here[0] == "complex" and there[0] == "tuple":
        return b"".join(item[1] for item in there[1]) == here[1]
    if here[0] == there[0] == "tuple":
        pairs = zip(here[1], there[1], strict=False)
        return len(here[1]) == len(there[1]) and all(same(one, other) for one, other in pairs)
    return bool(here == there)


def main() -> None:
    """Record, export, replay, and print the counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tests", nargs="*")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=60, help="for each file of tests")
    arguments = parser.parse_args()
    recorder = record(arguments.tests or FILES, arguments.seconds)
    counts: Counter[str] = Counter()
    texts: list[str] = []
    for start in range(0, len(recorder.calls), _CHUNK):
        chunk = recorder.calls[start : start + _CHUNK]
        replay(chunk, counts, texts)
        print(start, dict(counts), file=sys.stderr)
    for text in texts:
        print(text)
    report = {
        "numba": numba.__version__,
        "recorded": len(recorder.calls),
        **dict(sorted(counts.items())),
        "not recorded": dict(recorder.skipped.most_common(20)),
    }
    print(json.dumps(report, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps({**report, "texts": texts}, indent=2) + "\n")


if __name__ == "__main__":
    main()
