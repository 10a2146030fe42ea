"""Numba's own tests, recorded: the functions that they compile give the same bits elsewhere.

    python -P importers/numba/tests/parity/record.py [--json FILE] [--seconds N] TEST ...

A test is a name such as test_indexing of numba.tests. While they run, the first call of each
signature is recorded with its arguments and its result. Afterwards the functions are exported, and
called in a process without Numba, llvmlite and NumPy. `__main__.py` does so for all of `files.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import time
import unittest
import warnings
from collections import Counter
from pathlib import Path
from types import CellType, FunctionType
from typing import Any, NamedTuple

import numba.tests
from numba import _dispatcher
from numba.core.errors import NumbaError
from numba.core.registry import CPUDispatcher
from numba.core.typing.typeof import Purpose, typeof

sys.path.insert(0, str(Path(__file__).parent))

from check import replay
from plain import NotPlainError, copies_of, plain_arguments, plain_of

_CHUNK = 40


class Call(NamedTuple):
    """The first call of one signature.

    Attributes
    ----------
    signatures : list of Signature
        The signature; if the arguments are converted, all of them.
    """

    test: str
    dispatcher: Any
    signatures: list[Any]
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
            arguments = plain_arguments(args)
            signatures = _signatures(dispatcher, args)
            key = (id(dispatcher), tuple(typeof(x, Purpose.argument) for x in args))
            if key in self._seen:
                return
            self._seen.add(key)
            function = _closed(dispatcher)
            copies = [copies_of(args), copies_of(args)]  # of different addresses
            first, again = [_called(dispatcher, given) for given in copies]
            if first != again:
                raise NotPlainError("another result in a second call")
        except NotPlainError as error:
            self.skipped[str(error)] += 1
            return
        except Exception as error:
            self.skipped[f"cannot be recorded: {type(error).__name__}"] += 1
            return
        self.calls.append(Call(self.test, function, signatures, arguments, *first))


def _called(dispatcher: Any, copies: list[Any]) -> tuple[Any, list[Any]]:
    """Return the outcome of a call, and the arguments after it."""
    try:
        outcome: Any = ("value", plain_of(dispatcher(*copies)))
    except NotPlainError:
        raise
    except NumbaError as error:
        raise NotPlainError("Numba does not compile it for these arguments") from error
    except Exception as error:
        outcome = ("raised", type(error).__name__, str(error))
    return outcome, [plain_of(value) for value in copies]


def _signatures(dispatcher: Any, args: tuple[Any, ...]) -> list[Any]:
    """Return the signature of a call, or all of a function that converts arguments."""
    types = tuple(typeof(value, Purpose.argument) for value in args)
    if dispatcher._can_compile:
        with contextlib.suppress(Exception):
            dispatcher.compile(types)
    found = [compiled.signature for compiled in dispatcher.overloads.values()]
    if types in dispatcher.overloads:
        found = [dispatcher.overloads[types].signature]
    if not found:
        raise NotPlainError("not compiled")
    return found


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


class _Deadline(unittest.TestResult):
    """Stops a file of tests after some seconds of the processor."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._end = time.process_time() + seconds

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        if time.process_time() > self._end:
            self.stop()


def record(names: list[str], seconds: float) -> Recorder:
    """Run tests."""
    recorder = Recorder()
    with recorder:
        for name in names:
            recorder.test = name
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                suite = unittest.defaultTestLoader.loadTestsFromName(f"numba.tests.{name}")
                suite.run(_Deadline(seconds))
    return recorder


def main() -> None:
    """Record, export, replay, and print the counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=60, help="of the processor, for a file")
    arguments = parser.parse_args()
    recorder = record(arguments.tests, arguments.seconds)
    counts: Counter[str] = Counter()
    texts: list[str] = []
    for start in range(0, len(recorder.calls), _CHUNK):
        replay(recorder.calls[start : start + _CHUNK], counts, texts)
    report = {
        "numba": numba.__version__,
        "recorded": len(recorder.calls),
        **dict(sorted(counts.items())),
        "not recorded": dict(recorder.skipped.most_common()),
        "texts": texts,
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")
    else:
        print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
