"""libdso: what a C program pays to load a library, to call it, and to run a model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from shutil import copyfile

from library import MIB, build_library, write_payload
from measure import Case, Launcher, Sample, interleave
from resnet18 import EXAMPLE, RUNTIME, SHAPE, export_example
from table import Table
from weights import GIB, write_weights

import packer
import runtime
from packer.project import read_project

LOAD_ROUNDS, CALL_ROUNDS, PROCESS_ROUNDS = 15, 15, 9


def tables(folder: Path, launch: Launcher) -> list[Table]:
    """Measure fresh processes of one C program, linked with libdso.a."""
    program = build_program(folder)
    warm = [
        build_library(folder / "warm.so"),
        build_library(folder / "warm_tree.so", payload=write_payload(folder, MIB)),
    ]
    photo = folder / "photo.so"
    root = read_project(EXAMPLE.parent / "photo" / "packer.toml").root
    packer.export_library(root, photo)
    large = packer.export_library(
        runtime.SafetensorsModule(write_weights(folder, GIB)), folder / "large.so"
    )
    return [
        _load_table("the photo example", photo, warm, program, launch),
        _load_table("1 GiB of weights", large, warm, program, launch),
        _call_table(warm[0], program, launch),
        _process_table(folder, warm[0], program, launch),
    ]


def build_program(folder: Path) -> Path:
    """Compile dso_program.c with the flags that `packer config` prints."""
    command = [sys.executable, "-P", "-m", "packer", "config", "--cflags", "--libs", "--static"]
    flags = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    program = folder / "dso_program"
    source = Path(__file__).with_name("dso_program.c")
    subprocess.run(["gcc", "-O2", str(source), "-o", program, *flags, "-ldl"], check=True)
    return program


def _load_table(
    title: str, library: Path, warm: list[Path], program: Path, launch: Launcher
) -> Table:
    def load_copy(how: str) -> Sample:
        path = library.with_name(f"{library.stem}_{how}.so")
        if not path.exists():
            copyfile(library, path)
        took, growth = launch([program, "open", how, *warm, path]).output.split()
        return {"seconds": int(took) / 1e9, "growth": int(growth) * 1024}

    cases = [
        Case("dlopen (reference)", lambda: load_copy("dlopen")),
        Case("dso_load", lambda: load_copy("dso_load")),
    ]
    rows = interleave(cases, LOAD_ROUNDS)
    return Table(f"dso_load: {title}", rows, "us", "growth", ("aim: dlopen + 150 us",))


def _call_table(library: Path, program: Path, launch: Launcher) -> Table:
    def sample(column: int) -> Sample:
        return {"seconds": float(launch([program, "call", library]).output.split()[column]) / 1e9}

    cases = [
        Case("the symbol itself (reference)", lambda: sample(1)),
        Case("a held dso_function", lambda: sample(0)),
    ]
    rows = interleave(cases, CALL_ROUNDS)
    return Table("dso_function_call: add(int, int)", rows, "ns", "", ("aim: at most 25 ns",))


def _process_table(folder: Path, library: Path, program: Path, launch: Launcher) -> Table:
    import numpy as np

    model, raw = folder / "resnet18.so", folder / "picture.f32"
    export_example(model)
    np.random.default_rng(1).normal(size=SHAPE).astype(np.float32).tofile(raw)

    def warm_run() -> Sample:
        ended = launch([program, "warm", model, raw])
        return {"seconds": int(ended.output) / 1e9, "peak": ended.peak}

    def hello() -> Sample:
        ended = launch([program, "hello", library])
        return {"seconds": ended.seconds, "peak": int(ended.output.split()[1]) * 1024}

    python = [sys.executable, "-I", "-c", RUNTIME, model, raw]
    cases = [
        Case("ResNet-18, a warm run (reference)", warm_run),
        Case(
            "ResNet-18, a C process to its end",
            lambda: launch([program, "first", model, raw]).sample(),
        ),
        Case("ResNet-18, a Python process to its end", lambda: launch(python).sample()),
        Case("hello: load, call; its Pss", hello),
    ]
    notes = ("aims: a process at most one run + 25 ms; hello at most 3 MB of Pss",)
    return Table("libdso: processes", interleave(cases, PROCESS_ROUNDS), "ms", "peak", notes)
