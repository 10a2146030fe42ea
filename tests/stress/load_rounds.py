"""Load, call and unload a library over and over: memory, descriptors and mappings stay flat.

load_rounds.py [ROUNDS]: prints the growth after a tenth of the rounds, then after all of them.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import packer
import runtime


class Left(NamedTuple):
    """The resources of a process: bytes and blocks in use, and entries in /proc."""

    heap: int
    blocks: int
    descriptors: int
    mappings: int


class _MallInfo2(ctypes.Structure):  # mallinfo(3)
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


_LIBC = ctypes.CDLL(None)
_LIBC.mallinfo2.restype = _MallInfo2


def left() -> Left:
    """Count, with nothing left for the collector."""
    gc.collect()
    with open("/proc/self/maps", "rb") as maps:
        mappings = sum(b".so" in line or b"memfd" in line for line in maps)
    used = _LIBC.mallinfo2()
    heap = used.uordblks + used.hblkhd
    return Left(heap, sys.getallocatedblocks(), len(os.listdir("/proc/self/fd")), mappings)


# add: declared. scaled: calls an import. apply: calls its first argument with the others.
SOURCE = """
#include "dso_packer.h"
long add(long a, long b) { return a + b; }
dso_status scaled(long a) { return dso_call("scale", NULL, dso_int(a)); }
typedef struct { dso_object header; dso_safe_call safe_call; } function_object;
DSO_EXPORT int __tvm_ffi_apply(void *handle, const dso_any *args, int32_t count,
                               dso_any *result) {
  const function_object *function = (const function_object *)args[0].v_ptr;
  (void)handle;
  return function->safe_call(args[0].v_ptr, args + 1, count - 1, result);
}
"""


class Scaling(runtime.Module):
    """A module that the host code imports; `seen` has the arguments of its calls."""

    type_key = "scaling"

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def find_function(self, name: str) -> Callable[..., object] | None:
        """The one function."""
        return self.seen.append if name == "scale" else None


def build(path: Path) -> Path:
    """Export a tree: host code over a device module."""
    declared = {"add": "long(long a, long b)", "scaled": "dso_status(long a)"}
    root = packer.CSourceModule(SOURCE, functions=declared)
    root.import_module(runtime.DeviceModule("cuda", b"payload" * 9, "cubin", []))
    return packer.export_library(root, path)


def call(module: runtime.Module) -> None:
    """Call it in each way: by declaration, through its context, and from Python's callback."""
    scaling = Scaling()
    module.import_module(scaling)
    assert module["add"](40, 2) == 42
    module["scaled"](7)
    assert scaling.seen == [7]
    assert module["apply"](lambda value: value + 1, 41) == 42


def load_and_call(path: Path) -> None:
    """One round; nothing of it is kept."""
    call(runtime.load(path))


def replace_and_load(path: Path) -> None:
    """The same with a file that is new."""
    fresh = path.with_suffix(".fresh")
    fresh.write_bytes(path.read_bytes())
    os.replace(fresh, path)
    load_and_call(path)


def load_bytes(path: Path) -> None:
    """One round of a library in memory."""
    call(runtime.load_from_bytes(path.read_bytes()))


def growth(one_round: Callable[[Path], None], path: Path, rounds: int) -> Left:
    """The growth during the last nine tenths of the rounds."""
    for _ in range(rounds // 10):
        one_round(path)
    before = left()
    for _ in range(rounds - rounds // 10):
        one_round(path)
    after = left()
    return Left(*(new - old for new, old in zip(after, before, strict=True)))


def main(rounds: int) -> int:
    """Load the same file, then in a tenth of the rounds a new one, then bytes; 1 if it grew."""
    status = 0
    with tempfile.TemporaryDirectory() as folder:
        path = build(Path(folder) / "model.so")
        for one_round, share in ((load_and_call, 1), (replace_and_load, 10), (load_bytes, 10)):
            count = rounds // share
            grown = growth(one_round, path, count)
            print(f"{one_round.__name__}, {count} rounds: {grown}", flush=True)
            status |= int(not is_flat(grown, count))
    return status


def is_flat(grown: Left, rounds: int) -> bool:
    """Less than a byte per round, no descriptor, no mapping."""
    small = grown.heap < rounds and grown.blocks < 100
    return small and (grown.descriptors, grown.mappings) == (0, 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000))
