"""Weights of a module: views of the mapped library, and files that change."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy

import runtime
from runtime.modules.safetensors import ALIGNMENT
from runtime.serial.stream import FileRange

from ...support.weights_files import ONE, TWO, PackBlob, address_of, blob_of, file_of


def is_in_mapping(address: int, path: Path) -> bool:
    """Return True if an address is in a read-only mapping of a file."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, mode, *_, name = line.split()
        start, end = (int(word, 16) for word in span.split("-"))
        if start <= address < end:
            return name == str(path) and mode.startswith("r-")
    return False


MODULES: dict[str, Callable[[bytes], runtime.Module]] = {
    "const_loader": lambda data: runtime.ConstLoaderModule({"w": data}, {}),
    "GraphExecutorFactory": lambda data: runtime.GraphExecutorFactory("{}", {"w": data}),
    "device": lambda data: runtime.DeviceModule("cuda", data, "ptx", []),
    "safetensors": lambda data: runtime.SafetensorsModule(
        safetensors.numpy.save({"w": np.frombuffer(data, "u1")})
    ),
}


@pytest.mark.parametrize("make", MODULES.values(), ids=MODULES.keys())
def test_module_returns_views(make: Callable[[bytes], runtime.Module], pack_blob, tmp_path) -> None:
    """Arrays of the caller, and those in a library's mapping, are not copied."""
    data = os.urandom(1 << 20)
    module = make(data)
    path = pack_blob(blob_of(module))
    [loaded] = runtime.load(path).imported_modules
    for written in (module, loaded):
        writer = runtime.Writer()
        written.save_to_binary(writer)
        [chunk] = [chunk for chunk in writer.finish() if memoryview(chunk).nbytes >= len(data)]
        assert bytes(chunk).endswith(data)
        if written is loaded:
            assert is_in_mapping(address_of(chunk), path)
        elif not isinstance(written, runtime.SafetensorsModule):  # whose bytes the test made
            assert address_of(chunk) == address_of(data)


@pytest.mark.parametrize("pad", range(0, 80, 7))
def test_data_area_is_aligned_from_the_symbol(pad: int, pack_blob: PackBlob) -> None:
    """The area is aligned for any offset and header length, and is written again unchanged."""
    modules: list[runtime.Module] = [
        runtime.SafetensorsModule(file_of(ONE + " " * (pad + more), b"1234")) for more in (0, 5)
    ]
    blob = blob_of(runtime.ConstLoaderModule({"n" * (pad + 1): b"1"}, {}), *modules)
    loaded = runtime.load(pack_blob(blob))
    assert runtime.serialize_module_to_bytes(loaded) == blob
    for module in loaded.imported_modules[1:]:
        raw = module.weights["a"].raw
        assert (bytes(raw), address_of(raw) % ALIGNMENT) == (b"1234", 0)


def test_weights_are_views_of_the_mapped_library(pack_blob: PackBlob) -> None:
    """Not a byte of them is on the heap."""
    array = np.arange(1000, dtype="f4")
    file = safetensors.numpy.save({"w": array})
    path = pack_blob(blob_of(runtime.SafetensorsModule(file)))
    tensor = runtime.load(path).weights["w"]
    found = tensor.numpy()
    assert is_in_mapping(found.ctypes.data, path)
    assert is_in_mapping(found.ctypes.data + found.nbytes - 1, path)
    assert address_of(tensor.raw) == found.ctypes.data


def test_array_outlives_module_and_library(pack_blob: PackBlob) -> None:
    """The last array frees the mapping."""
    file = safetensors.numpy.save({"w": np.arange(1000, dtype="i8")})
    path = pack_blob(blob_of(runtime.SafetensorsModule(file)))
    module = runtime.load(path)
    array, gone = module.weights["w"].numpy(), weakref.ref(module)
    address = array.ctypes.data
    del module
    assert gone() is None
    assert (array.sum(), is_in_mapping(address, path)) == (499500, True)
    del array
    assert not is_in_mapping(address, path)


@pytest.mark.parametrize("origin", ["constants", "params"])
def test_arrays_of_tvm_are_views_where_aligned(origin: str, pack_blob: PackBlob) -> None:
    """Elsewhere the first use makes an aligned copy, and `raw` stays the view."""
    seen = set()
    for pad in range(1, 5):
        arrays = {"n" * pad: np.arange(5, dtype="f4")}
        module: runtime.Module = runtime.ConstLoaderModule(arrays, {})
        if origin == "params":
            module = runtime.GraphExecutorFactory("{}", arrays)
        path = pack_blob(blob_of(module))
        [tensor] = runtime.load(path).weights.values()
        is_aligned = address_of(tensor.raw) % 4 == 0
        found = tensor.numpy()
        assert is_in_mapping(address_of(tensor.raw), path)
        assert is_in_mapping(found.ctypes.data, path) == is_aligned
        assert is_aligned or found.ctypes.data % 64 == 0
        assert (found.tolist(), found.flags.writeable) == ([0, 1, 2, 3, 4], False)
        seen.add(is_aligned)
        del tensor, found
        gc.collect()
    assert seen == {True, False}


def test_file_is_written_as_a_range(tmp_path: Path) -> None:
    """Its bytes are not read, but for the header."""
    path = tmp_path / "w.safetensors"
    path.write_bytes(file_of(ONE, b"1234"))
    writer = runtime.Writer()
    runtime.SafetensorsModule(path).save_to_binary(writer)
    [chunk] = [chunk for chunk in writer.finish() if isinstance(chunk, FileRange)]
    assert (chunk.path, chunk.offset, chunk.nbytes) == (str(path), 0, path.stat().st_size)


def test_relative_path_is_that_of_the_moment(tmp_path: Path, monkeypatch) -> None:
    """A change of folder between making the module and writing it does not matter."""
    (tmp_path / "w.safetensors").write_bytes(file_of(ONE, b"1234"))
    monkeypatch.chdir(tmp_path)
    module = runtime.SafetensorsModule("w.safetensors")
    monkeypatch.chdir("/")
    assert runtime.serialize_module_to_bytes(module).count(b"1234") == 1


@pytest.mark.parametrize("change", ["size", "time", "gone"])
def test_file_that_changed_is_refused(change: str, tmp_path: Path) -> None:
    """A file is written as it was checked, or not at all."""
    path = tmp_path / "w.safetensors"
    path.write_bytes(file_of(ONE, b"1234"))
    module = runtime.SafetensorsModule(path)
    if change == "size":
        path.write_bytes(file_of(ONE, b"12345"))
    elif change == "time":
        os.utime(path, ns=(0, 0))
    else:
        path.unlink()
    with pytest.raises(runtime.ExportError, match="was changed after it was opened") as caught:
        runtime.serialize_module_to_bytes(module)
    assert caught.value.path == str(path)


@pytest.mark.parametrize(
    ("kind", "match"),
    [
        ("missing", "cannot be read: No such file"),
        ("folder", "cannot be read: not a regular file"),
        ("pipe", "cannot be read: not a regular file"),
        ("device", "cannot be read: not a regular file"),
        ("nul", "cannot be read: embedded null byte"),
        ("empty", "safetensors at 0x0: an integer of 8 bytes, expected at most 0 left"),
        ("longer", r"safetensors at 0x48: 1 bytes after the last tensor, expected none"),
        ("shorter", r"safetensors at 0x44: tensor data of 4 bytes, expected at most 3 left"),
        ("text", "safetensors at 0x0: a safetensors header of [0-9]+ bytes, expected at most"),
    ],
)
def test_file_that_cannot_be_used_is_named(kind: str, match: str, tmp_path: Path) -> None:
    """The error has the file and the reason; nothing blocks."""
    good, path = file_of(ONE, b"1234"), tmp_path / "w.safetensors"
    contents = {
        "empty": b"",
        "longer": good + b"5",
        "shorter": good[:-1],
        "text": b"# A text\n" * 9,
    }
    if kind in contents:
        path.write_bytes(contents[kind])
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "nul":
        path = tmp_path / "a\0b"
    with pytest.raises(runtime.ExportError, match=match) as caught:
        runtime.SafetensorsModule(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert (caught.value.path, caught.value.module) == (str(path), "safetensors")


def test_header_is_parsed_at_the_first_use_of_the_weights() -> None:
    """A load skips the file; an error inside is raised at the first use."""
    blob = blob_of(runtime.SafetensorsModule(file_of(TWO, b"1234")))
    module = runtime.deserialize_module_from_bytes(blob.replace(b'"U8"', b'"XX"', 1))
    for _ in range(2):
        with pytest.raises(runtime.BlobFormatError, match="dtype, expected .*, found 'XX'"):
            _ = module.weights
    assert runtime.serialize_module_to_bytes(module) == blob.replace(b'"U8"', b'"XX"', 1)
