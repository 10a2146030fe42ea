"""Verified loads of a library with weights, beside an unverified one and beside digests alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from library import KERNELS, MIB
from measure import Case, Launcher, Sample, interleave
from table import Table
from weights import write_weights

NBYTES = 50 * MIB
ROUNDS, LOADS = 9, 20

# argv: way, library, public key, number of loads. Prints the seconds of the first one, or the least
# of the others. "pieces" are those with code and headers, which every verified load hashes.
LOAD = """
import sys, time
way, path, key, count = *sys.argv[1:4], int(sys.argv[4])
import runtime
trust = None
def load():
    if way == "unverified":
        return runtime.load(path)
    global trust
    trust = trust or runtime.Trust.keys(key)
    return runtime.load(path, trust=trust, weights=way)
if way in ("whole", "pieces"):
    from hashlib import sha256
    data = open(path, "rb").read()
    offset, mapped = 0, b""
    if way == "pieces":
        model = runtime.load(path, trust=runtime.Trust.keys(key))
        offset, mapped = model._loaded_from.pieces
    parts = [data[:offset], data[offset + len(mapped):]]
    def load():
        digest = sha256()
        for part in parts:
            digest.update(part)
        return digest.digest()
seconds = []
for _ in range(count):
    start = time.perf_counter()
    model = load()
    seconds.append(time.perf_counter() - start)
    del model
print(min(seconds[1:] or seconds))
"""
NAMES = {
    "unverified": "runtime.load (reference; verifies nothing)",
    "map": 'trust=Trust.keys(...), weights="map"',
    "copy": 'trust=Trust.keys(...), weights="copy"',
    "pieces": "sha256 of the pieces with code and headers alone",
    "whole": "sha256 of the whole file alone",
}


def tables(folder: Path, launch: Launcher) -> Iterator[Table]:
    """Measure warm loads, then the first one of a process."""
    library, key = _signed(folder, launch)

    def load(way: str, count: int) -> Sample:
        command = [sys.executable, "-I", "-c", LOAD, way, library, key, str(count)]
        ended = launch(command)
        return {"seconds": float(ended.output), "peak": ended.peak}

    cases = [Case(name, partial(load, way, LOADS)) for way, name in NAMES.items()]
    notes = ("aim of map: sha256 of its pieces and 1 ms; of copy: sha256 of the whole and a copy",)
    title = f"verified load: {NBYTES // MIB} MiB of weights"
    yield Table(title, interleave(cases, ROUNDS), "ms", "peak", notes)
    first = [Case(NAMES[way], partial(load, way, 1)) for way in ("unverified", "map", "copy")]
    notes = ("aim: 40 ms more than a load that is not the first",)
    yield Table("verified load: the first one of a process", interleave(first, ROUNDS), "ms",
                "peak", notes)  # fmt: skip


def _signed(folder: Path, launch: Launcher) -> tuple[Path, Path]:
    """Export and sign a library; return it, and the public key."""
    library, key = folder / "trust.so", folder / "trust_key"
    packer = [sys.executable, "-I", "-m", "packer"]
    weights = write_weights(folder, NBYTES)
    function = "--function=add=int64_t(int64_t a, int64_t b)"
    launch([*packer, "export", library, "--weights", weights, KERNELS, function])
    launch([*packer, "keygen", key])
    launch([*packer, "sign", library, "--key", key.with_suffix(".key")])
    weights.unlink()
    return library, key.with_suffix(".pub")
