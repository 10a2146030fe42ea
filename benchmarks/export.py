"""Export: from sources or a payload to a library on the disk; whole processes."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from library import DECLARATIONS, KERNELS, MIB, write_payload
from measure import Case, Command, Launcher, Sample, interleave
from table import Table

ROUNDS = 9
# Size of the payload -> the embedders that are measured with it.
SIZES = {MIB: ("llvm", "c"), 64 * MIB: ("llvm",)}

# argv: payload, library, embedder.
EXPORT = """
import mmap, sys, packer, runtime
with open(sys.argv[1], "rb") as file:
    data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
root = runtime.DeviceModule("cuda", data, "cubin", [])
packer.export_library(root, sys.argv[2], embed=sys.argv[3])
"""
# sh arguments: payload, library. Both end on the disk, as an export does.
COPY = 'cp "$1" "$2" && sync "$2"'
BINARY = 'ld -r -b binary -z noexecstack -o "$2.o" "$1" && gcc -shared -o "$2" "$2.o" && sync "$2"'


def tables(folder: Path, launch: Launcher) -> list[Table]:
    """Measure the export of a small C file, and of one payload per size."""
    return [_small(folder, launch)] + [
        _payload(nbytes, embedders, folder, launch) for nbytes, embedders in SIZES.items()
    ]


def _small(folder: Path, launch: Launcher) -> Table:
    gcc: Command = ["gcc", "-shared", "-O2", "-fPIC", "-o", folder / "gcc.so", KERNELS]
    synced: Command = ["sh", "-c", '"$@" && sync "$6"', "sh", *gcc]
    functions = [f"--function={name}={text}" for name, text in DECLARATIONS.items()]
    packer: Command = [
        sys.executable,
        "-I",
        "-m",
        "packer",
        "export",
        folder / "packer.so",
        KERNELS,
        *functions,
    ]
    cases = [
        Case("gcc -shared -O2 -fPIC (reference)", lambda: launch(gcc).sample()),
        Case("the same, and sync", lambda: launch(synced).sample()),
        Case("packer export", lambda: launch(packer).sample()),
    ]
    notes = ("aim: at most 100 ms over gcc",)
    return Table("export: a small C file", interleave(cases, ROUNDS), "ms", "peak", notes)


def _payload(nbytes: int, embedders: tuple[str, ...], folder: Path, launch: Launcher) -> Table:
    payload = write_payload(folder, nbytes)

    def shell(script: str) -> Sample:
        return launch(["sh", "-c", script, "sh", payload, folder / "shell.so"]).sample()

    def export(embed: str) -> Sample:
        library = folder / f"export_{embed}.so"
        return launch([sys.executable, "-I", "-c", EXPORT, payload, library, embed]).sample()

    cases = [
        Case("cp, sync (reference)", lambda: shell(COPY)),
        Case("ld -r -b binary, gcc -shared, sync", lambda: shell(BINARY)),
        *(Case(f"export_library, embed={name!r}", partial(export, name)) for name in embedders),
    ]
    title = f"export: a payload of {nbytes // MIB} MiB"
    return Table(title, interleave(cases, ROUNDS), "ms", "peak")
