"""Full disks, size limits, disks that break: the old file stays, a clear error, nothing is left.

Every call of the export that writes, and calls that read at an offset, gives EIO once, and ENOSPC
once, by a library in front of the C library. As root file systems are mounted, too: full ones, and
one whose disk takes no more.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from model import GIB, MIB, start_export, version_of, write_weights

HERE = Path(__file__).parent
OLD = b"the old file"


def main() -> int:
    """Run all; return 1 if an export had an unexpected outcome."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        weights = write_weights(folder, 1)
        rows = [faulty_calls(folder, weights, number) for number in (errno.EIO, errno.ENOSPC)]
        rows.append(size_limits(folder, weights))
        if os.geteuid() == 0:
            rows += [full_disks(folder, weights), full_tmpdir(folder, weights)]
            rows.append(broken_disk(folder, weights))
        else:
            print("not root: no file system can be mounted that is full, or breaks")
    return int(not all(rows))


def attempt(output: Path, weights: Path, **options: object) -> tuple[int, str]:
    """Export over an old file; AssertionError if that is neither kept nor replaced as a whole."""
    output.write_bytes(OLD)
    before = sorted(os.listdir(output.parent))
    process = start_export(output, 1, weights, stderr=subprocess.PIPE, text=True, **options)
    _, said = process.communicate()
    assert sorted(os.listdir(output.parent)) == before, said
    if process.returncode == 0:
        assert version_of(output) == 1
    elif not said.startswith("fault in fsync"):  # that of the folder follows the rename
        assert output.read_bytes() == OLD, said
    return process.returncode, said


def expect(title: str, results: list[tuple[int, str]], what: str) -> bool:
    """Print how many exports there were, and whether all refusals are a line with the reason."""
    refused = [said.splitlines()[-1] for code, said in results if code]
    odd = [line for line in refused if not line.startswith(("ExportError: ", "ToolchainError: "))]
    odd += [line for line in refused if what not in line]
    print(f"{title}: {len(results)} exports, {len(refused)} refused, {len(odd)} oddly", *odd[:3],
          sep="\n    " if odd else "", flush=True)  # fmt: skip
    return bool(refused) and not odd


def faulty_calls(folder: Path, weights: Path, number: int) -> bool:
    """Have each call that writes go wrong, from the first to the one that there is none of."""
    shim = folder / "shim.so"
    command = ["gcc", "-shared", "-fPIC", "-o", shim, HERE / "shim.c"]
    subprocess.run(command, check=True)
    results, at = [], 0
    while not results or "fault in" in results[-1][1]:
        at += 1
        faulty = {"LD_PRELOAD": str(shim), "FAULT_AT": str(at), "FAULT_ERRNO": str(number)}
        results.append(attempt(folder / "model.so", weights, env={**os.environ, **faulty}))
    assert results[-1][0] == 0
    return expect(f"{errno.errorcode[number]} in each call", results, os.strerror(number))


def size_limits(folder: Path, weights: Path) -> bool:
    """Limit the size of files (RLIMIT_FSIZE)."""

    def limit(nbytes: int) -> Callable[[], None]:
        return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, nbytes))

    sizes = [64, 4096, 1 << 14, 1 << 16, MIB, 2 * MIB, 100 * MIB, GIB]
    results = [attempt(folder / "model.so", weights, preexec_fn=limit(size)) for size in sizes]
    return expect("RLIMIT_FSIZE", results, "File")


def full_disks(folder: Path, weights: Path) -> bool:
    """Export to file systems with room for ever more of it."""
    results = []
    for size in (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 65536):
        with mounted("tmpfs", folder / "small", f"size={size}k") as small:
            results.append(attempt(small / "model.so", weights))
    assert results[-1][0] == 0
    return expect("full output disk", results, "No space left on device")


def full_tmpdir(folder: Path, weights: Path) -> bool:
    """Fill TMPDIR: nothing is needed there."""
    with mounted("tmpfs", folder / "small", "size=64k") as small:
        with contextlib.suppress(OSError):
            (small / "fill").write_bytes(bytes(MIB))
        code, said = attempt(folder / "model.so", weights, env={**os.environ, "TMPDIR": str(small)})
    print(f"full TMPDIR: exited with {code} {said}", flush=True)
    return code == 0


def broken_disk(folder: Path, weights: Path) -> bool:
    """Export to a disk that accepts writes, and fails when they are flushed."""
    results = []
    for size in (4, 6, 8, 12):
        with mounted("tmpfs", folder / "small", f"size={size}m") as small:
            image = small / "disk"
            with image.open("wb") as file:
                file.truncate(256 * MIB)
            subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", image], check=True)
            with mounted("ext4", folder / "disk", "loop", image) as disk:
                results.append(attempt(disk / "model.so", weights))
    return expect("disk that breaks in the flush", results, "cannot write: ")


@contextlib.contextmanager
def mounted(kind: str, place: Path, options: str, what: Path | None = None) -> Iterator[Path]:
    """Mount a file system for the length of a block."""
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", kind, "-o", options, what or "none", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


if __name__ == "__main__":
    sys.exit(main())
