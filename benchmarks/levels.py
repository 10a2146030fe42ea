"""Levels: kernels of one library with code for three levels of processors.

Each kernel is measured beside the same code that was compiled for one level alone, by `-march`. In
addition: the choice of a level at a load, a call, and the size of the code.
"""

from __future__ import annotations

import os
import platform
from _ctypes import dlclose, dlopen
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfile
from statistics import mean
from timeit import Timer
from typing import Any

import numpy as np
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from measure import Case, Launcher, Sample, interleave
from table import Table

import packer
import runtime

ROUNDS = 30
# One sample is the least of a few short loops, which a busy machine may interrupt.
LOOPS, LOOP_SECONDS = 12, 0.0004
LOADS = 20
SOURCE = Path(__file__).with_name("levels.c")
OPTIONS = ("-O3", "-ffast-math")  # sums are vectorised
LEVELS = {
    "x86_64": ("x86-64-v2", "x86-64-v3", "x86-64-v4"),
    "aarch64": ("armv8-a", "armv8.2-a", "armv9-a"),
}
FLOATS = 4096
SIDE = 96
RANDOM = np.random.default_rng(3)
_X, _Y = RANDOM.normal(size=FLOATS).astype("f"), np.zeros(FLOATS, "f")
_BYTES = RANDOM.integers(-100, 100, (2, 4 * FLOATS), np.int8)
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "polynomial": (_X, _Y, FLOATS),
    "saxpy": (1e-9, _X, _Y, FLOATS),
    "convolution": (_X, _X[:9].copy(), _Y, FLOATS // SIDE, SIDE),
    "gather": (_X, RANDOM.integers(0, FLOATS, FLOATS, np.int32), _Y, FLOATS),
    "dot": (*_BYTES, 4 * FLOATS),
}
TITLES = {
    "polynomial": "a polynomial of degree 11",
    "saxpy": "saxpy",
    "convolution": "a 3 x 3 convolution",
    "gather": "gather",
    "dot": "a dot product of bytes",
}


def tables(folder: Path, launch: Launcher) -> list[Table]:
    """Measure the levels that this machine has."""
    del launch  # all is measured in this process
    names = LEVELS.get(platform.machine(), ())
    if not names:
        return []
    levels = packer.export_library(_source(), folder / "levels.so", build=packer.Build(cpu=names))
    alone = {
        name: packer.export_library(_source(f"-march={name}"), folder / f"{name}.so")
        for name in names
    }
    pairs = {}
    for name, path in alone.items():
        try:
            with _forced(name):
                at_level = runtime.load(copyfile(levels, folder / f"at-{name}.so"))
        except packer.LibraryLoadError:
            continue  # above this machine's
        pairs[name] = (runtime.load(path), at_level)
    best = list(pairs)[-1]
    return [
        *(_kernel(name, pairs) for name in TITLES),
        _calls(*pairs[best]),
        _loads(folder, levels, alone[best], list(alone.values())),
    ]


def _source(*options: str) -> packer.CSourceModule:
    return packer.CSourceModule(SOURCE, functions="auto", options=[*OPTIONS, *options])


@contextmanager
def _forced(level: str) -> Iterator[None]:
    """Let loads choose this level."""
    os.environ["DSO_CPU"] = level
    try:
        yield
    finally:
        del os.environ["DSO_CPU"]


def _kernel(name: str, pairs: dict[str, tuple[runtime.Module, runtime.Module]]) -> Table:
    cases = []
    for level, (alone, at_level) in pairs.items():
        cases += [
            Case(f"{level} alone (reference)", _timed(alone[name], ARGUMENTS[name])),
            Case(f"{level} of three", _timed(at_level[name], ARGUMENTS[name])),
        ]
    notes = ("aim: a level at most 1.05 times the same code alone",)
    return Table(f"levels: {TITLES[name]}", interleave(cases, ROUNDS), "us", notes=notes, group=2)


def _calls(alone: runtime.Module, at_level: runtime.Module) -> Table:
    cases = [
        Case("one level (reference)", _timed(alone["add"], (1, 2))),
        Case("three levels", _timed(at_level["add"], (1, 2))),
    ]
    notes = ("aim: over at most 1 ns",)
    return Table("levels: call f(int, int) -> int", interleave(cases, ROUNDS), "ns", notes=notes)


def _timed(call: Callable[..., object], arguments: tuple[Any, ...]) -> Callable[[], Sample]:
    """Return the measurement of a call: the least of short loops."""
    timer = Timer("call(*arguments)", globals={"call": call, "arguments": arguments})
    loops, seconds = timer.autorange()
    loops = max(1, round(loops * LOOP_SECONDS / seconds))
    return lambda: {"seconds": min(timer.repeat(LOOPS, loops)) / loops}


def _loads(folder: Path, levels: Path, one: Path, alone: Sequence[Path]) -> Table:
    """Measure dlopen, which runs the constructor that chooses, and dlclose."""
    cases = [
        Case(name, _opened(copyfile(path, folder / f"opened-{path.name}")))
        for name, path in {"one level (reference)": one, "three levels": levels}.items()
    ]
    sizes = [code_nbytes(path) for path in alone]
    whole = code_nbytes(levels)
    notes = (
        "aim: over at most 50 us",
        f"code: one level {', '.join(map(str, sizes))} bytes, three levels {whole} bytes: "
        f"{whole / mean(sizes):.2f} times their mean, {whole / max(sizes):.2f} times the largest; "
        "aim at most 3.1 times",
    )
    return Table("levels: dlopen and dlclose", interleave(cases, ROUNDS), "us", notes=notes)


def _opened(path: Path) -> Callable[[], Sample]:
    def measure() -> Sample:
        loads = Timer(lambda: dlclose(dlopen(str(path), os.RTLD_NOW)))
        return {"seconds": min(loads.repeat(LOADS, 1))}

    return measure


def code_nbytes(path: Path) -> int:
    """Return the size of a library's executable sections."""
    with path.open("rb") as file:
        sections = list(ELFFile(file).iter_sections())
    return sum(s["sh_size"] for s in sections if s["sh_flags"] & SH_FLAGS.SHF_EXECINSTR)
