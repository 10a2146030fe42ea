"""safetensors: what the reference package writes is read alike, in place; the rest is refused."""

from __future__ import annotations

import gc
import json
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy

import runtime
from runtime._core import weights_data_nbytes
from runtime.modules.safetensors import ALIGNMENT
from runtime.stream import FileRange
from runtime.tensors.safetensors_header import DTYPES

from ..process import run_python

PackBlob = Callable[..., Path]
ONE = '{"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}'


def file_of(header: str | bytes, data: bytes = b"") -> bytes:
    """A file with this header, word for word."""
    text = header.encode() if isinstance(header, str) else header
    return len(text).to_bytes(8, "little") + text + data


def blob_of(*modules: runtime.Module) -> bytes:
    """The bytes of a tree whose root, without a payload, imports these modules."""
    root = runtime.MetadataModule()
    for module in modules:
        root.import_module(module)
    return runtime.serialize_module_to_bytes(root)


def address_of(data: Any) -> int:
    """Where the bytes lie."""
    return int(np.frombuffer(data, "u1").ctypes.data)


def is_in_mapping(address: int, path: Path) -> bool:
    """Whether an address lies in a read-only mapping of a file."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, mode, *_, name = line.split()
        start, end = (int(word, 16) for word in span.split("-"))
        if start <= address < end:
            return name == str(path) and mode.startswith("r-")
    return False


ARRAYS = {f"layer.{code}": np.arange(12).astype(code).reshape(3, 4) for code in "?bBhHiIqQefdF"} | {
    "scalar": np.array(2.5),
    "empty": np.zeros((0, 3), "f4"),
    "ähm": np.ones(1, "u1"),
}


# ---- what is read


@pytest.mark.parametrize("origin", ["path", "buffer", "library"])
def test_arrays_are_those_of_the_reference(origin: str, pack_blob: PackBlob, tmp_path) -> None:
    """A file that the reference package writes gives the same arrays, however it comes."""
    path = tmp_path / "w.safetensors"
    safetensors.numpy.save_file(ARRAYS, path, metadata={"format": "np"})
    if origin == "library":
        module = runtime.load(pack_blob(blob_of(runtime.SafetensorsModule(path))))
        assert module.imported_modules[0].metadata == {"format": "np"}
    else:
        module = runtime.SafetensorsModule(path if origin == "path" else path.read_bytes())
    assert set(module.weights) == set(ARRAYS)
    for name, expected in ARRAYS.items():
        found = module.weights[name].numpy()
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.tobytes() == expected.tobytes()
        assert not found.flags.writeable


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_of_the_format(dtype: str) -> None:
    """Each has the reference's size; NumPy gets those of whole bytes, the others are raw bytes."""
    _code, bits, _lanes = DTYPES[dtype]
    data = bytes(range(8 * bits // 8))
    layout = {"dtype": dtype, "shape": [2, 4], "data_offsets": [0, len(data)]}
    file = file_of(json.dumps({"w": layout}), data)
    [(name, theirs)] = safetensors.deserialize(file)
    tensor = runtime.SafetensorsModule(file).weights[name]
    assert (bytes(tensor.raw), list(tensor.shape)) == (theirs["data"], theirs["shape"])
    if bits >= 8:
        array = tensor.numpy()
        assert (array.dtype.name, array.tobytes()) == (tensor.dtype, data)
        assert np.asarray(tensor).dtype == array.dtype
    else:
        with pytest.raises(BufferError, match="its elements share bytes; raw has the bytes"):
            tensor.numpy()


def test_bfloat16_is_a_view_through_ml_dtypes() -> None:
    """Values arrive, read-only and without a copy."""
    expected = np.array([[1.5, -2.0], [0.0, 3e38]], ml_dtypes.bfloat16)
    layout = {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 8]}
    file = file_of(json.dumps({"w": layout}), expected.tobytes())
    array = runtime.SafetensorsModule(file).weights["w"].numpy()
    assert array.dtype == ml_dtypes.bfloat16
    assert array.tolist() == expected.tolist()
    assert array.ctypes.data == address_of(file) + len(file) - 8
    assert not array.flags.writeable


@pytest.mark.parametrize("blocked", [("ml_dtypes",), ("ml_dtypes", "numpy", "packer")])
def test_without_packages_the_bytes_are_there(blocked, pack_blob: PackBlob) -> None:
    """Without ml_dtypes NumPy lacks bfloat16, and says so; raw bytes need nothing."""
    header = (
        '{"b": {"dtype": "BF16", "shape": [1], "data_offsets": [4, 6]},'
        ' "f": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}'
    )
    module = runtime.SafetensorsModule(file_of(header, b"\0\0\x80\x3f\x01\x02"))
    code = (
        "import json, sys, runtime\n"
        "weights = runtime.load(sys.argv[1]).weights\n"
        "said = ''\n"
        "try:\n    weights['b'].numpy()\n"
        "except (BufferError, ImportError) as error:\n    said = str(error)\n"
        "print(json.dumps([memoryview(weights['f']).tolist(), weights['b'].raw.hex(), said]))"
    )
    values, raw, said = run_python(code, str(pack_blob(blob_of(module))), blocked=blocked)
    assert (values, raw) == ([1.0], "0102")
    assert ("pip install ml_dtypes" in said) == ("numpy" not in blocked)


def test_header_forms_that_the_reference_reads() -> None:
    """Spaces behind, further keys of a tensor, tensors in any order of their offsets, none."""
    for header, data, names in [
        (ONE + " " * 9, b"1234", ["a"]),
        (ONE.replace('"U8"', '"U8", "note": [1.5]'), b"1234", ["a"]),
        ("{}", b"", []),
        (
            '{"b": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}, '
            '"n": {"dtype": "U8", "shape": [0], "data_offsets": [1, 1]}, '
            '"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}',
            b"12",
            ["b", "n", "a"],
        ),
    ]:
        file = file_of(header, data)
        ours = {n: bytes(t.raw) for n, t in runtime.SafetensorsModule(file).weights.items()}
        assert list(ours) == names
        assert ours == {name: bytes(t["data"]) for name, t in safetensors.deserialize(file)}


# ---- the mapping


def test_weights_are_a_read_only_mapping() -> None:
    """Length, membership, order, misses; a tensor is made once; nothing can be put in."""
    module = runtime.SafetensorsModule(file_of(ONE, b"1234"))
    weights = module.weights
    assert (len(weights), list(weights), list(weights.keys())) == (1, ["a"], ["a"])
    assert "a" in weights and "b" not in weights and weights.get("b") is None
    assert weights["a"] is module.weights["a"] is dict(weights.items())["a"]
    assert repr(weights) == "<Weights of 1 tensors>"
    with pytest.raises(KeyError, match="'b'"):
        weights["b"]
    with pytest.raises(TypeError):
        weights["b"] = weights["a"]  # type: ignore[index]
    module.metadata["x"] = "y"
    assert module.metadata == {}


def test_weights_of_a_tree_are_found_in_look_up_order() -> None:
    """Several files, and the payloads of TVM: depth first, the first of a name counts."""
    first = runtime.SafetensorsModule(file_of(ONE, b"1234"))
    second = runtime.SafetensorsModule(file_of(ONE.replace('"a"', '"b"'), b"5678"))
    below = runtime.ConstLoaderModule({"a": b"x", "c": b"y"}, {})
    graph = runtime.GraphExecutorFactory("{}", {"p": b"z"})
    first.import_module(below)
    root = runtime.deserialize_module_from_bytes(blob_of(first, second, graph))
    assert {n: bytes(t.raw) for n, t in root.weights.items()} == {
        "a": b"1234",
        "c": b"y",
        "b": b"5678",
        "p": b"z",
    }
    assert (list(root.weights), len(root.weights)) == (["a", "c", "b", "p"], 4)
    assert list(root.imported_modules[1].weights) == ["b"]
    assert dict(runtime.MetadataModule().weights) == {}


# ---- where it lies


MODULES: dict[str, Callable[[bytes], runtime.Module]] = {
    "const_loader": lambda data: runtime.ConstLoaderModule({"w": data}, {}),
    "GraphExecutorFactory": lambda data: runtime.GraphExecutorFactory("{}", {"w": data}),
    "device": lambda data: runtime.DeviceModule("cuda", data, "ptx", []),
    "safetensors": lambda data: runtime.SafetensorsModule(
        safetensors.numpy.save({"w": np.frombuffer(data, "u1")})
    ),
}


@pytest.mark.parametrize("make", MODULES.values(), ids=MODULES.keys())
def test_module_hands_on_views(
    make: Callable[[bytes], runtime.Module], pack_blob, tmp_path
) -> None:
    """What was given, and what a loaded module has in its library's mapping, is not copied."""
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
    """Whatever stands before it and however long the header is; written again, the same bytes."""
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
    """The mapping goes with the last array."""
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


# ---- files on disk


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
    """What was checked is what is written, or nothing."""
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
        ("longer", r"safetensors at 0x48: 1 bytes behind the last tensor, expected none"),
        ("shorter", r"safetensors at 0x44: tensor data of 4 bytes, expected at most 3 left"),
        ("text", "safetensors at 0x0: a safetensors header of [0-9]+ bytes, expected at most"),
    ],
)
def test_file_that_cannot_be_used_is_named(kind: str, match: str, tmp_path: Path) -> None:
    """The error says which file and why; nothing blocks."""
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


# ---- what is refused

TWO = (
    '{"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}, '
    '"b": {"dtype": "U8", "shape": [2], "data_offsets": [2, 4]}}'
)
DEEP = "[" * 100_000
MALFORMED = {
    "header beyond the file": (None, "a safetensors header of 99 bytes, expected at most 4 left"),
    "no header": ("", r"0x8: header '', expected to begin with '\{'"),
    "array": ("[]", r"header '\[\]', expected to begin with '\{'"),
    "space before": (" " + ONE, "expected to begin with"),
    "byte order mark": ("\ufeff" + ONE, "expected to begin with"),
    "cut": (ONE[:-1], "0x43: header is no JSON: expecting ',' delimiter"),
    "text behind": (ONE + "x", "0x44: header is no JSON: extra data"),
    "control character": ('{"a\n": 1}', "header is no JSON: invalid control character"),
    "NaN": (ONE.replace("4]}", '4], "x": NaN}'), "NaN, expected a finite number"),
    "deep": (ONE.replace("4]}", f'4], "x": {DEEP}}}'), "no JSON of this format: maximum recursion"),
    "long integer": (ONE.replace("[4]", f"[{'9' * 10**6}]"), "no JSON of this format: Exceeds the"),
    "name twice": (TWO.replace('"b"', '"a"'), "key 'a' stands there twice, expected once"),
    "key twice": (ONE.replace('"U8"', '"U8", "dtype": "U8"'), "key 'dtype' stands there twice"),
    "half a surrogate pair": (ONE.replace('"a"', r'"\ud800"'), r"a lone surrogate '\\ud800'"),
    "metadata of numbers": ('{"__metadata__": {"a": 1}}', "expected text by name"),
    "metadata of text": ('{"__metadata__": "a"}', "__metadata__ 'a', expected text by name"),
    "tensor of text": ('{"a": "b"}', "tensor 'a': entry, expected an object, found 'b'"),
    "no dtype": (ONE.replace("dtype", "d"), "tensor 'a': dtype, expected one of .*, found None"),
    "unknown dtype": (ONE.replace("U8", "U9"), "tensor 'a': dtype, expected one of .*found 'U9'"),
    "dtype of another type": (ONE.replace('"U8"', "[]"), r"dtype, expected .*, found \[\]"),
    "no shape": (ONE.replace("shape", "s"), "shape, expected at most 64 sizes .* found None"),
    "negative extent": (ONE.replace("[4]", "[-4]"), r"shape, expected .*, found \[-4\]"),
    "extent that is true": (ONE.replace("[4]", "[4, true]"), r"shape, .*found \[4, True\]"),
    "fractional extent": (ONE.replace("[4]", "[4.0]"), r"shape, expected .*, found \[4\.0\]"),
    "65 dimensions": (ONE.replace("[4]", str([1] * 64 + [4])), "shape, expected at most 64"),
    "overflow": (ONE.replace("[4]", str([1 << 32] * 2)), "shape, .* that can be addressed"),
    "overflow to 4": (ONE.replace("[4]", str([1 << 62, 4, 1])), "shape, .* can be addressed"),
    "overflow behind 0": (ONE.replace("[4]", str([0, 1 << 62, 4])), "shape, .* can be addressed"),
    "no offsets": (ONE.replace("data_o", "o"), r"data_offsets, expected \[begin, end\]"),
    "one offset": (ONE.replace("[0, 4]", "[4]"), r"data_offsets, .*, found \[4\]"),
    "negative offset": (ONE.replace("[0, 4]", "[-4, 0]"), r"data_offsets, .*, found \[-4, 0\]"),
    "offsets swapped": (ONE.replace("[0, 4]", "[4, 0]"), "data_offsets, expected 4 bytes of U8"),
    "another size": (ONE.replace("[4]", "[3]"), r"expected 3 bytes of U8 \[3\], found \[0, 4\]"),
    "half a byte": (ONE.replace("U8", "F4").replace("[4]", "[9]"), "expected whole bytes"),
    "begins later": (ONE.replace("[0, 4]", "[1, 5]"), r"expected 0 \(a hole\), found \[1, 5\]"),
    "hole": (TWO.replace("[2, 4]", "[3, 5]"), r"'b': .*expected 2 \(a hole\), found \[3, 5\]"),
    "overlap": (TWO.replace("[2, 4]", "[1, 3]"), r"'b': .*expected 2 \(an overlap\)"),
    "beyond the data": (ONE.replace("4", "5"), "tensor data of 5 bytes, expected at most 4 left"),
    "bytes behind": (ONE.replace("4", "3"), "1 bytes behind the last tensor, expected none"),
}
# What the reference reads: it is laxer than its own text, or than what an array can have.
LAX = {"space before", "overflow behind 0", "65 dimensions"}
NOT_LAX = set(MALFORMED) - LAX


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_file_is_refused(case: str) -> None:
    """One poke for each rule; the message says where and what; the reference refuses it too."""
    header, match = MALFORMED[case]
    file = file_of(header, b"1234") if header is not None else b"\x63" + bytes(7) + b"1234"
    with pytest.raises(runtime.BlobFormatError, match=match) as caught:
        runtime.SafetensorsModule(file)
    assert len(str(caught.value)) < 600
    assert caught.value.offset is not None
    if case in NOT_LAX:
        with pytest.raises(safetensors.SafetensorError):
            safetensors.deserialize(file)


def test_header_that_is_not_utf8_is_refused() -> None:
    """The offset is that of the byte."""
    with pytest.raises(runtime.BlobFormatError, match="0xa: header is not UTF-8, expected JSON"):
        runtime.SafetensorsModule(file_of(b'{"\xff": 1}'))


def test_header_beyond_the_limit_is_refused() -> None:
    """Before anything of it is read."""
    data = (100_000_001).to_bytes(8, "little") + bytes(9)
    with pytest.raises(
        runtime.BlobFormatError, match="header of 100000001 bytes, expected at most 100000000"
    ):
        runtime.SafetensorsModule(data)


def test_header_at_the_limit_is_read() -> None:
    """The reference's limit is ours to the byte."""
    file = file_of(ONE.ljust(100_000_000), b"1234")
    assert bytes(runtime.SafetensorsModule(file).weights["a"].raw) == b"1234"
    assert len(safetensors.deserialize(file)) == 1


@pytest.mark.parametrize(
    ("at", "value", "match"),
    [
        (1, 16, r"a padding of \d+ bytes, expected less than 4096"),
        (1, 255, r"a padding of \d+ bytes, expected less than 4096"),
        (8, 1, "a padding that is not zero, expected zeros"),
    ],
)
def test_padding_is_checked(at: int, value: int, match: str) -> None:
    """It is less than a page, and zeros."""
    blob = bytearray(
        runtime.serialize_module_to_bytes(runtime.SafetensorsModule(file_of(ONE, b"1234")))
    )
    start = blob.index(b"safetensors") + len("safetensors")
    assert blob[start] > 0
    blob[start + at] = value
    with pytest.raises(runtime.BlobFormatError, match=match):
        runtime.deserialize_module_from_bytes(blob)


def test_blob_cut_anywhere_is_refused() -> None:
    """Never another error, never a tree."""
    blob = blob_of(runtime.SafetensorsModule(file_of(TWO, b"1234")))
    for nbytes in range(len(blob)):
        with pytest.raises(runtime.BlobFormatError):
            runtime.deserialize_module_from_bytes(blob[:nbytes])


def test_poked_blob_is_refused_or_a_tree() -> None:
    """Any byte of the payload changed: one of our errors, or weights that can be read."""
    blob = blob_of(runtime.SafetensorsModule(file_of(TWO, b"1234")))
    start = blob.index(b"safetensors")
    for at in range(start, len(blob)):
        for bit in range(8):
            poked = bytearray(blob)
            poked[at] ^= 1 << bit
            try:
                tensors = list(runtime.deserialize_module_from_bytes(poked).weights.values())
            except runtime.PackerError:
                continue
            assert all(len(tensor.raw) <= 4 for tensor in tensors)


def test_header_is_parsed_at_the_first_use_of_the_weights() -> None:
    """A load steps over the file; what is wrong inside is said when it is asked for."""
    blob = blob_of(runtime.SafetensorsModule(file_of(TWO, b"1234")))
    module = runtime.deserialize_module_from_bytes(blob.replace(b'"U8"', b'"XX"', 1))
    for _ in range(2):
        with pytest.raises(runtime.BlobFormatError, match="dtype, expected .*, found 'XX'"):
            _ = module.weights
    assert runtime.serialize_module_to_bytes(module) == blob.replace(b'"U8"', b'"XX"', 1)


@pytest.mark.parametrize(
    ("header", "nbytes"),
    [
        (ONE, 4),
        (TWO, 4),
        ("{}", 0),
        (TWO.replace(":", " :\n ").replace(",", " , "), 4),
        ('{"a": {"dtype": "data_offsets", "data_offsets": [0, 3]}}', 3),
        ('{"data_offsets": {"data_offsets": [0, 9]}}', -1),
        (ONE.replace("data_offsets", "data\\u005foffsets"), -1),
        (ONE.replace("[0, 4]", "[0, 4.0]"), -1),
        (ONE.replace("4", "9" * 30), -1),
        ('{"a', -1),
        ("", 0),
    ],
)
def test_scan_finds_the_end_of_the_data_or_leaves_it_to_the_parser(
    header: str, nbytes: int
) -> None:
    """Only plain headers are scanned: nothing hides in strings, escapes or odd numbers."""
    assert weights_data_nbytes(header.encode()) == nbytes
