"""Feed the readers of this project with inputs that are nearly right.

    python tests/fuzz/inputs.py --seconds 600 [--seed 1] [--only blob-tvm] [--examples 1000]
    python tests/fuzz/inputs.py --rounds 2

Each round a child process feeds one target with so many inputs, which Hypothesis draws and, after a
failure, shrinks. Findings are printed, and their inputs saved in build/fuzz/. Exit status 1
if there are any.
"""

from __future__ import annotations

import argparse
import hashlib
import mmap
import os
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parents[2]
if __name__ == "__main__":  # after the installed packages
    sys.path[:] = [*(p for p in sys.path if Path(p or ".").resolve() != ROOT), str(ROOT)]

import hypothesis  # noqa: E402
from hypothesis.errors import HypothesisWarning  # noqa: E402

from tests.fuzz.judge import FoundError, Target, judge  # noqa: E402
from tests.fuzz.targets import make_targets  # noqa: E402

OUTPUT = ROOT / "build" / "fuzz"
REFUSED = "a valid input is refused, or there is none"
HANG_SECONDS, MOST_INPUT = 60, 1 << 22
_COUNTS = struct.Struct("<QQQ")  # accepted, refused, the bytes of the input under way


class Round:
    """The work of one child, which reports its progress in shared memory."""

    def __init__(self, target: Target, seed: int, examples: int) -> None:
        self.target, self.seed, self.examples = target, seed, examples
        self._shared = mmap.mmap(-1, _COUNTS.size + MOST_INPUT)
        self.finding = ""

    @property
    def counts(self) -> tuple[int, int]:
        """Inputs accepted, and refused."""
        accepted, refused, _ = _COUNTS.unpack_from(self._shared)
        return accepted, refused

    @property
    def data(self) -> bytes:
        """The last input: that of a finding is the shrunk one."""
        nbytes = _COUNTS.unpack_from(self._shared)[2]
        return self._shared[_COUNTS.size : _COUNTS.size + nbytes]

    def run(self) -> None:
        """Run it to its end, however it ends."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            self._work(reader, writer)
        os.close(writer)
        status = _wait(child)
        with open(reader, "rb") as pipe:
            self.finding = pipe.read().decode()
        if status != 0:
            self.finding = _ending(status)

    def _work(self, reader: int, writer: int) -> NoReturn:
        """The child, which never returns to its parent's frames."""
        try:
            os.close(reader)
            warnings.simplefilter("ignore", HypothesisWarning)  # a large input, which is saved
            os.write(writer, self._feed().encode())
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)

    def _feed(self) -> str:
        @hypothesis.seed(self.seed)
        @hypothesis.settings(
            max_examples=self.examples,
            database=None,
            deadline=None,
            report_multiple_bugs=False,
            suppress_health_check=list(hypothesis.HealthCheck),
            verbosity=hypothesis.Verbosity.quiet,
        )
        @hypothesis.given(self.target.inputs)
        def feed(data: bytes) -> None:
            accepted, refused = self.counts
            data = data[:MOST_INPUT]
            self._shared[_COUNTS.size : _COUNTS.size + len(data)] = data
            _COUNTS.pack_into(self._shared, 0, accepted, refused, len(data))
            is_accepted = judge(self.target, data)
            counts = (accepted + is_accepted, refused + (not is_accepted))
            _COUNTS.pack_into(self._shared, 0, *counts, len(data))

        try:
            feed()
        except FoundError as error:
            return str(error)
        return ""


def _wait(child: int) -> int:
    """Return the exit status as waitpid gives it; a child that hangs is ended."""
    end = time.monotonic() + HANG_SECONDS
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        time.sleep(0.005)
    os.kill(child, signal.SIGALRM)
    return os.waitpid(child, 0)[1]


def _ending(status: int) -> str:
    if not os.WIFSIGNALED(status):
        return f"the process exits with {os.waitstatus_to_exitcode(status)}"
    number = os.WTERMSIG(status)
    return "hangs" if number == signal.SIGALRM else f"crash: {signal.Signals(number).name}"


def run(targets: Sequence[Target], rounds: Iterable[object], seed: int, examples: int) -> int:
    """Feed the targets in turn for so many rounds; return the number of findings."""
    totals: dict[str, Counter[str]] = {target.name: Counter() for target in targets}
    found = {(target.name, REFUSED) for target in targets if not accepts_seeds(target)}
    for name, finding in found:
        print(f"FOUND {name}: {finding}", flush=True)
    number = seed
    for _ in rounds:
        for target in targets:
            number += 1
            work = Round(target, number, examples)
            work.run()
            accepted, refused = work.counts
            totals[target.name] += Counter(accepted=accepted, refused=refused)
            if work.finding and (target.name, work.finding) not in found:
                found.add((target.name, work.finding))
                path = save(target.name, work.data)
                print(f"FOUND {target.name}: {work.finding} (seed {number}; {path})", flush=True)
    for name, counts in totals.items():
        print(f"{name:12} {counts['accepted']:9,} accepted {counts['refused']:9,} refused")
    print(f"{len(found)} findings, seeds {seed + 1} to {number}")
    return len(found)


def until(seconds: float) -> Iterator[float]:
    """Yield until the time is over."""
    end = time.monotonic() + seconds
    while (now := time.monotonic()) < end:
        yield now


def accepts_seeds(target: Target) -> bool:
    """Return True if the valid inputs are accepted: edits of refused inputs would test nothing."""
    return len(target.valid) > 0 and all(judge(target, data) for data in target.valid)


def save(name: str, data: bytes) -> Path:
    """Keep an input."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    path = OUTPUT / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    return path


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rounds", type=int, help="a fixed number instead of the time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--only", action="append", metavar="TARGET")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        targets = make_targets(Path(folder))
        chosen = [t for t in targets if arguments.only is None or t.name in arguments.only]
        if not chosen:
            parser.error(f"known targets: {', '.join(target.name for target in targets)}")
        fixed, seconds = arguments.rounds, arguments.seconds
        rounds = until(seconds) if fixed is None else range(fixed)
        found = run(chosen, rounds, arguments.seed, arguments.examples)
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
