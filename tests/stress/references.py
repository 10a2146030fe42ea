"""References at size: memory and start of workers, one fetch for many, and killed fetches.

references.py [--workers N] [--fetchers N] [--mib N] [--kills N] [--names N] [--seed N]: prints the
figures, and exits with 1 if a bound does not hold. The bounds are for 8 workers and 1 GiB.
"""

from __future__ import annotations

import argparse
import gc
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))  # the last: it has the sources of runtime

import packer
import runtime
from runtime.reference import resident
from tests.support.reference_workers import (
    answer,
    ask,
    end,
    go,
    pickled_elsewhere,
    pss_of,
    serving,
    start,
)

# Loads the module, reads a byte of each page of the weights, and answers with the times.
TOUCH = """
import json, sys, time
began = time.perf_counter()
data = open(sys.argv[1], "rb").read()
import pickle
module = pickle.loads(data)
module["answer"]()
ready = time.perf_counter() - began
weights = memoryview(module.imported_modules[0].const_vars["w"])
total = sum(weights[::4096])
print(json.dumps([total, ready]), flush=True)
sys.stdin.readline()
"""
_MIB = 1 << 20


def make(folder: Path, mib: int) -> Path:
    """Export a library with weights of this size."""
    root = packer.CSourceModule("long answer(void) { return 42; }", functions="auto")
    weights = random.randbytes(_MIB) * mib
    root.import_module(runtime.ConstLoaderModule({"w": weights}, {}))
    return packer.export_library(root, folder / "model.so")


def check_pickle(path: Path) -> bool:
    """Time the first digest, and the pickles after it."""
    began = time.perf_counter()
    module = runtime.by_reference(runtime.load(path))
    first = time.perf_counter() - began
    times = []
    for _ in range(100):
        began = time.perf_counter()
        data = pickle.dumps(module)
        times.append(time.perf_counter() - began)
    print(f"by_reference {first:.2f} s; a pickle: {len(data)} bytes, {1e3 * min(times):.3f} ms")
    return len(data) <= 1024 and min(times) <= 1e-3


def check_memory(path: Path, folder: Path, count: int) -> bool:
    """Sum the Pss of workers that have read all weights, and compare their start with Python's."""
    (folder / "pickled").write_bytes(pickle.dumps(runtime.by_reference(runtime.load(path))))
    gc.collect()
    workers = [start(folder / "pickled", TOUCH) for _ in range(count)]
    found = [answer(worker) for worker in workers]
    total = sum(pss_of(worker.pid) for worker in workers)
    for worker in workers:
        end(worker)
    assert len({sums for sums, _ in found}) == 1
    alone = min(_ready(folder) for _ in range(9))
    bound = path.stat().st_size + 0.1 * 1024 * _MIB
    print(f"{count} workers at once: Pss {total / _MIB:.0f} MiB, at most {bound / _MIB:.0f}")
    print(f"a worker's module is ready {1e3 * alone:.1f} ms after Python's start (least of 9)")
    return total <= bound and alone <= 0.1


def _ready(folder: Path) -> float:
    worker = start(folder / "pickled", TOUCH)
    ready: float = answer(worker)[1]
    end(worker)
    return ready


def check_fetch(path: Path, folder: Path, count: int) -> bool:
    """Count the downloads of processes that ask for an absent file at once."""
    body = path.read_bytes()
    absent = Path(shutil.copy(path, folder / "absent.so"))
    with serving(body) as server:
        pickled = pickled_elsewhere(absent, folder / "elsewhere", server.url)
        workers = [start(pickled) for _ in range(count)]
        began = time.perf_counter()
        for worker in workers:
            go(worker)
        answers = [answer(worker) for worker in workers]
        took = time.perf_counter() - began
        for worker in workers:
            end(worker)
        print(
            f"{count} processes, {len(body) / _MIB:.0f} MiB: {server.requests} request, "
            f"{server.sent} bytes, {took:.2f} s"
        )
        return [a[0] for a in answers] == [42] * count and server.requests == 1


def check_kills(folder: Path, store: Path, rounds: int) -> bool:
    """Kill a fetch at a random time, and ask another process for the same file."""
    small = folder / "small"
    small.mkdir()
    path = make(small, 8)
    body = path.read_bytes()
    with serving(body) as server:
        pickled = pickled_elsewhere(path, folder / "killed", server.url)
        slowest, partial = 0.0, 0
        for _ in range(rounds):
            shutil.rmtree(store, ignore_errors=True)
            victim = start(pickled)
            go(victim)
            time.sleep(random.uniform(0.0, 0.08))
            os.kill(victim.pid, signal.SIGKILL)
            victim.wait()
            end_pipes(victim)
            files = [p for p in store.glob("*") if p.is_file()]
            partial += sum(p.stat().st_size != len(body) for p in files)
            began = time.perf_counter()
            assert ask(pickled)[0] == 42
            slowest = max(slowest, time.perf_counter() - began)
        print(f"{rounds} killed fetches: {partial} partial files, the next at most {slowest:.2f} s")
    return partial == 0


def end_pipes(worker: subprocess.Popen[str]) -> None:
    """Close the pipes of a process that was killed."""
    for pipe in (worker.stdin, worker.stdout):
        assert pipe is not None
        pipe.close()


def check_names(store: Path, count: int) -> bool:
    """Ask for many files that are nowhere: each is an error, and nothing stays."""
    before = _resident_nbytes()
    began = time.perf_counter()
    errors = 0
    for number in range(count):
        arguments = (f"/nowhere/{number}.so", 10, f"{number:064x}", None, "/nowhere/{sha256}")
        try:
            runtime.interchange.rebuild_by_reference(*arguments)
        except runtime.LibraryLoadError:
            errors += 1
    took = time.perf_counter() - began
    left = sum(path.is_file() for path in store.rglob("*"))
    grown = (_resident_nbytes() - before) / _MIB
    print(f"{count} names: {errors} errors, {left} files left, {grown:.1f} MiB, {took:.1f} s")
    return errors == count and left == 0 and grown < 16


def _resident_nbytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> int:
    """Run all checks."""
    parser = argparse.ArgumentParser(description=__doc__)
    defaults = {"workers": 8, "fetchers": 16, "mib": 1024, "kills": 300, "names": 100_000}
    for name, default in {**defaults, "seed": 23}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    random.seed(given.seed)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        folder, store = Path(name), Path(name) / "store"
        os.environ["DSO_CACHE"] = str(store)
        path = make(folder, given.mib)
        results = [check_pickle(path), check_memory(path, folder, given.workers)]
        resident._kept.clear()
        results.append(check_fetch(path, folder, given.fetchers))
        results.append(check_kills(folder, store, given.kills))
        shutil.rmtree(store, ignore_errors=True)
        results.append(check_names(store, given.names))
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
