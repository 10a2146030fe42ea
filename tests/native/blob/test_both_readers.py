"""libdso's reader of blobs accepts what Python's does, and refuses the rest with the same texts."""

from __future__ import annotations

import json

import pytest

from ...fuzz.reader_mutants import Mutants, make_inputs
from ...support.both_readers import FORMATS, NativeReader, is_refused, read_in_python
from ...support.paths import DATA

SEED, NUM_MUTANTS = 17, 3000


@pytest.fixture(scope="module")
def native(tmp_path_factory) -> NativeReader:
    """The reader of libdso."""
    return NativeReader(tmp_path_factory.mktemp("reader"))


def test_valid_inputs_are_accepted(native) -> None:
    """Each type of module, both dialects, carried types, parameters: the same description."""
    for what, data, manifest in make_inputs():
        found = native.read(what, data.data, manifest and manifest.data)
        assert found == read_in_python(what, data.data, manifest and manifest.data)
        assert not is_refused(found)


def test_files_of_tests_data(native) -> None:
    """Golden and malformed files, read as each format."""
    paths = [path for path in sorted(DATA.rglob("*")) if path.suffix in (".bin", ".params")]
    assert len(paths) > 70
    for path in paths:
        data = path.read_bytes()
        for what in FORMATS:
            assert native.read(what, data) == read_in_python(what, data), (path, what)


@pytest.mark.parametrize("first", range(0, NUM_MUTANTS, 1000))
def test_mutants(native, first) -> None:
    """Damaged inputs: the same verdict, the same description or text."""
    mutants = Mutants(SEED)
    for number in range(first, first + 1000):
        what, data, manifest = mutants.make(number)
        found = native.read(what, data.data, manifest and manifest.data)
        assert found == read_in_python(what, data.data, manifest and manifest.data), number


# ---- What mutants do not reach


def words(*numbers: int) -> bytes:
    """u64s."""
    return b"".join(number.to_bytes(8, "little") for number in numbers)


def entry(key: str, payload: bytes = b"") -> bytes:
    """An entry of dialect tvm."""
    return words(len(key)) + key.encode() + payload


def ndarray(extents: list[int], nbytes: int, dtype: bytes = b"\2\x20\1\0") -> bytes:
    """An NDArray with 16 bytes of data."""
    shape = words(*(extent % (1 << 64) for extent in extents))
    head = words(0xDD5E40F096B4A13F, 0) + b"\1" + bytes(7) + len(extents).to_bytes(4, "little")
    return head + dtype + shape + words(nbytes % (1 << 64)) + bytes(16)


def params(*arrays: bytes, names: list[str]) -> bytes:
    """A params dict file."""
    text = b"".join(words(len(name.encode())) + name.encode() for name in names)
    return words(0xF7E58D4F05049CB7, 0, len(names)) + text + words(len(arrays)) + b"".join(arrays)


HUGE = (1 << 63) - 1
CASES = {
    "product of 64 extents": ("params", params(ndarray([HUGE] * 64, 16), names=["a"])),
    "product beyond the address space, and 0": (
        *("params", params(ndarray([HUGE, HUGE, 0], 16), names=["a"])),
    ),
    "negative size": ("params", params(ndarray([2**61], -(2**63)), names=["a"])),
    "65535 lanes of one bit": (
        *("params", params(ndarray([2**48], -(2**48), b"\1\1\xff\xff"), names=["a"])),
    ),
    "lanes left out": ("params", params(ndarray([4], 16, b"\2\x20\4\0"), names=["a"])),
    "a byte for each int4": ("params", params(ndarray([16], 16, b"\0\4\1\0"), names=["a"])),
    "NUL in a name": (
        *("params", params(ndarray([4], 16), ndarray([4], 16), names=["a\0b", "a"])),
    ),
    "name that is not UTF-8": (
        *(
            "params",
            params(ndarray([4], 16), names=["a"]).replace(words(1) + b"a", words(1) + b"\xff"),
        ),
    ),
    "equal names": ("params", params(names=[*"abcdefghij", "k'", 'l"', "a"])),
    "empty name": ("params", params(names=["é\n" * 60, ""])),
    "text that is not UTF-8": (
        *("tvm", words(1) + entry("c", words(3) + b"\xed\xa0\x80" + words(0, 0, 0))),
    ),
    "key that is not a key": ("tvm", words(1) + entry("\x7f'\"\\\n") + bytes(20)),
    "no tree": ("tvm", words(2) + entry("metadata_module") * 2),
    "library without a tree": ("tvm", words(2) + entry("metadata_module") + entry("_lib")),
    "two trees": ("tvm", words(2) + entry("_import_tree", words(0, 0)) * 2),
    "tree over nothing": ("tvm", words(1) + entry("_import_tree", words(1, 0, 0))),
    "empty": ("tvm", words(0)),
    "empty, sized": ("tvm-ffi", words(0, 0)),
    "key of the tree, sized": ("tvm-ffi", words(2, 0, 0, 0) + entry("_import_tree", words(0))),
    "child written twice": (
        *("tvm", words(3) + entry("c_json", words(0, 0, 0)) + entry("metadata_module")),
        *(entry("_import_tree", words(3, 0, 3, 3, 3, 1, 1, 1)),),
    ),
    "type without a loader": ("tvm", words(1) + entry("strange") + bytes(9)),
    "type without a loader, sized": ("tvm-ffi", words(2, 0, 0, 0) + entry("strange", words(0))),
    "NUL in the name of a graph": (
        *("tvm", words(1) + entry("GraphExecutorFactory", words(0, 0, 0, 3) + b"a\0b")),
    ),
    "big-endian": ("symbol", (8).to_bytes(8, "big") + words(0)),
    "no header": ("symbol", b"1234567"),
}


@pytest.mark.parametrize("name", CASES)
def test_case(native, name) -> None:
    """Inputs at the limits."""
    what, *parts = CASES[name]
    data = b"".join(parts)
    assert native.read(what, data) == read_in_python(what, data)


def test_65536_modules(native) -> None:
    """A chain of so many is accepted, one more is refused; a comb of all children is, too."""
    for count in (65_536, 65_537):
        tree = words(count + 1, *range(count), count - 1, count - 1, *range(1, count))
        data = words(count + 1) + entry("metadata_module") * count + entry("_import_tree", tree)
        assert native.read("tvm", data) == read_in_python("tvm", data)


MANIFESTS = {
    "not listed": {"entries": []},
    "another key": {"entries": [{"type_key": "other", "offset": 8, "nbytes": 19}]},
    "too short": {"entries": [{"type_key": "strange", "offset": 8, "nbytes": 3}]},
    "not at a key": {"entries": [{"type_key": "strange", "offset": 8, "nbytes": 18}]},
    "past the end": {"entries": [{"type_key": "strange", "offset": 8, "nbytes": (1 << 63) - 1}]},
    "beyond int64": {"entries": [{"type_key": "strange", "offset": 8, "nbytes": 1 << 63}]},
    "last of two": {
        "entries": [
            {"type_key": "other", "offset": 8, "nbytes": 1},
            {"type_key": "strange", "offset": 8, "nbytes": 19},
        ]
    },
    "offset is true": {"entries": [{"type_key": "strange", "offset": True, "nbytes": 19}]},
    "offset is text": {"entries": [{"type_key": "strange", "offset": "8", "nbytes": 19}]},
    "no entries": {"entries": None},
    "entry is text": {"entries": ["strange"]},
    "schema 2": {"schema": 2},
    "no target": {"entries": [], "target": None},
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifest(native, name) -> None:
    """A payload without a loader is carried if the manifest has its end."""
    data = words(2) + entry("strange", b"1234") + entry("metadata_module")
    fields = {"schema": 1, "producer": "p", "target": "t", **MANIFESTS[name]}
    for text in (json.dumps(fields).encode(), json.dumps(fields).encode() + b"\0\0"):
        assert native.read("tvm", data, text) == read_in_python("tvm", data, text)


@pytest.mark.parametrize(
    "text", [b"", b"\0", b"[]", b"1", b"{", b"\xff", b'{"schema": 1, "schema": 1}']
)
def test_manifest_that_is_none(native, text) -> None:
    """It is refused once it is needed."""
    for data in (words(1) + entry("strange"), words(1) + entry("metadata_module")):
        assert native.read("tvm", data, text) == read_in_python("tvm", data, text)


def test_without_memory(native) -> None:
    """Each allocation that fails is an error, and nothing remains allocated or referenced."""
    for what, data, manifest in make_inputs():
        expected = native.read(what, data.data, manifest and manifest.data)
        for n in range(1, 10_000):
            native.fail_at(n)
            found = native.read(what, data.data, manifest and manifest.data)
            if native.fail_at(0) > 0:
                break
            assert "OutOfMemoryError" in found or "no memory" in found or found == expected
        assert found == expected
