"""TVMFFIEnvSetStream and TVMFFIEnvGetStream: the current stream of a thread and device."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import runtime

from ...support import needs
from ...support.dso_script import run_by_c, run_by_python
from ...support.other_compiler import compiled
from ...support.process import run_python

CUDA = 2


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library whose functions `set` and `get` call them."""
    return compiled(tmp_path_factory.mktemp("stream") / "stream.so", "-shared")


def test_a_stream_is_that_of_a_thread_and_a_device(library: Path) -> None:
    """Setting one returns the one before; NULL sets no stream."""
    module = runtime.load(library)
    set_stream, get = module["set"], module["get"]
    assert [get(CUDA, 0), set_stream(CUDA, 0, 7), get(CUDA, 0)] == [0, 0, 7]
    assert [get(CUDA, 1), get(1, 0), get(-1, 0), get(CUDA, 1 << 30)] == [0, 0, 0, 0]
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.extend((get(CUDA, 0), set_stream(CUDA, 0, 9))))
    thread.start()
    thread.join()
    assert seen == [0, 0]
    assert [set_stream(CUDA, 0, 0), get(CUDA, 0)] == [7, 0]


def test_a_stream_that_cannot_be_set_is_an_error(library: Path) -> None:
    """For no device, and for more devices than a thread has room for."""
    set_stream = runtime.load(library)["set"]
    for kind, number in ((-1, 0), (CUDA, -1), (CUDA, 1 << 30), (256, 0)):
        text = f"TVMFFIEnvSetStream: expected a device, found type {kind}, id {number}"
        with pytest.raises(ValueError, match=text):
            set_stream(kind, number, 1)
    for number in range(64):
        set_stream(CUDA, number, 1)
    with pytest.raises(RuntimeError, match="at most 64 devices in a thread; set the streams of"):
        set_stream(CUDA, 64, 1)
    assert [set_stream(CUDA, number, 0) for number in range(65)] == [1] * 64 + [0]


def test_libdso_has_streams_too(library: Path) -> None:
    """A program without Python, with the answers of Python's runtime."""
    calls = ("set i:2 i:0 i:7", "get i:2 i:0", "get i:2 i:1", "set i:2 i:0 i:0", "set i:-1 i:0 i:1")
    lines = [f"load {library}", *(f"call 0 {call}" for call in calls)]
    printed = run_by_c(*lines)
    assert printed == run_by_python(*lines)
    assert [line for line in printed.splitlines() if line.startswith("i")][:2] == ["int 0", "int 7"]


BESIDE = """
import json, sys
import runtime
module = runtime.load(sys.argv[1])
module["set"](2, 0, 5)
import tvm_ffi
device, theirs = tvm_ffi.device("cuda:0"), tvm_ffi.load_module(sys.argv[1])
def both(): return [module["get"](2, 0), tvm_ffi.get_raw_stream(device), theirs["get"](2, 0)]
seen = [both()]
with tvm_ffi.use_raw_stream(device, 6):
    seen += [both(), module["set"](2, 0, 7), both(), theirs["set"](2, 0, 8), both()]
print(json.dumps([*seen, both()]))
"""


def test_a_real_tvm_ffi_has_the_same_streams(library: Path) -> None:
    """Both have one table, whichever sets a stream; one that was set before moves there."""
    seen = run_python(BESIDE, str(library))
    assert seen == [[5] * 3, [6] * 3, 6, [7] * 3, 7, [8] * 3, [5] * 3]


TORCH = """
import json, sys, types
import runtime
get, set_stream = map(runtime.load(sys.argv[1]).get_function, ("get", "set"))
seen = [get(2, 0), "torch" in sys.modules]
torch = sys.modules["torch"] = types.ModuleType("torch")
seen.append(get(2, 0))  # half imported
is_open = False
torch.cuda = types.SimpleNamespace(is_initialized=lambda: is_open)
torch.version = types.SimpleNamespace(hip=None)
torch._C = types.SimpleNamespace(_cuda_getCurrentRawStream={0: 2**63 + 1, 1: 3}.__getitem__)
seen.append(get(2, 0))
is_open = True
seen += [get(2, 0) % 2**64, get(2, 1), get(2, 2), get(10, 1), get(1, 0)]
set_stream(2, 1, 4)
seen += [get(2, 1), set_stream(2, 1, 0), get(2, 1)]
torch.version.hip = "6.0"
print(json.dumps([*seen, get(2, 1), get(10, 1)]))
"""


def test_without_a_stream_the_current_one_is_pytorchs(library: Path) -> None:
    """Only if the program imported it, and it has opened CUDA, or ROCm in its place.

    A module stands for PyTorch with a GPU.
    """
    seen = run_python(TORCH, str(library))
    assert seen == [0, False, 0, 0, 2**63 + 1, 3, 0, 0, 0, 4, 4, 3, 0, 3]


def test_pytorch_without_cuda_has_no_stream(library: Path) -> None:
    """The real one, which a question for the stream does not make open devices."""
    torch = needs.module("torch", "torch")
    before = torch.cuda.is_initialized()
    if not before:
        assert runtime.load(library)["get"](CUDA, 0) == 0
    assert torch.cuda.is_initialized() is before
