"""Processes of compilers: output, environment, and how each ends."""

from __future__ import annotations

import glob
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from packer.toolchain.process import KEPT_NBYTES, run, run_all

from ..compilers import compile_c, output_of, program, write

pytestmark = pytest.mark.usefixtures("no_compiler_variables")


def test_output_is_bounded(tmp_path):
    """Of 200 MB that are not text, the start and the end are kept."""
    script = "echo first; head -c 200000000 /dev/zero | tr '\\0' '\\377'; echo; echo last: error\n"
    completed = run([program(tmp_path / "cc", script)], cwd=tmp_path)
    assert completed.output.startswith("first\n\N{REPLACEMENT CHARACTER}")
    assert completed.output.endswith("\nlast: error\n")
    left_out = len("first\n") + 200_000_000 + len("\nlast: error\n") - 2 * KEPT_NBYTES
    assert f"... {left_out} bytes left out ..." in completed.output
    assert len(completed.output) < 2 * KEPT_NBYTES + 100


def test_memory_is_bounded(tmp_path):
    """A compiler that prints 200 MB costs us less than 16 MB."""
    compiler = program(tmp_path / "cc", "head -c 200000000 /dev/zero\n")
    completed = run_python(
        f"import resource; run([{compiler!r}], cwd=Path({str(tmp_path)!r}));"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    bare = run_python("import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)")
    assert int(completed) - int(bare) < 16 * 1024


def test_environment_of_a_program(tmp_path, monkeypatch):
    """Programs run in the private folder, in the C locale."""
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("TMPDIR", "/no/such/folder")
    script = 'pwd; echo "$LC_ALL $TMPDIR $KEPT"\n'
    monkeypatch.setenv("KEPT", "kept")
    completed = run([program(tmp_path / "cc", script)], cwd=tmp_path)
    assert completed.output == f"{tmp_path}\nC {tmp_path} kept\n"
    completed = run([program(tmp_path / "cc", script)], cwd=tmp_path, env={"PATH": "/usr/bin:/bin"})
    assert completed.output == f"{tmp_path}\nC {tmp_path} \n"


def test_stdin_is_empty(tmp_path):
    """The compiler does not read the standard input of packer."""
    script = program(tmp_path / "cc", "cat\n")
    code = f"print(run([{script!r}], cwd=Path({str(tmp_path)!r})).output)"
    command = [sys.executable, "-c", PRELUDE + code]
    assert subprocess.run(command, input=b"typed", capture_output=True).stdout == b"\n"


def test_temporary_files_of_gcc_are_private(tmp_path, add_c, monkeypatch):
    """A TMPDIR that is missing, full or not writable does not matter."""
    monkeypatch.setenv("TMPDIR", "/proc/no such folder")
    assert compile_c(add_c).is_file()
    assert sorted(path.name for path in (tmp_path / "private").iterdir()) == ["made.o"]


def test_no_more_are_started_after_a_bad_one(tmp_path):
    """Once one exits with 1 the rest of a long queue is not started."""
    good = program(tmp_path / "good", "exit 0\n")
    bad = program(tmp_path / "bad", "exit 1\n")
    ended = run_all([[good], [bad], *[[good]] * 100], cwd=tmp_path)
    assert [completed.returncode for completed in ended[:2]] == [0, 1]
    assert len(ended) < 102


def test_closed_stdout_is_not_the_end(tmp_path):
    """A program that closes its output and works on is waited for."""
    script = "echo before; exec >&- 2>&-; sleep 0.3; : > made; exit 4\n"
    completed = run([program(tmp_path / "cc", script)], cwd=tmp_path)
    assert completed.returncode == 4
    assert (tmp_path / "made").exists()


def test_child_that_outlives_its_parent_is_ended(tmp_path):
    """A program that leaves a child with its output open neither blocks us nor leaves it."""
    script = "sleep 1000 & echo $! > child; echo done; exit 0\n"
    completed = run([program(tmp_path / "cc", script)], cwd=tmp_path)
    assert completed.output == "done\n"
    wait_until(lambda: has_ended(int((tmp_path / "child").read_text())))


def test_ignored_sigchld(tmp_path):
    """Where the kernel reaps children at once, programs still run to their end."""
    script = program(tmp_path / "cc", "echo hello\n")
    code = (
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN);"
        f"print(run([{script!r}], cwd=Path({str(tmp_path)!r})).output, end='')"
    )
    assert run_python(code) == "hello\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_ends_a_hanging_compiler_and_its_children(tmp_path, add_c, number):
    """Ctrl-C ends the whole group, one process deep and two, of each of several compilers."""
    script = 'sleep 1000 & echo $$ $! > "$0.$$.tmp"; mv "$0.$$.tmp" "$0.$$.pids"; wait\n'
    compiler = program(tmp_path / "cc", script)
    library = write(tmp_path / "add.so", "old")
    other = write(tmp_path / "other.c", "int x;\n")
    code = (
        "from packer.files.output import terminate_as_exception\n"
        "from packer.toolchain.create import create_shared\n"
        "with terminate_as_exception():\n"
        f"    create_shared({str(library)!r}, {[str(add_c), str(other)]!r}, cc={compiler!r})\n"
    )
    process = subprocess.Popen([sys.executable, "-c", PRELUDE + code], stderr=subprocess.PIPE)
    wanted = min(2, os.cpu_count() or 1)
    wait_until(lambda: len(list(tmp_path.glob("cc.*.pids"))) == wanted)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == (-signal.SIGINT if number == signal.SIGINT else 143)
    pids = [int(pid) for file in tmp_path.glob("cc.*.pids") for pid in file.read_text().split()]
    assert len(pids) == 2 * wanted
    wait_until(lambda: all(has_ended(pid) for pid in pids))
    assert library.read_text() == "old"
    assert list(tmp_path.glob(".packer-*")) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_killed_exporter_takes_its_compilers_along(tmp_path, add_c, number):
    """Nothing can be caught then, and yet no process of the group is left."""
    script = 'sleep 1000 & echo $$ $! $PPID > "$0.tmp"; mv "$0.tmp" "$0.pids"; wait\n'
    compiler = program(tmp_path / "cc", script)
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
        "from packer.toolchain.create import create_shared\n"
        f"create_shared({str(tmp_path / 'add.so')!r}, {str(add_c)!r}, cc={compiler!r})\n"
    )
    process = subprocess.Popen([sys.executable, "-c", PRELUDE + code])
    wait_until((tmp_path / "cc.pids").exists)
    pids = [int(pid) for pid in (tmp_path / "cc.pids").read_text().split()]
    assert pids[2] == process.pid
    guards = [pid for pid in children_of(process.pid) if pid not in pids]
    assert len(guards) == 1
    process.send_signal(number)
    assert process.wait() == -number
    wait_until(lambda: all(has_ended(pid) for pid in pids + guards))


def test_thread_that_ends_leaves_its_compiler(tmp_path):
    """A program belongs to the process: the end of another thread is not its end."""
    script = program(tmp_path / "cc", "sleep 0.3; echo done\n")
    ended = []
    threads = [threading.Thread(target=lambda: ended.append(run([script], cwd=tmp_path)))]
    threads += [threading.Thread(target=lambda: run(["/bin/true"], cwd=tmp_path))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [completed.output for completed in ended] == ["done\n"]


def children_of(pid: int) -> list[int]:
    """The processes that a process started."""
    return [
        int(stat.split("/")[2])
        for stat in glob.glob("/proc/[0-9]*/stat")
        if (fields := read_if_there(stat)) and int(fields.rpartition(")")[2].split()[1]) == pid
    ]


def read_if_there(path: str) -> str:
    """A file's text; "" for a process that has ended meanwhile."""
    try:
        return Path(path).read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


STARTING = """
import os, signal, subprocess, sys
from pathlib import Path
from packer.files.output import terminate_as_exception
from packer.toolchain.process import run
class Popen(subprocess.Popen):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        print(self.pid, flush=True)
        os.kill(os.getpid(), int(sys.argv[1]))
subprocess.Popen = Popen
with terminate_as_exception():
    run(["/bin/sleep", "60"], cwd=Path.cwd())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_that_arrives_while_a_program_starts_ends_it(tmp_path, number) -> None:
    """The signal waits until the process is registered; then it acts as always."""
    command = [sys.executable, "-c", STARTING, str(int(number))]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    expected = -signal.SIGINT if number == signal.SIGINT else 128 + number
    assert done.returncode == expected, done.stderr
    guard, sleeper = map(int, done.stdout.split())
    assert has_ended(guard) and has_ended(sleeper)


PRELUDE = "from pathlib import Path\nfrom packer.toolchain.process import run\n"


def run_python(code: str) -> str:
    """Run some lines in a fresh Python; return their output."""
    return output_of(sys.executable, "-c", PRELUDE + code)


def has_ended(pid: int) -> bool:
    """Return True if a process has ended, reaped or not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"


def wait_until(condition) -> None:
    """Wait for another process."""
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("waited for 30 s")
