"""Kinds of random graphs, which many processes compare with a reference, many in one library."""

from __future__ import annotations

import argparse
import gc
import io
import multiprocessing
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, redirect_stderr
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import onnx

import packer
import runtime

from .together import mains_of

Main = Callable[..., Any]
_TOGETHER, _TASKS = 200, 10  # graphs in one library, libraries of one process


class Kind(NamedTuple):
    """A kind of random graphs."""

    make: Callable[[int, int], onnx.ModelProto]
    check: Callable[[onnx.ModelProto, Main], str]

    def findings(self, seed: int, numbers: Sequence[int]) -> list[str]:
        """Compare the graphs of some numbers, in one library; return what differs or is refused."""
        warnings.simplefilter("ignore")
        models = {number: self.make(seed, number) for number in numbers}
        made: dict[int, runtime.Module] = {}
        found: dict[int, str] = {}
        for number, model in models.items():
            with _noted(found, number):
                made[number] = packer.from_onnx(model, options=["-O0"])
        mains: dict[int, Main] = {}
        with tempfile.TemporaryDirectory() as folder, _noted(found, numbers[0]):
            mains = mains_of(made, Path(folder))
        for number, main in mains.items():
            with _noted(found, number):
                found[number] = self.check(models[number], main)
        models, made, mains = {}, {}, {}
        gc.collect()  # `_together` disables it
        return [f"graph {number}: {text}" for number, text in sorted(found.items()) if text]

    def _together(self, seed: int, parts: Sequence[range], jobs: int) -> Iterator[str]:
        """Compare the graphs of some libraries in new processes, which a crash may end."""
        spawn = multiprocessing.get_context("spawn")
        # The collector takes a third of the time: graphs are cycles.
        with ProcessPoolExecutor(jobs, spawn, initializer=gc.disable) as pool:
            try:
                for texts in pool.map(partial(self.findings, seed), parts):
                    yield from texts
            except BrokenProcessPool:
                yield f"graphs {parts[0][0]} to {parts[-1][-1]}: a process crashed"

    def run(self, seed: int, description: str) -> int:
        """Compare graphs, some in each process; return 1 if one differs or is refused."""
        parser = argparse.ArgumentParser(description=description.partition("\n")[0])
        parser.add_argument("--count", type=int, default=100, help="graphs (%(default)s)")
        parser.add_argument("--seed", type=int, default=seed, help="(%(default)s)")
        parser.add_argument(
            "--first", type=int, default=0, help="number of the first (%(default)s)"
        )
        parser.add_argument(
            "--jobs", type=int, default=os.cpu_count(), help="processes (%(default)s)"
        )
        options = parser.parse_args()
        os.environ["PACKER_CACHE"] = "off"  # no two graphs are equal
        if shutil.which("clang"):  # compiles wrappers in a fifth of GCC's time
            os.environ.setdefault("CC", "clang")
            os.environ["CCC_OVERRIDE_OPTIONS"] = "# O0"  # also of the wrappers
        start, end, bad = time.monotonic(), options.first + options.count, 0
        parts = [range(at, min(at + _TOGETHER, end)) for at in range(options.first, end, _TOGETHER)]
        step = _TASKS * options.jobs
        for at in range(0, len(parts), step):
            for text in self._together(options.seed, parts[at : at + step], options.jobs):
                bad += 1
                print(text, flush=True)
        seconds = time.monotonic() - start
        print(f"seed {options.seed}, {options.count} graphs, {bad} findings, in {seconds:.0f} s")
        return int(bad > 0)


@contextmanager
def _noted(found: dict[int, str], number: int) -> Iterator[None]:
    """Note an exception of any class as what was found of a graph."""
    try:
        with redirect_stderr(io.StringIO()):  # notes of exports
            yield
    except Exception as error:
        found[number] = f"{type(error).__name__}: {str(error)[:300]}"
