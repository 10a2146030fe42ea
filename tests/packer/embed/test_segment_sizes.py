"""The segment at any size: around 2 and 4 GiB, limits on files, memory of the export."""

from __future__ import annotations

import os

import pytest

import packer
import runtime

from ...support.process import run_python
from .segments import DATA, Weights, host, works

# The same in a fresh process: exports argv[1] to argv[2].
EXPORT_WEIGHTS = """
import json, os, packer, resource, runtime, sys
class Weights(runtime.Module):
    type_key, property_mask = "test.weights", 1
    def save_to_binary(self, writer):
        writer.write_file(sys.argv[1], 0, os.path.getsize(sys.argv[1]))
def export():
    packer.export_library(Weights(), sys.argv[2])
"""


EDGES = [(1 << bits) + delta for bits in (31, 32) for delta in (-1, 1)]
_READ_ENDS = """
import json, runtime, sys
root = runtime.load(sys.argv[1])
module = root.imported_modules[0] if root.imported_modules else root
data = module.payload
print(json.dumps([len(data), bytes(data[:300]).strip(b"\\0").hex(), bytes(data[-4:]).hex()]))
"""


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "linked"])
@pytest.mark.parametrize("nbytes", EDGES)
def test_sizes_around_two_and_four_gigabytes_load_and_read_back(nbytes, whole, tmp_path) -> None:
    """A sparse input stays sparse, so this costs nothing."""
    source = tmp_path / "weights"
    with source.open("wb") as file:
        file.write(b"head")
        file.seek(nbytes - 4)
        file.write(b"tail")
    root: runtime.Module = Weights(source)
    if not whole:
        root = packer.CSourceModule("int f(void) { return 0; }", functions={"f": "int(void)"})
        root.import_module(Weights(source))
    path = packer.export_library(root, tmp_path / "lib.so")
    assert path.stat().st_blocks * 512 < 1 << 20
    size, head, tail = run_python(_READ_ENDS, str(path))
    assert nbytes <= size < nbytes + 64
    assert (bytes.fromhex(head), bytes.fromhex(tail)) == (b"head", b"tail")


def test_export_reports_bytes_on_request(tmp_path) -> None:
    """progress.bytes: ascending, up to the whole blob."""

    class Progress:
        def __init__(self) -> None:
            self.told: list[tuple[int, int]] = []

        def __call__(self, step: str) -> None:
            pass

        def bytes(self, done: int, total: int) -> None:
            self.told.append((done, total))

    progress = Progress()
    packer.export_library(host(), tmp_path / "lib.so", progress=progress)
    done = [done for done, _ in progress.told]
    assert done == sorted(done)
    assert done[-1] == progress.told[-1][1] > len(DATA)


def test_file_size_limit_is_an_export_error_and_the_old_file_stays(tmp_path) -> None:
    """EFBIG while the bytes are placed."""
    source = tmp_path / "weights"
    source.write_bytes(os.urandom(1 << 20))
    path = packer.export_library(host(), tmp_path / "lib.so")
    code = EXPORT_WEIGHTS + (
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, 1 << 19))\n"
        "try: export()\n"
        "except packer.ExportError as error: print(json.dumps(str(error)))"
    )
    text = run_python(code, str(source), str(path))
    assert text == f"{path}: cannot write: File too large"
    assert works(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lib.so", "weights"]


def test_memory_does_not_grow_with_the_weights(tmp_path) -> None:
    """4 GiB from a file, 128 MiB of them no hole, take as much memory as 1 MiB, within 16 MiB."""
    peaks = []
    for megabytes, nbytes in ((1, 1 << 20), (128, 4 << 30)):
        source = tmp_path / "weights"
        with source.open("wb") as file:
            for _ in range(megabytes):
                file.write(os.urandom(1 << 20))
            file.truncate(nbytes)
        code = f"{EXPORT_WEIGHTS}export()\nprint(resource.getrusage(0).ru_maxrss * 1024)"
        peaks.append(run_python(code, str(source), str(tmp_path / "lib.so")))
    assert peaks[1] - peaks[0] < 16 << 20
