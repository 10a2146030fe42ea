"""Load mutants of packed libraries: our error or a tree, and nothing else.

mutants.py [--count N] [--seed N] [--first N] [--processes N] [--keep FOLDER]: mutant number i of
a seed is the same in each run. The bytes of code are never changed. Each mutant that passes the
static check is loaded, walked, read and closed in an expendable process, 16 in each; where one of
them ends otherwise than by a tree or our error, each of them again in its own. A crash in the core,
or in ld.so outside of the code that it calls, is a finding; so are a hang, more than 64 MB, and an
exception that is not ours. Crashes in the library's code are counted by cause.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from subprocess import PIPE

import runtime
from runtime._core import ElfFile
from runtime.error import PackerError
from runtime.module import preorder

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent.parent))  # behind: runtime is the installed one

from crash_report import read_crash  # noqa: E402
from mutant_libraries import make_libraries  # noqa: E402
from mutation import Library, is_called_code  # noqa: E402

SECONDS = 10
MEMORY = 64 << 20
GOOD = ("loaded", "refused by the load")
GROUP = 16  # a fork costs more than a load
BATCH = 5_000
MOST_SHOWN = 50
BASE = 0  # bytes: what a child has before it loads anything

Finding = tuple[int, str, list[str]]  # the mutant's number, the cause, more lines
Result = tuple[Counter[str], list[Finding]]


def visit(path: str) -> None:
    """Load a library, and read all that its modules say and carry."""
    root = runtime.load(path)
    for module in preorder(root):
        for name in module.function_names():
            try:
                function = module[name]
            except PackerError:
                continue
            for attribute in ("signature", "__doc__", "metadata"):
                getattr(function, attribute, None)
        try:
            for tensor in {**module.weights, **getattr(module, "params", {})}.values():
                bytes(tensor.raw)
        except PackerError:
            continue
        repr(module)


def make_mutant(libraries: list[Library], seed: int, index: int) -> tuple[str, bytearray]:
    """The mutant of a number, and the library that it is made of."""
    choose = random.Random(f"{seed} {index}")
    library = choose.choice(libraries)
    return library.name, library.mutate(choose)


class Campaign:
    """Mutants of a seed, one after the other, in one process and its children."""

    def __init__(self, libraries: list[Library], seed: int, folder: Path) -> None:
        self.libraries, self.seed, self.folder = libraries, seed, folder
        self.report, self.results = os.memfd_create("report"), os.memfd_create("results")
        for descriptor in (self.report, self.results):
            fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_APPEND)
        self.outcomes: Counter[str] = Counter()
        self.findings: list[Finding] = []
        self.crash = ctypes.CDLL(str(folder / "crash.so"))

    def run(self, first: int, count: int) -> None:
        """Try mutants number `first` and on."""
        progress = os.open(self.folder / f"progress{first}", os.O_RDWR | os.O_CREAT)
        group: list[int] = []
        for index in range(first, first + count):
            os.pwrite(progress, b"%d" % index, 0)
            if self._is_accepted(index, len(group)):
                group.append(index)
            if len(group) == GROUP:
                self._load_group(group)
                group = []
        self._load_group(group)

    def _is_accepted(self, index: int, place: int) -> bool:
        _, data = make_mutant(self.libraries, self.seed, index)
        path = self._path(place)
        path.write_bytes(data)
        try:
            ElfFile(str(path))
        except PackerError:
            self.outcomes["refused by the static check"] += 1
            return False
        return True

    def _path(self, place: int) -> Path:
        return self.folder / f"mutant{os.getpid()}.{place}.so"

    def _load_group(self, group: list[int]) -> None:
        """Load some in one process; where anything is odd, each again in its own."""
        paths = list(map(self._path, range(len(group))))
        counts = self._fork(paths)[1]
        if counts is not None:
            self.outcomes.update(counts)
            return
        text = self._read_report()
        before = len(self.findings)
        causes = [self._load(index, path) for index, path in zip(group, paths, strict=True)]
        self.outcomes.update(causes)
        if set(causes) <= set(GOOD) and before == len(self.findings):
            self._find_damage(group, paths, self._describe(text))

    def _find_damage(self, group: list[int], paths: list[Path], lines: list[str]) -> None:
        """A library loads, and one after it does not: find the first, by good ones after it."""
        good = sorted((self.folder / "libraries").glob("*.so"))
        for index, path in zip(group, paths, strict=True):
            if self._fork([path, *good, *good])[1] is None:
                lines = self._describe(self._read_report())
                self._find(index, "good libraries do not load after it", lines)
                return
        self._find(group[0], f"odd in a group of {len(group)} only", lines)

    def _fork(self, paths: Sequence[Path]) -> tuple[tuple[int, int], Counter[str] | None]:
        """Load some in a process: its status and peak memory; what came of them if all is well."""
        os.ftruncate(self.results, 0)
        os.ftruncate(self.report, 0)
        child = os.fork()
        if child == 0:
            self._be_child(paths)
        _, status, usage = os.wait4(child, 0)
        peak = (usage.ru_maxrss << 10) - BASE - max((p.stat().st_size for p in paths), default=0)
        results = os.pread(self.results, len(paths) + 1, 0)
        if status != 0 or peak > MEMORY or len(results) != len(paths):
            return (status, peak), None
        counts = Counter(loaded=results.count(b"l"))
        counts["refused by the load"] = results.count(b"r")
        return (status, peak), counts

    def _load(self, index: int, path: Path) -> str:
        (status, peak), counts = self._fork([path])
        if counts is not None:
            return next(iter(+counts))
        if peak > MEMORY:
            return self._find(index, f"{peak >> 20} MB", [])
        if os.WIFSIGNALED(status):
            return self._judge_signal(index, path, os.WTERMSIG(status))
        text = self._read_report()
        return self._find(index, f"exit {os.WEXITSTATUS(status)}", text.splitlines()[-3:])

    def _be_child(self, paths: list[Path]) -> None:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.dup2(self.report, 1)
            os.dup2(self.report, 2)
            self.crash.crash_report_to(self.report)
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            for path in paths:
                os.write(self.results, self._visit(str(path)))
            code = 0
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {str(error)[:200]}".encode())
        finally:
            os._exit(code)

    def _visit(self, path: str) -> bytes:
        try:
            visit(path)
        except PackerError:
            return b"r"
        return b"l"

    def _judge_signal(self, index: int, path: Path, number: int) -> str:
        text = self._read_report()
        if number == signal.SIGALRM:
            return self._find(index, f"no end within {SECONDS} s", [])
        if "\npc " not in text:
            return self._find(index, f"signal {number} without a report", [text[-500:]])
        start = text.index("signal ")
        is_code = is_called_code(path.read_bytes())
        crash = read_crash(text[start:], str(path), is_called_code=is_code)
        if crash.is_finding:
            return self._find(index, crash.cause, crash.places)
        return crash.cause

    def _describe(self, text: str) -> list[str]:
        if "\npc " not in text:
            return text.splitlines()[-3:]
        start = text.index("signal ")
        crash = read_crash(text[start:], str(self.folder), is_called_code=True)
        return [crash.cause, *crash.places]

    def _read_report(self) -> str:
        nbytes = os.fstat(self.report).st_size
        return os.pread(self.report, nbytes, 0).decode(errors="replace")

    def _find(self, index: int, cause: str, lines: list[str]) -> str:
        self.findings.append((index, cause, lines))
        return f"FOUND: {cause}"


def work(folder: Path, seed: int, first: int, count: int) -> None:
    """Try some mutants, and print what came of them as JSON. Its last number is in a file."""
    global BASE
    libraries = [Library(path) for path in sorted((folder / "libraries").glob("*.so"))]
    for library in libraries:  # what the children need is imported here, once
        visit(str(folder / "libraries" / f"{library.name}.so"))
    BASE = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    campaign = Campaign(libraries, seed, folder)
    campaign.run(first, count)
    print(json.dumps([campaign.outcomes, campaign.findings]))


def run_batch(options: argparse.Namespace, folder: Path, first: int, count: int) -> Result:
    """Run a worker; where it dies, the check of one mutant crashed: go on after that."""
    if count == 0:
        return Counter(), []
    task = [str(folder), str(options.seed), str(first), str(count)]
    worker = subprocess.run([sys.executable, __file__, "--work", *task], stdout=PIPE, check=False)
    if worker.returncode == 0:
        outcomes, findings = json.loads(worker.stdout)
        return Counter(outcomes), findings
    if worker.returncode > 0:
        raise SystemExit(f"the worker of mutants {first} and on failed; see above")
    last = int((folder / f"progress{first}").read_text())
    before = run_batch(options, folder, first, last - first)
    after = run_batch(options, folder, last + 1, first + count - last - 1)
    found = (last, f"the static check ended with {worker.returncode}", [])
    outcomes = before[0] + after[0] + Counter([f"FOUND: {found[1]}"])
    return outcomes, [*before[1], found, *after[1]]


def run(options: argparse.Namespace, folder: Path) -> Result:
    """Run all batches, and keep the mutants that found something."""
    outcomes: Counter[str] = Counter()
    findings = []
    end = options.first + options.count
    with ThreadPoolExecutor(options.processes) as threads:
        runs = [
            threads.submit(run_batch, options, folder, first, min(BATCH, end - first))
            for first in range(options.first, end, BATCH)
        ]
        for done in as_completed(runs):
            outcomes += done.result()[0]
            findings += done.result()[1]
    if options.keep:
        keep(options, folder, findings)
    return outcomes, findings


def keep(options: argparse.Namespace, folder: Path, findings: list[Finding]) -> None:
    """Write the mutants that found something."""
    options.keep.mkdir(parents=True, exist_ok=True)
    libraries = [Library(path) for path in sorted((folder / "libraries").glob("*.so"))]
    for index, _, _ in findings:
        name, data = make_mutant(libraries, options.seed, index)
        (options.keep / f"{index}-{name}.so").write_bytes(data)


def main() -> int:
    """Run the campaign; 1 if it found something."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first mutant")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a folder for the mutants that found something")
    options = parser.parse_args()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = Path(name)
        (folder / "libraries").mkdir()
        make_libraries(folder / "libraries")
        command = ["cc", "-O1", "-shared", "-fPIC", HERE / "crash.c", "-o", folder / "crash.so"]
        subprocess.run(command, check=True)
        outcomes, findings = run(options, folder)
    print(f"{options.count:,} of seed {options.seed} in {time.monotonic() - begin:.0f} s")
    for cause, count in outcomes.most_common():
        print(f"{count:>10,}  {cause}")
    for index, cause, lines in findings[:MOST_SHOWN]:
        print(f"mutant {index}: {cause}", *lines, sep="\n    ")
    return int(bool(findings))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(Path(sys.argv[2]), *map(int, sys.argv[3:]))
    else:
        sys.exit(main())
