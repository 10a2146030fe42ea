"""Round trips: bytes, base64, JSON, pickle, copy; each for device trees and for whole libraries."""

from __future__ import annotations

import base64
import contextlib
import copy
import gc
import json
import os
import pickle
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import packer
import runtime
from runtime.blob import Blob, Entry, dump

from ..process import run_python

SOURCE = "long answer(void) {{ return {}; }}"
FUNCTIONS = {"answer": "long(void)"}

# What goes out, and comes back. The forms of one tree share its bytes, but not how they carry them.
FORMS: dict[str, Callable[[runtime.Module], runtime.Module]] = {
    "bytes": lambda m: runtime.deserialize_module_from_bytes(
        runtime.serialize_module_to_bytes(m, export_dso=False)
    ),
    "base64": lambda m: runtime.import_module_from_base64(runtime.export_module_to_base64(m)),
    "json": lambda m: runtime.load_json(runtime.save_json(m)),
    "pickle2": lambda m: pickle.loads(pickle.dumps(m, protocol=2)),
    "pickle4": lambda m: pickle.loads(pickle.dumps(m, protocol=4)),
    "pickle5": lambda m: pickle.loads(pickle.dumps(m, protocol=5)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}
each_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
# base64 compiles host code; the others refuse it.
each_refusing_form = pytest.mark.parametrize(
    "form", [f for n, f in FORMS.items() if n != "base64"], ids=[n for n in FORMS if n != "base64"]
)


def device(name: str, *imports: runtime.Module, type_key: str = "cuda") -> runtime.DeviceModule:
    """A device module with one kernel."""
    info = runtime.FunctionInfo(name, ("handle", "int32"), ("blockIdx.x", "threadIdx.x"))
    module = runtime.DeviceModule(type_key, f"code of {name}", "ptx", [info])
    for imported in imports:
        module.import_module(imported)
    return module


def shape(module: runtime.DeviceModule) -> tuple[Any, ...]:
    """All that a tree of device modules holds."""
    fields = module.type_key, bytes(module.data), module.fmt, module.functions
    return *fields, [shape(imported) for imported in module.imported_modules]


def host(number: int = 42) -> packer.CSourceModule:
    """Host code with one function."""
    return packer.CSourceModule(SOURCE.format(number), functions=FUNCTIONS)


@pytest.fixture(scope="module")
def build(tmp_path_factory) -> Callable[[int], Path]:
    """``build(number)``: a library over a device module, with a function that gives `number`."""
    folder = tmp_path_factory.mktemp("built")

    def build(number: int) -> Path:
        path = folder / f"{number}.so"
        if not path.exists():
            root = host(number)
            root.import_module(device("kernel"))
            packer.export_library(root, path)
        return path

    return build


# ---- device trees


@each_form
def test_lone_device_module(form) -> None:
    """Code, format and kernels come back, in a module of its own."""
    module = device("add")
    back = form(module)
    assert back is not module
    assert shape(back) == shape(module)


@each_form
def test_four_nested_device_modules(form) -> None:
    """The structure is kept, with the order of imports."""
    leaves = device("c", type_key="opencl"), device("d", type_key="hip")
    module = device("a", device("b", *leaves))
    assert shape(form(module)) == shape(module)


@each_form
def test_shared_module_stays_shared(form) -> None:
    """Both sides of a diamond import the same module afterwards."""
    bottom = device("bottom")
    back = form(device("top", device("left", bottom), device("right", bottom)))
    left, right = back.imported_modules
    assert left.imported_modules[0] is right.imported_modules[0]


@each_form
def test_carried_source_stays_source(form) -> None:
    """Source that came in a blob has a binary form; nothing compiles it on the way."""
    back = form(runtime.CarriedSourceModule("int f;", "c", ["f"]))
    assert (back.type_key, back.get_source(), back.func_names) == ("c", "int f;", ("f",))


@each_form
def test_one_bad_module_deep_in_a_tree_is_named(form) -> None:
    """With its place, whatever it is asked for."""

    class Odd(runtime.Module):
        type_key = "test.odd"

    module = device("a", device("b"), device("c", device("d", Odd())))
    place = r"root.imported_modules\[1\].imported_modules\[0\].imported_modules\[0\]"
    with pytest.raises(runtime.ExportError, match=rf"^{place} \(<Odd 'test.odd'>\)") as info:
        form(module)
    assert info.value.module == "test.odd"


@each_refusing_form
def test_host_code_that_is_not_compiled_is_refused(form) -> None:
    """A C source module has no bytes; the message says what to do instead."""
    with pytest.raises(runtime.ExportError, match=r"the root module \(<CSourceModule 'c'>\)") as e:
        form(host())
    assert "is host code" in str(e.value)
    assert "packer.export_library" in str(e.value)
    ir = packer.LLVMModule("define i64 @f() { ret i64 1 }")
    with pytest.raises(runtime.ExportError, match=r"root.imported_modules\[0\] \(<LLVMModule"):
        form(device("a", ir))


# ---- base64 and JSON


def test_base64_of_host_code_is_the_library(tmp_path) -> None:
    """It is exported, as TVM does it: the text is the file, whoever decodes it."""
    text = runtime.export_module_to_base64(host(5))
    path = tmp_path / "decoded.so"
    path.write_bytes(base64.b64decode(text, validate=True))
    assert runtime.load(path)["answer"]() == 5
    assert runtime.import_module_from_base64(text)["answer"]() == 5


def test_base64_of_host_code_needs_packer() -> None:
    """Where it is not installed the message says what to do."""
    code = """
import json, runtime
class Host(runtime.Module):
    property_mask = 4
try:
    runtime.export_module_to_base64(Host())
except runtime.PackerError as error:
    print(json.dumps(str(error)))
"""
    assert "pip install dso-packer" in run_python(code, blocked=("packer",))


def test_base64_of_a_loaded_library_is_its_file(build) -> None:
    """Nothing is added, so that any tool can have it."""
    path = build(1)
    text = runtime.export_module_to_base64(runtime.load(path))
    assert base64.b64decode(text, validate=True) == path.read_bytes()


@pytest.mark.parametrize(
    "text", ["?", "QUJ", "QUJD\nREVG", "QUJDRA==QUJD", "ÄÖÜ=", "QUJD\ud800", b"\xff\xfe"]
)
def test_text_that_is_no_base64_is_refused(text) -> None:
    """Nothing is passed over: a damaged text is not half a module."""
    with pytest.raises(runtime.BlobFormatError, match="^base64: .*expected base64 text"):
        runtime.import_module_from_base64(text)


def test_bytes_that_are_no_tree_are_refused() -> None:
    """The text may be well formed and what it holds not."""
    with pytest.raises(runtime.BlobFormatError, match="a blob of 3 bytes, expected at least 8"):
        runtime.import_module_from_base64("QUJD")
    with pytest.raises(runtime.LibraryLoadError, match="^<64 bytes>: "):
        runtime.import_module_from_base64(base64.b64encode(b"\x7fELF" + bytes(60)))


def test_json_is_the_form_of_tvm() -> None:
    """A graph of null and one module, whose bytes have their length before them."""
    module = device("add")
    data = runtime.serialize_module_to_bytes(module, export_dso=False)
    graph = json.loads(runtime.save_json(module))
    text = base64.b64encode(struct.pack("<Q", len(data)) + data).decode()
    assert graph == {
        "root": 1,
        "nodes": [{"type_key": ""}, {"type_key": "runtime.Module", "repr_b64": text}],
        "b64ndarrays": [],
        "attrs": {"tvm_version": "0.20.0", "producer": f"dso-packer {runtime.__version__}"},
    }


def graph(**fields: Any) -> str:
    """JSON of a graph with one module, some of it replaced."""
    node = {"type_key": "runtime.Module", "repr_b64": "CAAAAAAAAAAAAAAAAAAAAA=="}
    return json.dumps({"root": 1, "nodes": [{"type_key": ""}, {**node, **fields}]})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "json: JSONDecodeError"),
        ("null", "json: TypeError"),
        ("[1, 2]", "json: TypeError"),
        ('{"root": 1}', "json: KeyError 'nodes'"),
        ('{"nodes": []}', "json: KeyError 'root_index'"),
        ('{"root": 0, "nodes": []}', "json: IndexError"),
        ('{"root": "0", "nodes": [1]}', "json: TypeError"),
        ('{"root": 0, "nodes": [1]}', "json: AttributeError"),
        ("[" * 100_000, "json: RecursionError"),
        ('{"root": ' + "1" * 10_000 + "}", "json: ValueError"),
        (b"\xff\xfe\xff", "json: UnicodeDecodeError"),
        (graph(type_key="tir.Var"), "a root of type 'tir.Var', expected 'runtime.Module'"),
        (graph(repr_b64=7), "repr_b64 is 7, expected text"),
        (graph(repr_b64="?"), "json: repr_b64: "),
        (graph(repr_b64=""), "repr_b64 holds 0 bytes"),
        (graph(repr_b64="CQAAAAAAAAAAAAAAAAAAAA=="), "16 bytes, expected 8 and the 9 they speak"),
        (graph(), "no import tree"),
    ],
)
def test_damaged_json_is_refused(text, message) -> None:
    """Row D8: not JSON, not a graph, not a module, not base64, not a blob: our error for each."""
    with pytest.raises(runtime.BlobFormatError, match=message):
        runtime.load_json(text)


@given(st.data())
def test_text_that_was_damaged_is_our_error_or_a_tree(data) -> None:
    """Some characters replaced, anywhere, in either form."""
    for write, read in (
        (runtime.save_json, runtime.load_json),
        (runtime.export_module_to_base64, runtime.import_module_from_base64),
    ):
        text = write(device("a", device("b")))
        start = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 8))
        damaged = text[:start] + data.draw(st.text(max_size=8)) + text[start + length :]
        with contextlib.suppress(runtime.BlobFormatError, runtime.LoaderNotFoundError):
            assert isinstance(read(damaged), runtime.Module)


def test_json_of_other_dialect_is_refused_in_words() -> None:
    """As apache-tvm 0.27 writes it (tvm.ir.save_json of a C source module)."""
    node = {"type": "ffi.Module", "data": "AgAAAAAAAAA="}
    text = json.dumps({"root_index": 0, "nodes": [node], "metadata": {"tvm_version": "0.27.0"}})
    with pytest.raises(runtime.BlobFormatError, match="'ffi.Module'.* reads dialect 'tvm'"):
        runtime.load_json(text)


# ---- loaded libraries


@each_form
def test_loaded_library_is_itself_again(form, build) -> None:
    """Equal bytes are loaded once, so what comes back in one process is the same module."""
    module = runtime.load(build(1))
    assert form(module) is module
    assert form(runtime.load_from_bytes(build(2).read_bytes()))["answer"]() == 2


@each_form
@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.import_module(device("more")),
        lambda m: m.clear_imports(),
        lambda m: m.imported_modules[0].import_module(device("deep")),
    ],
    ids=["imported", "cleared", "deep"],
)
def test_library_whose_imports_were_changed_is_refused(form, change, build, tmp_path) -> None:
    """Its file does not know of the change, which would be lost."""
    path = tmp_path / "changed.so"
    path.write_bytes(build(1).read_bytes())
    module = runtime.load(path)
    change(module)
    with pytest.raises(runtime.ExportError, match="had its imports changed after it was loaded"):
        form(device("top", module))
    with pytest.raises(runtime.ExportError, match=r"^the root module \(<LibraryModule"):
        form(module)


def test_library_whose_file_is_gone_or_another_is_refused(build, tmp_path) -> None:
    """What is read again must be what runs."""
    path = tmp_path / "lib.so"
    path.write_bytes(build(1).read_bytes())
    module = runtime.load(path)
    path.unlink()
    with pytest.raises(runtime.ExportError, match="cannot be read again: No such file") as info:
        pickle.dumps(module)
    assert info.value.path == str(path)
    path.write_bytes(build(2).read_bytes())
    with pytest.raises(runtime.ExportError, match="was replaced or changed after it was loaded"):
        pickle.dumps(module)


def test_root_that_is_no_host_code_travels_as_the_file(tmp_path) -> None:
    """The factory of a model, its library and its parameters are one file; nothing is twice."""
    root = runtime.GraphExecutorFactory("{}", {}, "default")
    root.import_module(host(7))
    path = packer.export_library(root, tmp_path / "model.so")
    loaded = runtime.load(path)
    assert base64.b64decode(runtime.export_module_to_base64(loaded)) == path.read_bytes()
    assert copy.deepcopy(loaded) is loaded


@each_form
def test_library_in_a_tree_that_was_made_here(form, build) -> None:
    """It is an entry of the blob, `shared_library`, and a loaded library again afterwards."""
    library = runtime.load(build(3))
    back = form(device("top", device("kernels"), library))
    assert [m.type_key for m in back.imported_modules] == ["cuda", "library"]
    assert back.imported_modules[1] is library
    assert back["answer"]() == 3


def test_tree_with_libraries_is_exported(build, tmp_path) -> None:
    """Two loaded libraries and host code in one file; the others are not needed any more."""
    paths = [tmp_path / "1.so", tmp_path / "2.so"]
    root = host(0)
    for path, number in zip(paths, (1, 2), strict=True):
        path.write_bytes(build(number).read_bytes())
        root.import_module(runtime.load(path))
    exported = packer.export_library(root, tmp_path / "all.so")
    del root
    gc.collect()
    for path in paths:
        path.unlink()
    code = """
import json, sys, runtime
root = runtime.load(sys.argv[1])
modules = [root, *root.imported_modules]
below = [m.type_key for library in root.imported_modules for m in library.imported_modules]
print(json.dumps([[m["answer"]() for m in modules], below]))
"""
    assert run_python(code, str(exported)) == [[0, 1, 2], ["cuda", "cuda"]]


def test_static_tools_do_not_load_a_carried_library(compile_library, tmp_path) -> None:
    """`packer inspect` and `blob.parse` run none of its code; building the tree does."""
    trace = tmp_path / "ran"
    source = f"""#include <stdio.h>
__attribute__((constructor)) static void run(void) {{ fclose(fopen("{trace}", "w")); }}"""
    data = compile_library(source).read_bytes()
    root = device("top", runtime.CarriedSharedLibraryModule(data))
    path = packer.export_library(root, tmp_path / "outer.so")
    blob = runtime.serialize_module_to_bytes(root, export_dso=False)
    assert [m.type_key for m in runtime.blob.parse(blob).modules] == ["cuda", "shared_library"]
    report = packer.inspect_library(path)
    assert [module.type_key for module in report.modules] == ["cuda", "shared_library"]
    assert report.notes[-1].startswith("'shared_library' (module 1) is loaded with the rest")
    assert not trace.exists()
    runtime.load(path)
    assert trace.exists()


def wrapped(data: bytes) -> bytes:
    """A blob: a device module that imports a carried library."""
    root = device("top", runtime.CarriedSharedLibraryModule(data))
    return runtime.serialize_module_to_bytes(root, export_dso=False)


def test_carried_library_that_is_damaged_is_refused_where_it_lies() -> None:
    """The place in the blob, then what is wrong with the file."""
    with pytest.raises(runtime.LibraryLoadError, match="^blob at 0x.*: <5 bytes>: .*not an ELF"):
        runtime.deserialize_module_from_bytes(wrapped(b"hello"))


def test_carried_library_with_imports_beside_it_is_refused(build) -> None:
    """Its imports come with the file; others would change a module that is shared."""
    library = runtime.CarriedSharedLibraryModule(build(1).read_bytes())
    entries = [Entry("shared_library", library), Entry("metadata_module", runtime.MetadataModule())]
    tree = Entry("_import_tree", None)
    chunks = dump(Blob([*entries, tree], (0, 1, 1), (1,)))
    damaged = b"".join(chunks)
    with pytest.raises(runtime.BlobFormatError, match="'shared_library' with imports, expected"):
        runtime.deserialize_module_from_bytes(damaged)


def test_carried_library_without_host_code_is_refused(tmp_path) -> None:
    """A file that only carries modules has no library module to stand in the tree."""
    path = packer.export_library(device("alone"), tmp_path / "alone.so")
    with pytest.raises(runtime.BlobFormatError, match="a library without host code"):
        runtime.deserialize_module_from_bytes(wrapped(path.read_bytes()))


def test_libraries_nested_too_deep_are_refused(build, tmp_path) -> None:
    """Each level of a load within a load costs stack; eight are enough for anyone."""
    data = build(1).read_bytes()
    for level in range(9):
        root = host(level)
        root.import_module(runtime.CarriedSharedLibraryModule(data))
        path = packer.export_library(root, tmp_path / f"{level}.so")
        data = path.read_bytes()
    with pytest.raises(runtime.BlobFormatError, match="libraries nested deeper than 8"):
        runtime.load(path)
    assert runtime.load(tmp_path / "7.so").imported_modules[0]["answer"]() == 6


# ---- pickle


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
    """The process has neither the file nor packer; what it gets it can pickle again."""
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
    """Each is its own code every time, though they lie at the same place one after the other."""
    paths = [tmp_path / name for name in ("1.pickle", "2.pickle")]
    for number, path in enumerate(paths, 1):
        path.write_bytes(pickle.dumps(runtime.load(build(number))))
    answers, numbers_of_open_files = run_python(ALTERNATELY, *map(str, paths))
    assert answers == [1, 2] * 20
    assert numbers_of_open_files == 1


def test_pickle_keeps_the_bytes_out_of_band(build) -> None:
    """Protocol 5 hands over a view of the file, not a copy; it loads from what comes."""
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
