"""Attacks on a signed library: changed bytes, and a process that writes to it during loads."""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import random
import shutil
import signal
import struct
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import safetensors.numpy

import packer
import runtime
from packer.trust.sign import sign_library
from runtime import Trust
from runtime.error import PackerError, VerifyError

from . import signing

SOURCE = """
#include <stdio.h>
__attribute__((constructor)) static void leave_a_mark(void) { fclose(fopen(MARK, "w")); }
int answer(void) { return ANSWER; }
"""
LENGTH = 2_200_000  # of the weights: a whole piece, between a part of the first and of the last


@functools.cache
def weights(start: int) -> np.ndarray:
    """The weights of one of the libraries."""
    return (np.arange(LENGTH, dtype="u4") * 2654435761 + start).astype("u1")


class Signed:
    """A signed library, whose constructor makes a file."""

    def __init__(self, folder: Path, name: str, answer: int, key: str) -> None:
        self.answer, self.mark = answer, folder / f"{name}.mark"
        options = [f'-DMARK="{self.mark}"', f"-DANSWER={answer}", "-O1"]
        root = packer.CSourceModule(SOURCE, functions="auto", options=options)
        file = safetensors.numpy.save({"w": weights(answer)})
        root.import_module(runtime.SafetensorsModule(file))
        (folder / name).mkdir()
        self.path = packer.export_library(root, folder / name / "model.so")
        if not (folder / f"{key}.key").exists():
            signing.keys(folder, key)
        sign_library(self.path, folder / f"{key}.key")
        self.trust = Trust.keys(folder / f"{key}.pub")
        self.mark.unlink(missing_ok=True)


# ---- Changed bytes


def flip_bytes(folder: Path, count: int, seed: int) -> Counter[str]:
    """Change one byte after the other, and load in both ways; return the outcomes.

    A half of the places is within the code and the headers, which are a hundredth of the file.
    """
    target = Signed(folder, "target", 42, "acme")
    data = target.path.read_bytes()
    drawn, outcomes = random.Random(seed), Counter[str]()
    descriptor = os.open(target.path, os.O_RDWR)
    try:
        for number in range(count):
            most = len(data) if number % 2 else 1 << 15
            offset = drawn.randrange(most)
            changed = data[offset] ^ drawn.randrange(1, 256)
            os.pwrite(descriptor, bytes([changed]), offset)
            for way in ("copy", "map"):
                outcomes[f"{way}: {_load_changed(target, way)}"] += 1
            os.pwrite(descriptor, data[offset : offset + 1], offset)
    finally:
        os.close(descriptor)
    loaded = runtime.load(target.path, trust=target.trust)
    assert (loaded["answer"](), loaded.weights["w"].numpy().tobytes()) == (
        target.answer,
        weights(target.answer).tobytes(),
    )
    return outcomes


def _load_changed(target: Signed, way: str) -> str:
    """Load a file with a changed byte."""
    try:
        loaded = runtime.load(target.path, trust=target.trust, weights=way)  # type: ignore[arg-type]
    except VerifyError:
        return "code ran" if target.mark.exists() else "refused"
    try:
        loaded.weights["w"].numpy()
    except VerifyError:
        return "weight refused" if way == "map" else "code ran"
    finally:
        target.mark.unlink(missing_ok=True)
    return "loaded"


# ---- Loads beside a writer


def load_beside_writer(folder: Path, count: int, seed: int) -> Counter[str]:
    """Load `count` times while a process rewrites, renames and cuts the file; return the outcomes.

    The loads are in a child process. The kernel ends it if the file is cut while values of a mapped
    weight are read; it is started again then, and the outcome is "cut while it was mapped".
    """
    good = Signed(folder, "good", 42, "acme")
    bad = Signed(folder, "bad", 666, "mallory")
    target = folder / "model.so"
    for old, new in ((good.path, target), (signing.sidecar(good.path), signing.sidecar(target))):
        shutil.copy(old, new)
    shared, report = mmap.mmap(-1, 4096), folder / "report"
    outcomes: Counter[str] = Counter()
    with _child(lambda: _attack(target, good.path, bad.path, seed)):
        while (done := _number(shared, 0)) < count:
            worker = _start(lambda: _load_many(target, good, shared, count, report, seed))
            status = os.waitpid(worker, 0)[1]
            lines = report.read_text().splitlines() if report.exists() else []
            report.unlink(missing_ok=True)
            outcomes.update(lines)
            if status == 0:
                continue
            is_cut = os.WTERMSIG(status) == signal.SIGBUS and _number(shared, 1) == 1
            outcomes["cut while it was mapped" if is_cut else f"ended by {status}"] += 1
            _set(shared, 0, max(done, _number(shared, 0)) + 1)
    if bad.mark.exists():
        outcomes["other code ran"] += 1
    return outcomes


def is_allowed(outcome: str) -> bool:
    """Return True for the verified bytes and for an error.

    Mapped weights may change after their verification, as docs/trust-policy.md says.
    """
    later = ("map: changed after it was verified", "cut while it was mapped")
    return outcome in later or outcome.endswith("verified bytes") or ": refused, " in outcome


def _load_many(
    target: Path, good: Signed, shared: mmap.mmap, count: int, report: Path, seed: int
) -> None:
    drawn = random.Random(f"{seed} {_number(shared, 0)}")
    with report.open("w", buffering=1) as file:
        while _number(shared, 0) < count:
            way = drawn.choice(("map", "copy"))
            file.write(f"{way}: {_load_once(target, good, way, shared)}\n")
            _set(shared, 0, _number(shared, 0) + 1)


def _load_once(target: Path, good: Signed, way: str, shared: mmap.mmap) -> str:
    """Load, call and read; only an error of the project is one."""
    try:
        loaded = runtime.load(target, trust=good.trust, weights=way)  # type: ignore[arg-type]
        if loaded["answer"]() != good.answer:
            return "other code ran"
        weight = loaded.weights["w"]
    except PackerError as error:
        return f"refused, {type(error).__name__} {getattr(error, 'reason', '')}".strip()
    _set(shared, 1, int(way == "map"))
    same = weight.numpy().tobytes() == weights(good.answer).tobytes()
    _set(shared, 1, 0)
    return "the verified bytes" if same else "changed after it was verified"


def _attack(target: Path, good: Path, bad: Path, seed: int) -> None:
    """Change the file and its bundle until the process is killed."""
    drawn = random.Random(seed)
    while True:
        source = drawn.choice((good, bad))
        files = [(source, target), (signing.sidecar(source), signing.sidecar(target))]
        kind = drawn.choice(("rewrite", "rename", "cut", "byte", "append"))
        for old, new in files if drawn.random() < 0.5 else files[:1]:
            _change(old, new, kind, drawn)
        time.sleep(drawn.random() * 0.01)
        for old, new in ((good, target), (signing.sidecar(good), signing.sidecar(target))):
            _change(old, new, drawn.choice(("rewrite", "rename")), drawn)
        time.sleep(drawn.random() * 0.02)


def _change(source: Path, target: Path, kind: str, drawn: random.Random) -> None:
    data = source.read_bytes()
    if kind == "rename":
        new = target.with_suffix(".new")
        new.write_bytes(data)
        os.replace(new, target)
    elif kind == "cut":
        os.truncate(target, drawn.randrange(len(data)))
    elif kind == "append":
        with target.open("ab") as file:
            file.write(data[: drawn.randrange(5000)])
    else:
        first = drawn.randrange(len(data)) if kind == "byte" else 0
        with target.open("r+b") as file:
            file.seek(first)
            file.write(b"\xff" if kind == "byte" else data)
            file.truncate(len(data)) if kind == "rewrite" else None


# ---- Processes


def _number(shared: mmap.mmap, index: int) -> int:
    (value,) = struct.unpack_from("<q", shared, 8 * index)
    return int(value)


def _set(shared: mmap.mmap, index: int, value: int) -> None:
    struct.pack_into("<q", shared, 8 * index, value)


def _start(run) -> int:
    """Run a function in a child process; return its number."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        run()
        status = 0
    finally:
        os._exit(status)


@contextlib.contextmanager
def _child(run) -> Iterator[None]:
    child = _start(run)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
