"""The thread pool: tasks, barriers, errors, threads, forks and ends of processes."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

TIMEOUT = 60


class Counts(ctypes.Structure):
    """The counts of the tasks of launch_probe.c."""

    _fields_ = (("calls", ctypes.c_int32 * 64), ("mistakes", ctypes.c_int32))


Task = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


@pytest.fixture(scope="session")
def pool(launch_library: Path) -> ctypes.CDLL:
    """The library in this process, with three threads whatever the machine has."""
    os.environ["TVM_NUM_THREADS"] = "3"
    library = ctypes.CDLL(str(launch_library))
    library.take_error.restype = ctypes.c_char_p
    assert library.threads() == 3
    del os.environ["TVM_NUM_THREADS"]
    return library


def launch(pool: ctypes.CDLL, task: str, num_task: int) -> Counts:
    """Launch a task that counts, and expect no mistakes."""
    counts = Counts()
    assert pool.launch(getattr(pool, task), ctypes.byref(counts), num_task) == 0, pool.take_error()
    assert counts.mistakes == 0
    return counts


def run(path: Path, code: str, **environment: str) -> str:
    """Run code in a fresh process, where `pool` is the library and `Task` a task's type."""
    start = (
        "import ctypes, os, sys, threading, time\n"
        "pool = ctypes.CDLL(sys.argv[1])\n"
        "pool.take_error.restype = ctypes.c_char_p\n"
        "Task = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)\n"
        "tasks = lambda: len(os.listdir('/proc/self/task'))\n"
    )
    kept = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", start + code, str(path)],
        env=kept | environment, capture_output=True, text=True, timeout=TIMEOUT, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.mark.parametrize("num_task", [1, 2, 3, 4, 17, 64])
def test_each_task_runs_once(pool: ctypes.CDLL, num_task: int) -> None:
    """A launch runs the requested number of tasks, even more than threads."""
    for _ in range(50):
        counts = launch(pool, "count", num_task)
        assert list(counts.calls) == [1] * num_task + [0] * (64 - num_task)


def test_zero_is_one_task_per_thread(pool: ctypes.CDLL) -> None:
    """0 stands for all threads."""
    assert list(launch(pool, "count", 0).calls)[:4] == [1, 1, 1, 0]


def test_many_more_tasks_than_threads(pool: ctypes.CDLL) -> None:
    """A number of tasks costs no threads."""
    assert sum(launch(pool, "count", 100_000).calls) == 100_000


@pytest.mark.parametrize("num_task", [0, 1, 2, 3])
def test_barrier_waits_for_all(pool: ctypes.CDLL, num_task: int) -> None:
    """Between two barriers every thread sees the writes of all."""
    launch(pool, "step", num_task)


def test_barrier_of_more_tasks_than_threads_is_refused(pool: ctypes.CDLL) -> None:
    """A barrier would wait for ever for tasks without a thread."""
    assert pool.launch(pool.step, ctypes.byref(Counts()), 4) == -1
    assert pool.take_error() == (
        b"RuntimeError: barrier: 4 tasks on 3 threads cannot all wait at once, expected at most as "
        b"many tasks as threads; launch 0 tasks for one per thread, or set TVM_NUM_THREADS"
    )


@pytest.mark.parametrize("task", ["miss", "miss_silently"])
def test_missed_barrier_is_an_error(pool: ctypes.CDLL, task: str) -> None:
    """A task that waits for a finished task fails, and so does the launch."""
    for _ in range(20):
        assert pool.launch(getattr(pool, task), None, 3) == -1
        assert pool.take_error().endswith(
            b"waits for a task that ended without reaching the barrier"
        )
    launch(pool, "step", 3)


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_error_of_a_task_is_the_launch_s(pool: ctypes.CDLL, failing: int) -> None:
    """Kind and message arrive from any thread; tasks that wait for the failed one are released."""
    for _ in range(20):
        assert pool.launch(pool.fail, ctypes.byref(ctypes.c_int(failing)), 3) == -1
        assert pool.take_error() == b"KeyError: of one task"
        assert pool.take_error() == b""


def test_task_that_fails_without_raising(pool: ctypes.CDLL) -> None:
    """The launch names the task, and its return value."""
    assert pool.launch(pool.fail_silently, None, 1) == -1
    expected = b"RuntimeError: parallel task 0 returned 7 without raising"
    assert pool.take_error() == expected


def test_tasks_after_a_failure_are_skipped(pool: ctypes.CDLL) -> None:
    """Of many tasks few begin once one has failed."""
    begun = []

    @Task
    def task(task_id: int, env: int, data: int) -> int:
        begun.append(task_id)
        pool.raise_error(b"ValueError", b"enough")
        return -1

    assert pool.launch(task, None, 1000) == -1
    assert pool.take_error() == b"ValueError: enough"
    assert len(begun) <= 3


def test_negative_number_of_tasks_is_refused(pool: ctypes.CDLL) -> None:
    """No task runs."""
    assert pool.launch(pool.count, None, -1) == -1
    expected = (
        b"ValueError: parallel launch: expected at least 0 tasks (0: one per thread), found -1"
    )
    assert pool.take_error() == expected


def test_nested_launches(pool: ctypes.CDLL) -> None:
    """0 is one task inside a launch; an explicit number gets its threads, barriers included."""
    for _ in range(10):
        assert list(launch(pool, "nest", 3).calls)[:4] == [1, 1, 1, 0]


def test_launches_from_several_threads(pool: ctypes.CDLL) -> None:
    """Each launch has separate tasks, barriers and errors."""
    wrong: list[object] = []

    def work(failing: int) -> None:
        for _ in range(10):
            counts = Counts()
            if pool.launch(pool.step, ctypes.byref(counts), 3) or counts.mistakes:
                wrong.append("step")
            status = pool.launch(pool.fail, ctypes.byref(ctypes.c_int(failing)), 3)
            if status != -1 or pool.take_error() != b"KeyError: of one task":
                wrong.append("fail")

    threads = [threading.Thread(target=work, args=(i % 3,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []


@pytest.mark.parametrize(
    ("environment", "threads"),
    [
        ({"TVM_NUM_THREADS": "5"}, 5),
        ({"OMP_NUM_THREADS": "4,2"}, 4),
        ({"TVM_NUM_THREADS": "2", "OMP_NUM_THREADS": "7"}, 2),
        ({"TVM_NUM_THREADS": "many", "OMP_NUM_THREADS": "7"}, 7),
        ({"TVM_NUM_THREADS": "0", "OMP_NUM_THREADS": "-1"}, None),
        ({"TVM_NUM_THREADS": "3x"}, None),
        ({"TVM_NUM_THREADS": "99999999999999999999"}, 256),
        ({}, None),
    ],
)
def test_size(launch_library: Path, environment: dict[str, str], threads: int | None) -> None:
    """The usual variables set the number, else the processors that the process may use."""
    expected = threads or len(os.sched_getaffinity(0))
    assert run(launch_library, "print(pool.threads())", **environment) == str(expected)


def test_affinity_counts(launch_library: Path) -> None:
    """A process bound to one processor launches one task, and makes no thread."""
    code = """
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
print(pool.launch_counts(0), tasks())
"""
    assert run(launch_library, code) == "1 1"


def test_no_thread_before_the_first_launch_that_needs_one(launch_library: Path) -> None:
    """Neither loading nor a single task starts any; a launch makes as many as it lacks."""
    code = """
counts = [tasks()]
for n in 1, 2, 0, 0:
    pool.launch_counts(n)
    counts.append(tasks())
print(counts)
"""
    assert run(launch_library, code, TVM_NUM_THREADS="4") == "[1, 1, 2, 4, 4]"


def test_workers_sleep(launch_library: Path) -> None:
    """Soon after a launch no worker runs."""
    code = """
pool.launch_counts(0)
time.sleep(0.1)
before = time.process_time()
time.sleep(0.3)
print(time.process_time() - before < 0.1)
"""
    assert run(launch_library, code, TVM_NUM_THREADS="8") == "True"


def test_workers_leave_signals_alone(launch_library: Path) -> None:
    """Signals are for the threads that the program made."""
    code = """
pool.launch_counts(0)
masks = [line.split()[1] for task in os.listdir('/proc/self/task')
         for line in open(f'/proc/self/task/{task}/status') if line.startswith('SigBlk')]
print(sorted(int(mask, 16) != 0 for mask in masks))
"""
    assert run(launch_library, code, TVM_NUM_THREADS="3") == "[False, True, True]"


def test_no_more_threads_from_the_system(launch_library: Path) -> None:
    """Launches then run on fewer threads, or on none but their own."""
    code = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (1 << 20, resource.RLIM_INFINITY))
print(pool.launch_counts(0), pool.launch_counts(8), tasks())
"""
    assert run(launch_library, code, TVM_NUM_THREADS="4") == "1 8 1"


FORK = """
def child(work):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if work() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


def test_fork(launch_library: Path) -> None:
    """A child makes its own threads, again and again; the parent keeps its own."""
    code = f"""{FORK}
def work(): return pool.launch_counts(0) == 3 and tasks() == 3
assert work()
print([child(lambda: work() and child(work) == 0 and work()) for _ in range(5)], work())
"""
    assert run(launch_library, code, TVM_NUM_THREADS="3") == "[0, 0, 0, 0, 0] True"


def test_fork_while_another_thread_launches(launch_library: Path) -> None:
    """A fork works at any moment of the pool's work."""
    code = f"""{FORK}
over = False
def launch():
    while not over: pool.launch_counts(0)
threads = [threading.Thread(target=launch) for _ in range(2)]
for thread in threads: thread.start()
print({{child(lambda: pool.launch_counts(0) == 3) for _ in range(40)}})
over = True
for thread in threads: thread.join()
"""
    assert run(launch_library, code, TVM_NUM_THREADS="3") == "{0}"


@pytest.mark.parametrize("forking", [0, 1])
def test_fork_inside_a_task(launch_library: Path, forking: int) -> None:
    """The child of the launcher reports the missing workers; that of a worker can continue too."""
    code = f"""
import signal
signal.alarm(30)
barrier, parent, pids = threading.Barrier(2), os.getpid(), []
@Task
def task(task_id, env, data):
    if os.getpid() == parent: barrier.wait()
    if task_id == {forking} and os.getpid() == parent:
        pids.append(os.fork())
        if pids[0] == 0 and {forking}: os._exit(pool.launch_counts(2) == 2)
    return 0
status = pool.launch(task, None, 2)
if pids[0] == 0:
    lost = pool.take_error().startswith(b'RuntimeError: parallel launch: a task forked')
    os._exit(status == 0 or (lost and pool.launch_counts(0) == 2))
print(status, os.waitstatus_to_exitcode(os.waitpid(pids[0], 0)[1]))
"""
    assert run(launch_library, code, TVM_NUM_THREADS="2") == "0 1"


@pytest.mark.parametrize(
    "end", ["", "sys.exit(0)", "os._exit(0)", "import _ctypes; _ctypes.dlclose(pool._handle)"]
)
def test_end_of_the_process(launch_library: Path, end: str) -> None:
    """Nothing hangs with workers asleep or spinning, the library closed or not."""
    assert run(launch_library, f"pool.launch_counts(0)\n{end}", TVM_NUM_THREADS="4") == ""


def test_end_while_a_daemon_thread_launches(launch_library: Path) -> None:
    """The interpreter ends in the middle of launches."""
    code = """
def launch():
    while True: pool.launch_counts(0)
for _ in range(3): threading.Thread(target=launch, daemon=True).start()
time.sleep(0.05)
"""
    assert run(launch_library, code, TVM_NUM_THREADS="2") == ""


def test_closed_library_stays_while_threads_run_in_it(launch_library: Path) -> None:
    """After dlclose it is still mapped; a second open returns it, with the same threads."""
    code = """
import _ctypes
pool.launch_counts(0)
_ctypes.dlclose(pool._handle)
mapped = sys.argv[1] in open('/proc/self/maps').read()
pool = ctypes.CDLL(sys.argv[1])
print(mapped, pool.launch_counts(0), tasks())
"""
    assert run(launch_library, code, TVM_NUM_THREADS="3") == "True 3 3"
