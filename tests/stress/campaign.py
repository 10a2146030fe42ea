"""Load mutants in expendable processes, and report how each of them ended."""

from __future__ import annotations

import ctypes
import fcntl
import os
import random
import resource
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from crash_report import Code, read_crash
from mutation import Library, called_addresses, is_called_code, thread_relocations

import runtime
from runtime._core import ElfFile
from runtime.error import PackerError
from runtime.module import preorder

SECONDS = 10
MEMORY = 64 << 20
GROUP = 64  # a fork costs more than a load
DAMAGE = "another does not load after it in the same process"  # shown: its code wrote elsewhere
OUTCOMES = {b"l": "loaded", b"r": "refused by the load"}

Finding = tuple[int, str, list[str]]  # the mutant's number, the cause, more lines


class Mutant(NamedTuple):
    """One that the static check accepts."""

    number: int
    path: Path


class End(NamedTuple):
    """How a process ended that loaded mutants."""

    status: int
    peak: int  # bytes, without the file's and those used before
    results: bytes  # a letter for each that was loaded or refused

    @property
    def is_good(self) -> bool:
        """Return True if all of them were good."""
        return self.status == 0


def visit(path: str) -> None:
    """Load a library, and read all that its modules say and carry."""
    root = runtime.load(path)
    for module in preorder(root):
        for name in module.function_names():
            try:
                function = module[name]
            except PackerError:
                continue
            for attribute in ("signature", "__doc__"):  # metadata is a call of its code
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
        self.base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        self.crash = ctypes.CDLL(str(folder / "crash.so"))

    def run(self, first: int, count: int) -> None:
        """Try mutants number `first` and on."""
        progress = os.open(self.folder / f"progress{first}", os.O_RDWR | os.O_CREAT)
        group: list[Mutant] = []
        for index in range(first, first + count):
            os.pwrite(progress, b"%d" % index, 0)
            mutant = Mutant(index, self.folder / f"mutant{os.getpid()}.{len(group)}.so")
            if self._is_accepted(mutant):
                group.append(mutant)
            if len(group) == GROUP:
                self._load_group(group)
                group = []
        self._load_group(group)

    def _is_accepted(self, mutant: Mutant) -> bool:
        mutant.path.write_bytes(make_mutant(self.libraries, self.seed, mutant.number)[1])
        try:
            ElfFile(str(mutant.path))
        except PackerError:
            self.outcomes["refused by the static check"] += 1
            return False
        return True

    def _load_group(self, group: list[Mutant]) -> None:
        """Load some in one process; one that ends it is loaded again in its own."""
        while group:
            end = self._fork([mutant.path for mutant in group])
            self._count(end.results)
            if end.peak > MEMORY:
                self._load_each(group)
                return
            if end.is_good:
                return
            done = len(end.results)
            lines = self._describe(self._read_report())
            if not self._load(group[done]):
                self._find_damage(group[: done + 1], lines)
            group = group[done + 1 :]

    def _load_each(self, group: list[Mutant]) -> None:
        before = len(self.findings)
        for mutant in group:
            self._load(mutant)
        if before == len(self.findings):
            self._find(group[0].number, f"{len(group)} took more memory than any of them", [])

    def _load(self, mutant: Mutant) -> bool:
        """Load one in a separate process, and count the outcome; return False if it is good."""
        end = self._fork([mutant.path])
        self._count(end.results)
        if end.is_good and end.peak <= MEMORY:
            return False
        cause = self._judge(mutant, end)
        self.outcomes[cause] += 1
        return True

    def _find_damage(self, group: list[Mutant], lines: list[str]) -> None:
        """All load alone, but the last does not after one of the others: find that."""
        for start in range(len(group) - 2, -1, -1):
            if not self._fork([mutant.path for mutant in group[start:]]).is_good:
                lines = self._describe(self._read_report())
                self.findings.append((group[start].number, DAMAGE, lines))
                return
        self.findings.append((group[0].number, f"one of {len(group)}: {DAMAGE}", lines))

    def _fork(self, paths: Sequence[Path]) -> End:
        """Load some in a process, one after the other."""
        os.ftruncate(self.results, 0)
        os.ftruncate(self.report, 0)
        child = os.fork()
        if child == 0:
            self._be_child(paths)
        _, status, usage = os.wait4(child, 0)
        peak = (usage.ru_maxrss << 10) - self.base - max(path.stat().st_size for path in paths)
        return End(status, peak, os.pread(self.results, len(paths), 0))

    def _count(self, results: bytes) -> None:
        for letter, name in OUTCOMES.items():
            self.outcomes[name] += results.count(letter)

    def _judge(self, mutant: Mutant, end: End) -> str:
        if end.peak > MEMORY:
            return self._find(mutant.number, f"{end.peak >> 20} MB", [])
        if os.WIFSIGNALED(end.status):
            return self._judge_signal(mutant, os.WTERMSIG(end.status))
        text = self._read_report()
        cause = f"exit {os.WEXITSTATUS(end.status)}"
        if "_dl_update_slotinfo" in text:  # of __tls_get_addr, with the code's argument
            return f"{cause} of __tls_get_addr, called by the library's code"
        return self._find(mutant.number, cause, text.splitlines()[-3:])

    def _be_child(self, paths: Sequence[Path]) -> None:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.dup2(self.report, 1)
            os.dup2(self.report, 2)
            self.crash.crash_report_to(self.report)
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
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

    def _judge_signal(self, mutant: Mutant, number: int) -> str:
        text = self._read_report()
        if "\npc " not in text:
            return self._find(mutant.number, f"signal {number} without a report", [text[-500:]])
        start = text.index("signal ")
        crash = read_crash(text[start:], str(mutant.path), self._compare_code(mutant))
        if crash.is_finding:
            return self._find(mutant.number, crash.cause, crash.places)
        return crash.cause

    def _compare_code(self, mutant: Mutant) -> Code:
        data = mutant.path.read_bytes()
        if not is_called_code(data):
            return "elsewhere"
        name, _ = make_mutant(self.libraries, self.seed, mutant.number)
        good = next(library for library in self.libraries if library.name == name)
        same = all(read(data) == read(good.data) for read in (called_addresses, thread_relocations))
        return "as before" if same else "other"

    def _describe(self, text: str) -> list[str]:
        if "\npc " not in text:
            return text.splitlines()[-3:]
        start = text.index("signal ")
        crash = read_crash(text[start:], str(self.folder), "as before")
        return [crash.cause, *crash.places]

    def _read_report(self) -> str:
        nbytes = os.fstat(self.report).st_size
        return os.pread(self.report, nbytes, 0).decode(errors="replace")

    def _find(self, index: int, cause: str, lines: list[str]) -> str:
        self.findings.append((index, cause, lines))
        return f"FOUND: {cause}"
