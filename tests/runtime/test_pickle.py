"""Pickle: into other processes, out of band, in threads, with types of the user."""

from __future__ import annotations

import copy
import gc
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import packer
import runtime

from ..support.process import run_python
from .interchanged import device, host, shape

PICKLED = """
import json, pathlib, pickle, sys
data = pathlib.Path(sys.argv[1]).read_bytes()
module = pickle.loads(data)
import runtime
again = pickle.loads(pickle.dumps(module)) is module
below = [m.type_key for m in module.imported_modules]
print(json.dumps([module["answer"](), below, again, module.path]))
"""


def test_whole_library_through_pickle_into_another_process(build, tmp_path) -> None:
    """The process has neither the file nor packer; it can pickle the module again."""
    path = tmp_path / "lib.so"
    path.write_bytes(build(1).read_bytes())
    (tmp_path / "pickled").write_bytes(pickle.dumps(runtime.load(path)))
    size = path.stat().st_size
    path.unlink()
    blocked = ("packer", "numpy", "llvmlite", "elftools", "cffi")
    answer = run_python(PICKLED, str(tmp_path / "pickled"), blocked=blocked)
    assert answer == [1, ["cuda"], True, f"<{size} bytes>"]


ALTERNATELY = """
import json, os, pathlib, pickle, sys
first, second = (pathlib.Path(path).read_bytes() for path in sys.argv[1:])
answers, open_files = [], []
for _ in range(20):
    for data in (first, second):
        answers.append(pickle.loads(data)["answer"]())
        open_files.append(len(os.listdir("/proc/self/fd")))
print(json.dumps([answers, len(set(open_files))]))
"""


def test_two_libraries_alternately_twenty_times(build, tmp_path) -> None:
    """Each call runs the current code, though the libraries use the same address in turn."""
    paths = [tmp_path / name for name in ("1.pickle", "2.pickle")]
    for number, path in enumerate(paths, 1):
        path.write_bytes(pickle.dumps(runtime.load(build(number))))
    answers, numbers_of_open_files = run_python(ALTERNATELY, *map(str, paths))
    assert answers == [1, 2] * 20
    assert numbers_of_open_files == 1


def test_pickle_keeps_the_bytes_out_of_band(build) -> None:
    """Protocol 5 passes a view of the file, not a copy; the load uses the received bytes."""
    path, buffers = build(1), []
    module = runtime.load(path)
    data = pickle.dumps(module, protocol=5, buffer_callback=buffers.append)
    assert len(data) < 200
    (buffer,) = buffers
    assert bytes(buffer.raw()) == path.read_bytes()
    assert pickle.loads(data, buffers=[bytearray(buffer.raw())]) is module


def test_threads_pickle_at_once(build) -> None:
    """Different libraries and device trees in eight threads."""
    modules = [runtime.load(build(number)) for number in (1, 2)]

    def rounds(index: int) -> bool:
        module = modules[index % 2]
        same = [pickle.loads(pickle.dumps(module)) is module for _ in range(5)]
        tree = device(str(index), device("below"))
        return all(same) and shape(copy.deepcopy(tree)) == shape(tree)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(rounds, range(32)))


OWN_TYPE = """
import runtime

class Note(runtime.Module):
    type_key = "test.note"
    property_mask = 1
    def __init__(self, text):
        self.text = text
    def save_to_binary(self, writer):
        writer.write_string(self.text)

@runtime.register_loader("test.note")
def load_note(reader):
    return Note(reader.read_string())
"""
MAKE = """
import json, pathlib, pickle, sys
sys.path.insert(0, sys.argv[1])
import notes
pathlib.Path(sys.argv[1], "pickled").write_bytes(pickle.dumps(notes.Note("hello")))
print("null")
"""
TAKE = """
import json, pathlib, pickle, sys
sys.path.insert(0, sys.argv[1])
print(json.dumps(pickle.loads(pathlib.Path(sys.argv[1], "pickled").read_bytes()).text))
"""


def test_own_types_bring_their_loader(tmp_path) -> None:
    """As with any class, unpickling imports the module that has it, which registers the loader."""
    (tmp_path / "notes.py").write_text(OWN_TYPE)
    run_python(MAKE, str(tmp_path))
    assert run_python(TAKE, str(tmp_path)) == "hello"


def test_pickle_does_not_follow_the_path(build, tmp_path) -> None:
    """A file that is put in the place of the pickled one is not looked at."""
    path = tmp_path / "lib.so"
    path.write_bytes(build(1).read_bytes())
    data = pickle.dumps(runtime.load(path))
    gc.collect()
    os.replace(packer.export_library(host(9), tmp_path / "new.so"), path)
    assert pickle.loads(data)["answer"]() == 1


def test_a_pickle_names_the_same_functions_as_in_0_1_0() -> None:
    """That function must stay where it is."""
    data = pickle.dumps(device("scale"), protocol=2)
    assert b"runtime.interchange\nrebuild_module\n" in data
