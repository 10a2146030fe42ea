"""A model replaced under load: 4 processes with 8 threads each take it from a pool all the time.

Every version answers its own number. A look-up that begins after a rename must not get an older
version; at the end nothing of the old ones is left. `--count` replacements, 10,000 by default.
"""

from __future__ import annotations

import argparse
import gc
import mmap
import os
import struct
import sys
import tempfile
import threading
import time
from pathlib import Path

import packer
import runtime

NUM_PROCESSES, NUM_THREADS = 4, 8
MARK = 0x11223344
_NEWEST = struct.Struct("<q")


def main() -> int:
    """Replace the model, and ask the processes what they saw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    count = parser.parse_args().count
    with tempfile.TemporaryDirectory() as folder, mmap.mmap(-1, _NEWEST.size) as newest:
        start = time.monotonic()
        contents = _template(Path(folder) / "template.so")
        path = Path(folder) / "model.so"
        _replace(path, contents, 0)
        readers = [_start_reader(folder, newest, count) for _ in range(NUM_PROCESSES)]
        for number in range(1, count + 1):
            _replace(path, contents, number)
            _NEWEST.pack_into(newest, 0, number)
            time.sleep(0.0005)
        statuses = [os.waitstatus_to_exitcode(os.waitpid(reader, 0)[1]) for reader in readers]
        seconds = time.monotonic() - start
    print(f"{count} replacements, {seconds:.0f} s, exit statuses {statuses}")
    return int(any(statuses))


def _template(path: Path) -> tuple[bytes, bytes]:
    """Return the library before and after the number that it answers."""
    code = f"int answer(void) {{ return {MARK}; }}"
    packer.export_library(packer.CSourceModule(code, functions={"answer": "int()"}), path)
    before, after = path.read_bytes().split(MARK.to_bytes(4, "little"))
    return before, after


def _replace(path: Path, contents: tuple[bytes, bytes], number: int) -> None:
    beside = path.with_suffix(".new")
    beside.write_bytes(number.to_bytes(4, "little").join(contents))
    beside.rename(path)


def _start_reader(folder: str, newest: mmap.mmap, count: int) -> int:
    child = os.fork()
    if child:
        return child
    try:
        status = _read(folder, newest, count)
    except BaseException as error:
        print(repr(error), file=sys.stderr)
        status = 2
    os._exit(status)


def _read(folder: str, newest: mmap.mmap, count: int) -> int:
    """Use the pool from many threads until the last version; 0 if all was right."""
    pool, faults, num_calls = runtime.Pool(folder), [], [0]
    pool["model"]["answer"]()
    before = _held(folder)

    def ask() -> None:
        try:
            while (least := _NEWEST.unpack_from(newest)[0]) < count:
                found = pool["model"]["answer"]()
                num_calls[0] += 1
                if found < least:
                    faults.append(f"version {found} after {least}")
        except Exception as error:
            faults.append(repr(error))

    threads = [threading.Thread(target=ask) for _ in range(NUM_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    last = pool["model"]["answer"]()
    gc.collect()
    after = _held(folder)
    found = pool.statistics()
    print(
        f"{num_calls[0]} calls, {found.loads} loads, maps and descriptors {before} then {after},"
        f" heap {_heap_kib()} KiB, {faults[:3]}",
        flush=True,
    )
    return int(bool(faults) or last != count or after != before or found.draining != 0)


def _held(folder: str) -> tuple[int, int]:
    """The number of maps of models and of open descriptors."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    return sum(folder in line for line in maps), len(os.listdir("/proc/self/fd"))


def _heap_kib() -> int:
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))


if __name__ == "__main__":
    sys.exit(main())
