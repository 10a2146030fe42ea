"""by_reference: what a pickle contains, and which file a worker maps."""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
import shutil
import time
from pathlib import Path

import pytest

import packer
import runtime
from runtime.error import ExportError

from ...support.process import run_python
from ..interchanged import device, host

UNPICKLE = """
import json, pathlib, pickle, sys
module = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())
again = pickle.loads(pickle.dumps(module)) is module
keys = [part.type_key for part in module.imported_modules]
print(json.dumps([module["answer"](), module.path, again, keys, len(pickle.dumps(module))]))
"""
CALL = """
import json, pathlib, pickle, sys
function = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())
print(json.dumps([function(), function.owner.path]))
"""


def written(folder: Path, pickled: object) -> str:
    """Pickle a value into a file."""
    path = folder / "pickled"
    path.write_bytes(pickle.dumps(pickled))
    return str(path)


def test_a_pickle_names_the_file_and_a_worker_maps_it(model: Path, tmp_path: Path) -> None:
    """At most 1 KB; the worker's module has the same path, tree, and form of a pickle."""
    module = runtime.by_reference(runtime.load(model))
    assert module is runtime.load(model)
    pickled = written(tmp_path, module)
    assert len(pickle.dumps(module)) <= 1024
    answer, path, again, keys, nbytes = run_python(UNPICKLE, pickled, blocked=("packer", "numpy"))
    assert (answer, path, again, keys) == (42, str(model), True, ["cuda"])
    assert nbytes == len(pickle.dumps(module))


def test_a_module_in_use_is_returned_itself(model: Path) -> None:
    """As with bytes; copies are the module, too."""
    module = runtime.by_reference(runtime.load(model))
    assert pickle.loads(pickle.dumps(module)) is module
    assert copy.copy(module) is module
    assert copy.deepcopy(module) is module


def test_equal_pickles_for_equal_files(model: Path) -> None:
    """Schedulers compare tasks by the bytes of their pickles."""
    module = runtime.by_reference(runtime.load(model), fetch="https://models/{sha256}")
    assert pickle.dumps(module) == pickle.dumps(pickle.loads(pickle.dumps(module)))


def test_another_file_of_the_same_bytes_serves(model: Path, tmp_path: Path) -> None:
    """The digest decides: a copy has another inode and time, as on another machine."""
    pickled = written(tmp_path, runtime.by_reference(runtime.load(model)))
    shutil.copy(model, tmp_path / "copy.so")
    os.replace(tmp_path / "copy.so", model)
    assert run_python(UNPICKLE, pickled)[:2] == [42, str(model)]


def test_a_relative_path_is_made_absolute(model: Path, tmp_path: Path, monkeypatch) -> None:
    """A worker has another current folder."""
    monkeypatch.chdir(model.parent)
    pickled = written(tmp_path, runtime.by_reference(runtime.load(model.name)))
    monkeypatch.chdir("/")
    assert run_python(UNPICKLE, pickled)[:2] == [42, str(model)]


def test_the_digest_is_recorded_for_other_processes(model: Path, cache: Path) -> None:
    """The name of an entry is that of the file's state: a changed file has none."""
    runtime.by_reference(runtime.load(model))
    (entry,) = (cache / "verified").iterdir()
    assert entry.read_text() == hashlib.sha256(model.read_bytes()).hexdigest()
    assert not list((cache / "locks").iterdir())


def test_functions_are_pickled_as_module_and_name(model: Path, tmp_path: Path) -> None:
    """By reference, and by bytes where no reference was asked for."""
    module = runtime.load(model)
    by_bytes = written(tmp_path, module["answer"])
    assert run_python(CALL, by_bytes) == [42, f"<{model.stat().st_size} bytes>"]
    runtime.by_reference(module)
    assert run_python(CALL, written(tmp_path, module["answer"])) == [42, str(model)]
    assert pickle.loads(pickle.dumps(module["answer"])).owner is module
    assert copy.copy(module["answer"])() == 42


def test_parts_of_a_tree_name_their_root(model: Path) -> None:
    """A module below the root, by reference too."""
    module = runtime.by_reference(runtime.load(model))
    (below,) = module.imported_modules
    assert len(pickle.dumps(below)) <= 1024
    assert pickle.loads(pickle.dumps(below)) is below


def test_a_function_without_a_name_is_refused(tmp_path: Path) -> None:
    """Declared by load, or by a library that a pickle has no name of."""
    source = packer.CSourceModule("int three(void) { return 3; }\nlong answer(void) { return 1; }")
    module = runtime.load(
        packer.export_library(source, tmp_path / "plain.so"), functions={"three": "int(void)"}
    )
    assert module["three"]() == 3
    with pytest.raises(ExportError, match=r"declared by load\(functions=\.\.\.\)"):
        pickle.dumps(module["three"])


def test_a_policy_for_all_modules_of_a_process(model: Path, exported: Path) -> None:
    """Libraries by reference, other modules by bytes; a module's own source stays."""
    module, own = runtime.load(model), runtime.by_reference(runtime.load(exported), fetch="/own")
    runtime.set_pickle_policy("reference", fetch="/all/{sha256}")
    assert b"/all/{sha256}" in pickle.dumps(module)
    assert b"/own" in pickle.dumps(own)
    assert pickle.loads(pickle.dumps(device("f"))).functions.keys() == {"f"}
    data = exported.read_bytes()
    from_bytes = runtime.load_from_bytes(data + b"\0")
    assert len(pickle.dumps(from_bytes)) > len(data)
    runtime.set_pickle_policy("bytes")
    assert len(pickle.dumps(runtime.load(model), protocol=4)) > model.stat().st_size


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"policy": "path"}, ValueError, 'expected "reference", "bytes" or None'),
        ({"policy": "bytes", "fetch": "/a"}, ValueError, "pickles as bytes need no source"),
        ({"policy": "reference", "fetch": 3}, TypeError, "expected a URL, or a function"),
    ],
)
def test_a_wrong_policy_is_refused(arguments, error, message) -> None:
    """And the one before it stays."""
    with pytest.raises(error, match=message):
        runtime.set_pickle_policy(arguments.pop("policy"), **arguments)


def test_a_module_without_a_file_is_refused(model: Path) -> None:
    """Each with its reason."""
    with pytest.raises(ExportError, match="is not the root of a loaded library"):
        runtime.by_reference(host())
    with pytest.raises(ExportError, match="was loaded from bytes"):
        runtime.by_reference(runtime.load_from_bytes(model.read_bytes()))
    with pytest.raises(TypeError, match=r"by_reference takes a runtime\.Module, found 3"):
        runtime.by_reference(3)
    with pytest.raises(TypeError, match="fetch: expected a URL"):
        runtime.by_reference(runtime.load(model), fetch=b"/a")


def test_a_changed_tree_is_refused(model: Path) -> None:
    """Before and after by_reference: the file lacks the change."""
    module = runtime.by_reference(runtime.load(model))
    module.import_module(device("more"))
    for change in (pickle.dumps, runtime.by_reference):
        with pytest.raises(ExportError, match="had its imports changed after it was loaded"):
            change(module)


def test_a_replaced_file_is_refused(model: Path, other: Path) -> None:
    """The digest must be that of the loaded file; a reference made before stays valid."""
    module, first = runtime.load(model), runtime.load(other)
    runtime.by_reference(first)
    os.replace(shutil.copy(other, model.with_name("new.so")), model)
    with pytest.raises(ExportError, match="has a file that was replaced or changed"):
        runtime.by_reference(module)
    model.unlink()
    with pytest.raises(ExportError, match="cannot be read again: No such file"):
        runtime.by_reference(module)
    assert pickle.loads(pickle.dumps(first)) is first


def test_a_large_module_is_pickled_in_a_millisecond(tmp_path: Path, cache: Path) -> None:
    """The size of the file costs nothing once its digest is known."""
    root = host(1)
    root.import_module(runtime.ConstLoaderModule({"w": bytes(64 << 20)}, {}))
    module = runtime.by_reference(runtime.load(packer.export_library(root, tmp_path / "large.so")))
    times = []
    for _ in range(20):
        start = time.perf_counter()
        data = pickle.dumps(module)
        times.append(time.perf_counter() - start)
    assert len(data) <= 1024
    assert min(times) <= 1e-3
