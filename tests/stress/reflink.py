"""File systems that share blocks: weights go into a library without separate blocks.

Their data area must begin at a multiple of 64 bytes in their file, as most writers have it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from faults import mounted
from model import MIB

import packer
import runtime

KINDS = ("btrfs", "xfs")
# Less than this is new in the file system for 64 MiB of weights: code and records.
NEW = 4 * MIB


def main() -> int:
    """Export to each kind; 1 if the blocks were copied."""
    if os.geteuid() != 0:
        print("not root: no file system can be mounted")
        return 0
    with tempfile.TemporaryDirectory() as name:
        shared = [is_shared(kind, Path(name)) for kind in KINDS]
    return int(not all(shared))


def is_shared(kind: str, folder: Path) -> bool:
    """Make a file system, and export to it, with host code and without."""
    image = folder / kind
    with image.open("wb") as file:
        file.truncate(512 * MIB)
    subprocess.run([f"mkfs.{kind}", "-q", image], check=True, stdout=subprocess.DEVNULL)
    with mounted(kind, folder / "disk", "loop", image) as disk:
        weights = write_weights(disk / "w.safetensors", os.urandom(64 * MIB))
        grown = [export(weights, has_code=flag) for flag in (False, True)]
    print(f"{kind}: {', '.join(f'{nbytes / MIB:.1f} MiB more' for nbytes in grown)}", flush=True)
    return max(grown) < NEW


def export(weights: Path, *, has_code: bool) -> int:
    """Export with weights, and check that they are all there; return the disk space used."""
    root: runtime.Module = runtime.SafetensorsModule(weights)
    if has_code:
        root = packer.CSourceModule("int f(void) { return 1; }", functions={"f": "int(void)"})
        root.import_module(runtime.SafetensorsModule(weights))
    before = used(weights.parent)
    path = packer.export_library(root, weights.with_name(f"{has_code}.so"))
    assert weights.read_bytes().endswith(bytes(runtime.load(path).weights["w"].raw))
    return used(weights.parent) - before


def write_weights(path: Path, data: bytes) -> Path:
    """Write a safetensors file whose header fills up to a multiple of 64 bytes."""
    tensor = {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}
    header = json.dumps({"w": tensor}).encode()
    header += b" " * (-(8 + len(header)) % 64)
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)
    return path


def used(disk: Path) -> int:
    """The bytes that a file system has given away."""
    os.sync()
    found = os.statvfs(disk)
    return (found.f_blocks - found.f_bfree) * found.f_frsize


if __name__ == "__main__":
    sys.exit(main())
