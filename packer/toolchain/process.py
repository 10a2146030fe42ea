"""Run programs in a separate process group, with bounded output, and leave none running.

No shell parses a command. A shell guards the group: it reads a pipe whose other end only this
process has open, and kills the group when the pipe ends. So a compiler that hangs also ends if the
exporter is killed (SIGKILL). PR_SET_PDEATHSIG would end the driver only, not the programs that it
started, and at the end of the thread that started it.
"""

from __future__ import annotations

import collections
import contextlib
import os
import re
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from runtime.error import ToolchainError

from .build import current_build
from .reproducible import environment

# The bytes that are kept of the start and of the end of a program's output.
KEPT_NBYTES = 64 * 1024
# The interval of checks whether a program has ended while another one has its pipe open.
_TICK_MS = 100
# The guard of a group: the kernel closes the pipe however this process ends; 0 is its group.
GUARD = ("/bin/sh", "-c", "read -r _; kill -9 0")
# ECMA-48, control sequences: colours, when the user's flags ask for them unconditionally.
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Completed(NamedTuple):
    """One program that has ended."""

    command: tuple[str, ...]  # the program and its arguments
    returncode: int  # its exit status; negative is the signal that ended it
    output: str  # its stdout and stderr; of a long text the start and the end


def run(
    command: Sequence[str],
    *,
    cwd: Path,
    private: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Completed:
    """Run one program to its end, as `run_all` does."""
    return run_all([command], cwd=cwd, private=private, env=env)[0]


def run_all(
    commands: Iterable[Sequence[str]],
    *,
    cwd: Path,
    private: Path | None = None,
    env: Mapping[str, str] | None = None,
    ended: Callable[[int, Completed], None] | None = None,
) -> list[Completed]:
    """Run several programs, as many at a time as the build in effect says.

    They start in `cwd`, and have their temporary files in `private`, by default the same. LC_ALL,
    TMPDIR and PWD are set in their environment. `ended` is called with the number and the outcome
    of each program that has ended. The result is in the order of `commands`. After the first
    failure no more are started, so the list may be shorter; the first failed program in it is the
    same in every run. Raises ToolchainError if a program cannot be started.

    All programs run in one loop of the calling thread, so that any exception here, also
    KeyboardInterrupt, ends their whole process group before it propagates.
    """
    variables = environment(os.environ if env is None else env)
    # GCC takes the name of its folder from PWD, which may have a symbolic link in it.
    variables |= {"TMPDIR": str(private or cwd), "PWD": str(cwd)}
    at_a_time = current_build().jobs
    waiting = collections.deque(commands)
    started: list[_Process] = []
    running: list[_Process] = []
    group: _Group | None = None
    try:
        while waiting or running:
            while waiting and len(running) < at_a_time:
                with _signals_deferred():  # a signal within Popen would lose the new program
                    group = group or _Group()
                    started.append(_Process(tuple(waiting.popleft()), cwd, variables, group.number))
                running.append(started[-1])
            _read_ready(running)
            for process in [process for process in running if process.has_ended()]:
                running.remove(process)
                if process.end() != 0:
                    waiting.clear()
                if ended is not None:
                    ended(started.index(process), process.completed())
    finally:
        if group is not None:
            group.end()
        for process in started:
            process.end()
    return [process.completed() for process in started]


@contextlib.contextmanager
def _signals_deferred() -> Iterator[None]:
    """Defer signals whose handlers may raise to the end of a block."""
    arrived: list[int] = []
    handlers = {}
    if threading.current_thread() is threading.main_thread():  # only there handlers run
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        handlers = {n: handler for n in numbers if callable(handler := signal.getsignal(n))}
    try:
        for number in handlers:
            signal.signal(number, lambda n, _frame: arrived.append(n))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for late in arrived:
            signal.raise_signal(late)


def _read_ready(running: list[_Process]) -> None:
    by_pipe = {process.pipe: process for process in running}
    poll = select.poll()
    for pipe in by_pipe:
        poll.register(pipe, select.POLLIN)
    for pipe, _ in poll.poll(_TICK_MS):
        by_pipe[pipe].read()


class _Group:
    """A process group, which ends with this process at the latest.

    Its number is the guard's process id, which the kernel does not reuse before `end` reaps it.
    """

    def __init__(self) -> None:
        null = subprocess.DEVNULL
        try:
            self._guard = subprocess.Popen(
                GUARD, cwd="/", stdin=subprocess.PIPE, stdout=null, stderr=null, process_group=0
            )
        except OSError as error:
            message = f"{GUARD[0]}: cannot start: {error.strerror or error}"
            raise ToolchainError(message, command=GUARD) from error
        self.number = self._guard.pid

    def end(self) -> None:
        """Kill every process of the group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.number, signal.SIGKILL)
        self._guard.wait()
        assert self._guard.stdin is not None
        self._guard.stdin.close()


class _Process:
    """A running program, and its output."""

    def __init__(
        self, command: tuple[str, ...], cwd: Path, env: Mapping[str, str], group: int
    ) -> None:
        self.command = command
        self._output = _Output()
        self._pipe_ended = False
        try:
            self._popen = subprocess.Popen(
                command,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                process_group=group,
            )
        except (OSError, ValueError) as error:  # ValueError: a NUL in an argument
            reason = getattr(error, "strerror", None) or error
            raise ToolchainError(
                f"{command[0]}: cannot start: {reason}", command=command
            ) from error
        assert self._popen.stdout is not None
        self.pipe = self._popen.stdout.fileno()
        os.set_blocking(self.pipe, False)

    def read(self) -> None:
        """Read all that the pipe contains now: a Linux pipe has 64 KiB."""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self.pipe, 64 * 1024)
            self._output.add(data)
            self._pipe_ended = not data

    def has_ended(self) -> bool:
        """Return True if the program has ended, even if its children have the pipe open.

        WNOWAIT keeps the status for `end`.
        """
        options = os.WEXITED | os.WNOWAIT | (0 if self._pipe_ended else os.WNOHANG)
        try:
            return os.waitid(os.P_PID, self._popen.pid, options) is not None
        except ChildProcessError:  # SIGCHLD is ignored in this process: the kernel reaps
            return True

    def end(self) -> int:
        """Kill the program if it runs, wait for it, and return the exit status."""
        if self._popen.returncode is None:
            self._popen.kill()  # it may have left the group
            self._popen.wait()
            self.read()
            assert self._popen.stdout is not None
            self._popen.stdout.close()
        return self._popen.returncode

    def completed(self) -> Completed:
        return Completed(self.command, self._popen.returncode, self._output.text())


class _Output:
    """The start and the end of an output of any length."""

    def __init__(self) -> None:
        self._start = bytearray()
        self._end = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        room = KEPT_NBYTES - len(self._start)
        self._start += data[:room]
        self._end += data[room:]
        surplus = max(0, len(self._end) - KEPT_NBYTES)
        self._left_out += surplus
        del self._end[:surplus]

    def text(self) -> str:
        gap = b"\n... %d bytes left out ...\n" % self._left_out if self._left_out else b""
        return _COLOUR.sub("", (self._start + gap + self._end).decode(errors="replace"))
