"""Host code that uses the thread pool, workspaces and devices, in a loaded library."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import runtime

from ...support.paths import C_SOURCES
from ...support.process import run_python

SOURCE = C_SOURCES / "backend.c"


@pytest.fixture(scope="module")
def host(compile_library) -> runtime.Module:
    """The library, loaded."""
    return runtime.load(compile_library(SOURCE.read_text()))


def neighbours(x: np.ndarray) -> np.ndarray:
    """Return the sums that backend.c computes."""
    return x + np.append(x[1:], np.float32(0))


@pytest.mark.parametrize("num_task", [0, 1])
@pytest.mark.parametrize("n", [1, 5, 100_001])
def test_parallel_function(host: runtime.Module, n: int, num_task: int) -> None:
    """Tasks that wait for each other, against NumPy."""
    x = np.random.default_rng(n).random(n, dtype="f4")
    y = np.empty_like(x)
    host["neighbours"](x, y, num_task)
    assert np.array_equal(y, neighbours(x))


def test_parallel_functions_from_many_threads(host: runtime.Module) -> None:
    """Python threads call concurrently, with the GIL released."""
    x = np.random.default_rng(0).random(5000, dtype="f4")
    expected, wrong = neighbours(x), []

    def work() -> None:
        y = np.empty_like(x)
        for _ in range(20):
            y[:] = 0
            host["neighbours"](x, y, 0)
            if not np.array_equal(y, expected):
                wrong.append(y)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("num_task", [1, 2, 50])
def test_python_in_tasks(host: runtime.Module, num_task: int) -> None:
    """Callbacks run in the workers, once each."""
    seen: list[int] = []
    host["each"](seen.append, num_task)
    assert sorted(seen) == list(range(num_task))


EXCEPTIONS = """
import json, os, sys, threading
os.environ["TVM_NUM_THREADS"] = "2"
import runtime
host = runtime.load(sys.argv[1])
main, begun, answers = threading.get_ident(), threading.Event(), []
def fail(task_id):
    if (threading.get_ident() == main) != raise_in_main:
        return begun.wait(10) and None
    begun.set()
    global raised
    raised = ValueError(f"of task {task_id}")
    raise raised
for raise_in_main in True, False:
    begun.clear()
    try: host["each"](fail, 2)
    except ValueError as error: answers.append((str(error), error is raised))
print(json.dumps(answers))
"""


def test_exception_of_a_task(compile_library) -> None:
    """An exception of the caller's thread arrives unchanged, another one by kind and message."""
    answers = run_python(EXCEPTIONS, str(compile_library(SOURCE.read_text())))
    assert answers == [["of task 0", True], ["of task 1", False]]


def test_workspace(host: runtime.Module) -> None:
    """Memory to work in."""
    x = np.arange(1000, dtype="f4")
    host["reverse"](x)
    assert np.array_equal(x, np.arange(1000, dtype="f4")[::-1])


@pytest.mark.parametrize(
    ("device", "nbytes", "message"),
    [((1, 0), -1, "^cpu:0: no memory for a workspace of 18446744073709551615 bytes$"),
     ((1, 5), 8, "^cpu:5: there is one CPU device"), ((7, 0), 8, "^vulkan: unsupported kind of")],
)  # fmt: skip
def test_workspace_that_cannot_be(
    host: runtime.Module, device: tuple[int, int], nbytes: int, message: str
) -> None:
    """DeviceError contains the device."""
    with pytest.raises(runtime.DeviceError, match=message):
        host["workspace"](*device, nbytes)


def test_set_device_from_host_code(host: runtime.Module) -> None:
    """A missing device raises there, before anything is launched."""
    host["set_device"](1, 0)
    with pytest.raises(runtime.DeviceError, match="^cpu:3: there is one") as caught:
        host["set_device"](1, 3)
    assert caught.value.device == "cpu:3"
    with pytest.raises(TypeError, match="^__tvm_set_device: expected two ints"):
        host["set_device"]("cpu", 0)


def test_fork_after_calls(host: runtime.Module) -> None:
    """Parallel functions run in the child, and in the parent as before."""
    x = np.arange(1000, dtype="f4")
    y = np.empty_like(x)

    def work() -> bool:
        y[:] = 0
        host["neighbours"](x, y, 0)
        return np.array_equal(y, neighbours(x))

    assert work()
    pid = os.fork()
    if pid == 0:
        os._exit(0 if work() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert work()


END = """
import json, sys, threading, time
import runtime
host = runtime.load(sys.argv[1])
host["each"](lambda task_id: None, 4)
def work():
    while True: host["each"](lambda task_id: None, 2)
for _ in range(2): threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
print(json.dumps(0), flush=True)
"""


def test_end_while_tasks_call_python(compile_library) -> None:
    """The interpreter ends while workers are in callbacks."""
    for _ in range(3):
        assert run_python(END, str(compile_library(SOURCE.read_text()))) == 0
