"""Export: a small source, and many, to a library on the disk; whole processes. Large: weights.py.

The object cache is off, or has the objects of an earlier export.
"""

from __future__ import annotations

import json
import sys
from itertools import count
from pathlib import Path

from library import DECLARATIONS, KERNELS
from measure import Case, Command, Launcher, Sample, interleave
from table import Table

ROUNDS = 9
MANY_ROUNDS = 3
WEIGHTS_NBYTES = 50 << 20
# argv: the output, the weights.
_MANY = """
import sys
import packer, packer.operators, runtime
CODE = '''
#include <math.h>
#include <stdint.h>
int32_t op_{0}(const float *a, float *out) {{
  for (int i = 0; i < {0} + 1000; i++) out[i] = expf(a[i]) + {0};
  return 0;
}}
'''
root, *others = (
    packer.CSourceModule(
        CODE.format(i), functions={f"op_{i}": "int32_t(const float *a, float *out)"}
    )
    for i in range(100)
)
weights = runtime.SafetensorsModule(sys.argv[2])
for module in (*packer.operators.modules(), *others, weights):
    root.import_module(module)
packer.export_library(root, sys.argv[1], build=packer.Build(cpu=["x86-64-v3"]), options=["-lm"])
"""


def tables(folder: Path, launch: Launcher) -> list[Table]:
    """Measure the export of a small C file, and of the code of a large model."""
    return [_small(folder, launch), _many(folder, launch)]


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
    off, kept = _cached("off"), _cached(str(folder / "objects"))
    cases = [
        Case("gcc -shared -O2 -fPIC (reference)", lambda: launch(gcc).sample()),
        Case("the same, and sync", lambda: launch(synced).sample()),
        Case("packer export, without the cache", lambda: launch([*off, *packer]).sample()),
        Case("packer export, objects in the cache", lambda: launch([*kept, *packer]).sample()),
    ]
    notes = ("aim: at most 100 ms over gcc",)
    return Table("export: a small C file", interleave(cases, ROUNDS), "ms", "peak", notes)


def _many(folder: Path, launch: Launcher) -> Table:
    weights, turn = folder / "w.safetensors", count()
    many: Command = [sys.executable, "-I", "-c", _MANY, folder / "many.so", weights]

    def export(cache: str) -> Sample:
        _write_weights(weights, next(turn) % 256)  # other ones each time
        return launch([*_cached(cache), *many]).sample()

    cases = [
        Case("without the cache (reference)", lambda: export("off")),
        Case("objects in the cache, new weights", lambda: export(str(folder / "objects"))),
    ]
    title = "export: 100 C files, packer.operators at x86-64-v3, 50 MiB of weights"
    notes = ("aim: at most 15 s, and 2 s if only the weights have changed",)
    return Table(title, interleave(cases, MANY_ROUNDS), "ms", "peak", notes)


def _cached(cache: str) -> Command:
    return ["env", f"PACKER_CACHE={cache}"]


def _write_weights(path: Path, value: int) -> None:
    entry = {"dtype": "U8", "shape": [WEIGHTS_NBYTES], "data_offsets": [0, WEIGHTS_NBYTES]}
    header = json.dumps({"w": entry}).encode()
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header + bytes([value]) * WEIGHTS_NBYTES)
