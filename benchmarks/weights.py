"""Weights: a file of weights to a library and back, here and by every other way."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from library import KERNELS, MIB, write_payload
from load import DLOPEN, RUNTIME, TVM, first_load
from measure import Case, Command, Launcher, Sample, interleave, is_installed
from table import Table

GIB = 1024 * MIB
# Bytes of weights -> rounds.
SIZES = {MIB: 5, 64 * MIB: 3, GIB: 2}
LARGE_SIZES = {4 * GIB: 2}
PAIRS = 5
LOADS = 7
NUM_TENSORS = 16
# Seconds between two samples of 1 GiB and more: the disk discards removed files, and the kernel of
# a virtual machine reports free memory to its host 2 seconds later.
REST = 4
PIECE = 64 << 10
# The most bytes that a compiler accepts as the text of an array.
TEXT_LIMIT = MIB
# The most bytes of one array that 32-bit offsets allow.
LINKER_LIMIT = GIB

# sh arguments: weights, library. All flush their output to the disk, as an export does.
COPY = 'cp "$1" "$2" && sync "$2"'
UNFLUSHED_COPY = 'cp "$1" "$2"'
INCBIN = (
    'printf \'.section .rodata\\n.globl w\\n.type w,%%object\\nw: .incbin "%s"\\n'
    '.size w,.-w\\n.section .note.GNU-stack,"",%%progbits\\n\' "$1" > "$2.s" && '
    'gcc -shared -o "$2" "$2.s" && sync "$2"'
)
BINARY = 'ld -r -b binary -z noexecstack -o "$2.o" "$1" && gcc -shared -o "$2" "$2.o" && sync "$2"'
TVM_EXPORT = Path(__file__).with_name("tvm_export.py")
TEXT = 'xxd -i -n w "$1" > "$2.c" && gcc -shared -o "$2" "$2.c" && sync "$2"'

# An export whose fsync(2) does nothing, for the pairs without a flush.
UNFLUSHED = "import os; os.fsync = lambda descriptor: None; import packer.cli; packer.cli.main()"

# argv: library or weights, data's start in that or "". Every byte is read once, by NumPy.
PASS = """
import sys, time, numpy
if sys.argv[2]:
    arrays = [numpy.memmap(sys.argv[1], dtype="f4", mode="r", offset=int(sys.argv[2]))]
else:
    import runtime
    module = runtime.load(sys.argv[1])
    arrays = [tensor.numpy() for tensor in module.weights.values()]
def read():
    start = time.perf_counter()
    for array in arrays:
        array.view("u8").max()
    return time.perf_counter() - start
read()
print(read())
"""


def tables(folder: Path, launch: Launcher, *, large: bool = False) -> Iterator[Table]:
    """Measure export and load of each size, and the pairs with `cp`."""
    for nbytes, rounds in {**SIZES, **(LARGE_SIZES if large else {})}.items():
        weights = write_weights(folder, nbytes)
        if nbytes == GIB:  # before the rows that leave gigabytes to write
            yield _pairs(weights, folder, launch, flushed=False)
            yield _pairs(weights, folder, launch, flushed=True)
        yield _export(weights, rounds, folder, launch)
        yield _load(weights, folder, launch)
        if nbytes == GIB:
            yield _pass(weights, folder, launch)
        for path in folder.glob("*weights*"):
            path.unlink()


def write_weights(folder: Path, nbytes: int) -> Path:
    """Write a safetensors file with this number of random bytes in a few tensors."""
    path = folder / f"weights_{nbytes // MIB}.safetensors"
    share = nbytes // NUM_TENSORS
    header = {
        f"layer{i}": {
            "dtype": "F32",
            "shape": [share // 4],
            "data_offsets": [i * share, (i + 1) * share],
        }
        for i in range(NUM_TENSORS)
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    piece = write_payload(folder, MIB).read_bytes()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for index in range(nbytes // MIB):
            file.write(index.to_bytes(8, "little") + piece[8:])
    return path


def _export(weights: Path, rounds: int, folder: Path, launch: Launcher) -> Table:
    nbytes = weights.stat().st_size // MIB * MIB
    library = folder / "weights_export.so"

    def run(command: Command) -> Sample:
        return _settled(weights, lambda: launch(command).sample(), library)

    def shell(script: str) -> Callable[[], Sample]:
        return lambda: run(["sh", "-c", script, "sh", weights, library])

    def packer(*options: str | Path) -> Callable[[], Sample]:
        return lambda: run(_packer(library, weights, *options))

    def tvm(way: str) -> Sample:
        command: Command = [sys.executable, TVM_EXPORT, weights, library, way]

        def measure() -> Sample:
            ended = launch(command)
            return {"seconds": float(ended.output.split()[-1]), "peak": ended.peak}

        return _settled(weights, measure, library)

    cases = [
        Case("cp, sync (reference)", shell(COPY)),
        Case("packer export --weights", packer()),
        Case("packer export, C file", packer(KERNELS)),
    ]
    if nbytes <= LINKER_LIMIT:
        cases += [
            Case("packer export, C file, --embed llvm", packer(KERNELS, "--embed=llvm")),
            Case(".incbin, gcc -shared, sync", shell(INCBIN)),
            Case("ld -r -b binary, gcc -shared, sync", shell(BINARY)),
            Case("TVM export_library (LLVM), sync", partial(tvm, "llvm"), "tvm"),
        ]
    if nbytes <= TEXT_LIMIT:
        cases.append(Case("packer export, C file, --embed c", packer(KERNELS, "--embed=c")))
        cases.append(Case("TVM export_library (C), sync", partial(tvm, "c"), "tvm"))
        if shutil.which("xxd"):
            cases.append(Case("xxd -i, gcc -shared, sync", shell(TEXT)))
    title = f"export: {nbytes // MIB} MiB of weights"
    return Table(title, interleave(cases, rounds), "ms", "peak file")


def _load(weights: Path, folder: Path, launch: Launcher) -> Table:
    small = write_weights(folder, MIB)
    ours, warm = folder / "ours_weights.so", folder / "ours_warm_weights.so"
    launch(_packer(ours, weights, KERNELS))
    launch(_packer(warm, small, KERNELS))

    def load(loader: str, library: Path, warm: Path) -> Callable[[], Sample]:
        return lambda: first_load(launch, loader, library, _copies(warm))

    cases = [
        Case("dlopen (reference)", load(DLOPEN, ours, warm)),
        Case("runtime.load", load(RUNTIME, ours, warm)),
    ]
    if weights.stat().st_size < 2 * LINKER_LIMIT:
        theirs, their_warm = folder / "tvm_weights.so", folder / "tvm_warm_weights.so"
        cases.append(Case("TVM load_module", load(TVM, theirs, their_warm), "tvm"))
        if is_installed("tvm"):
            launch([sys.executable, TVM_EXPORT, weights, theirs, "llvm"])
            launch([sys.executable, TVM_EXPORT, small, their_warm, "llvm"])
    notes = ("aim: at most 5 times dlopen, and 1 MiB",)
    title = f"load: {weights.stat().st_size // MIB} MiB of weights"
    return Table(title, interleave(cases, LOADS), "us", "growth", notes)


def _copies(path: Path) -> list[Path]:
    """A library as three files."""
    return [Path(shutil.copyfile(path, path.with_suffix(f".{i}.so"))) for i in range(3)]


def _pairs(weights: Path, folder: Path, launch: Launcher, *, flushed: bool) -> Table:
    library = folder / "weights_export.so"

    def run(command: Command) -> Callable[[], Sample]:
        return lambda: _settled(weights, lambda: launch(command).sample(), library)

    def export(*options: str | Path) -> Callable[[], Sample]:
        command = _packer(library, weights, *options)
        if not flushed:
            command[2:4] = ["-c", UNFLUSHED]
        return run(command)

    copy = COPY if flushed else UNFLUSHED_COPY
    cases = [
        Case("cp, sync (reference)" if flushed else "cp (reference)",
             run(["sh", "-c", copy, "sh", weights, library])),
        Case("packer export --weights", export()),
        Case("packer export, C file", export(KERNELS)),
    ]  # fmt: skip
    title = f"export: 1 GiB of weights beside cp, {'flushed' if flushed else 'not flushed'}"
    notes = ("aim: at most 1.2 times cp",)
    return Table(title, interleave(cases, PAIRS), "ms", "peak", notes)


def _pass(weights: Path, folder: Path, launch: Launcher) -> Table:
    library = folder / "ours_weights.so"
    with weights.open("rb") as file:
        start = 8 + int.from_bytes(file.read(8), "little")  # safetensors: u64 n, n bytes of header

    def read(path: Path, offset: str) -> Sample:
        ended = launch([sys.executable, "-I", "-c", PASS, path, offset])
        return {"seconds": float(ended.output), "peak": ended.peak}

    cases = [
        Case("numpy.memmap of the weights (reference)", lambda: read(weights, str(start))),
        Case("module.weights of the library", lambda: read(library, "")),
    ]
    notes = ("aim: at least 0.95 of the speed",)
    return Table("a pass over 1 GiB of weights", interleave(cases, PAIRS), "ms", "peak", notes)


def _packer(library: Path, weights: Path, *options: str | Path) -> Command:
    function = ["--function=add=int64_t(int64_t a, int64_t b)"] if KERNELS in options else []
    command: Command = [
        sys.executable,
        "-I",
        "-m",
        "packer",
        "export",
        library,
        "--weights",
        weights,
    ]
    return [*command, *options, *function]


def _settled(weights: Path, measure: Callable[[], Sample], output: Path) -> Sample:
    """Measure on an idle machine, and remove the output.

    The disk is idle, and the page cache contains the weights. The memory for the same number of
    pages was in use just before: a virtual machine gets memory that it returned to its host only
    page by page, which may take many times as long as the copy.
    """
    os.sync()
    time.sleep(REST * min(1, weights.stat().st_size / GIB))
    with weights.open("rb") as source, output.open("wb") as scratch:
        shutil.copyfileobj(source, scratch, PIECE)
    output.unlink()
    sample = measure()
    sample["file"] = output.stat().st_size
    for path in output.parent.glob(f"{output.name}*"):
        path.unlink()
    return sample
