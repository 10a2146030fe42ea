"""Blobs, symbols and parameters: what the core accepts, Python reads and writes again."""

from __future__ import annotations

import json
import re

import pytest

import runtime
from runtime import _core

from ...fuzz.reader_mutants import Mutants, make_inputs
from ...support.paths import DATA
from ...support.payloads import FORMATS, refusal

SEED, NUM_MUTANTS = 17, 2000


def test_files_of_tests_data() -> None:
    """Golden and malformed files, read as each format."""
    paths = [path for path in sorted(DATA.rglob("*")) if path.suffix in (".bin", ".params")]
    assert len(paths) > 70
    for path in paths:
        for what in FORMATS:
            refusal(what, path.read_bytes())


def test_mutants() -> None:
    """Damaged inputs; and what is valid is accepted."""
    mutants = Mutants(SEED)
    found = [mutants.make(number) for number in range(NUM_MUTANTS)]
    for what, data, manifest in (*mutants.inputs, *found):
        is_refused = refusal(what, data.data, manifest and manifest.data) != ""
        assert not is_refused or (what, data, manifest) not in mutants.inputs


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
    "negative size": ("params", params(ndarray([2**61], -(2**63)), names=["a"])),
    "65535 lanes of one bit": (
        *("params", params(ndarray([2**48], -(2**48), b"\1\1\xff\xff"), names=["a"])),
    ),
    "lanes left out": ("params", params(ndarray([4], 16, b"\2\x20\4\0"), names=["a"])),
    "NUL in a name": (
        *("params", params(ndarray([4], 16), ndarray([4], 16), names=["a\0b", "a"])),
    ),
    "equal names": ("params", params(names=[*"abcdefghij", "k'", 'l"', "a"])),
    "empty name": ("params", params(names=["é\n" * 60, ""])),
    "text that is not UTF-8": (
        *("tvm", words(1) + entry("c", words(3) + b"\xed\xa0\x80" + words(0, 0, 0))),
    ),
    "no tree": ("tvm", words(2) + entry("metadata_module") * 2),
    "empty": ("tvm", words(0)),
    "empty, sized": ("tvm-ffi", words(0, 0)),
    "key of the tree, sized": ("tvm-ffi", words(2, 0, 0, 0) + entry("_import_tree", words(0))),
    "type without a loader": ("tvm", words(1) + entry("strange") + bytes(9)),
    "type without a loader, sized": ("tvm-ffi", words(2, 0, 0, 0) + entry("strange", words(0))),
    "NUL in the name of a graph": (
        *("tvm", words(1) + entry("GraphExecutorFactory", words(0, 0, 0, 3) + b"a\0b")),
    ),
}


# Why each of these cases is refused; the others are read.
REFUSED = {
    "product of 64 extents": "data_byte_size 16, expected 2264657388.*, of a shape .* is beyond",
    "negative size": "data_byte_size -9223372036854775808, expected 9223372036854775808, of a",
    "65535 lanes of one bit": "data_byte_size -281474976710656, expected 18446462598732840960",
    "equal names": "array names 'a', 'b', .*, 'h' and 5 more, expected distinct ones",
    "empty name": r"array names 'é\\né\\n.*\.\.\., '', expected distinct ones",
    "empty, sized": "at 0x0: an import tree over no modules",
    "key of the tree, sized": "at 0x20: an import tree over no modules",
    "type without a loader": "LoaderNotFoundError: a/b.so: tvm at 0x8: module type 'strange'",
}


@pytest.mark.parametrize("name", CASES)
def test_case(name) -> None:
    """Inputs at the limits."""
    what, *parts = CASES[name]
    assert re.search(REFUSED.get(name, "^$"), refusal(what, b"".join(parts)))


def test_65536_modules() -> None:
    """A chain of so many is accepted, one more is refused."""
    for count, why in ((65_536, "^$"), (65_537, "65538 entries, expected at most 65537")):
        tree = words(count + 1, *range(count), count - 1, count - 1, *range(1, count))
        data = words(count + 1) + entry("metadata_module") * count + entry("_import_tree", tree)
        assert re.search(why, refusal("tvm", data))


def listed(**fields: object) -> dict[str, object]:
    """A manifest of one entry."""
    return {"entries": [{"type_key": "strange", "offset": 8, "nbytes": 19, **fields}]}


MANIFESTS = {
    "not listed": ({"entries": []}, "at 0x8: entry 'strange' that __packer_manifest does not list"),
    "another key": (listed(type_key="other"), "'strange' that __packer_manifest does not list"),
    "too short": (listed(nbytes=3), "'strange' that __packer_manifest does not list"),
    "not at a key": (
        listed(nbytes=18),
        "at 0x1a: the end of 'strange' in .*, expected the next key",
    ),
    "past the end": (listed(nbytes=(1 << 63) - 1), "a payload of 92.* bytes, expected at most 27"),
    "beyond int64": (listed(nbytes=1 << 63), "nbytes 9223372036854775808, expected a size"),
    "last of two": (
        {"entries": [{"type_key": "other", "offset": 8, "nbytes": 1}, *listed()["entries"]]},
        "^$",
    ),
    "offset is true": (listed(offset=True), "offset True, expected a size, expected a manifest"),
    "offset is text": (listed(offset="8"), "offset '8', expected a size"),
    "no entries": ({"entries": None}, "entries None, expected a list"),
    "entry is text": ({"entries": ["strange"]}, "offset None, expected a size"),
    "schema 2": ({"schema": 2}, "schema 2, expected 1; install a newer runtime"),
    "no target": ({"entries": [], "target": None}, "target None, expected a text"),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifest(name) -> None:
    """A payload without a loader is carried if the manifest has its end."""
    changed, why = MANIFESTS[name]
    data = words(2) + entry("strange", b"1234") + entry("metadata_module")
    fields = {"schema": 1, "producer": "p", "target": "t", **changed}
    for text in (json.dumps(fields).encode(), json.dumps(fields).encode() + b"\0\0"):
        assert re.search(why, refusal("tvm", data, text))


NO_MANIFESTS = {
    b"": "not JSON: expecting value at 0x0, expected a manifest",
    b"\0": "not JSON: expecting value at 0x0, expected a manifest",
    b"[]": "schema None, expected a size",
    b"1": "schema None, expected a size",
    b"{": "not JSON: expecting property name enclosed in double quotes at 0x1",
    b"\xff": "'utf-8' codec can't decode byte 0xff in position 0",
    b'{"schema": 1, "schema": 1}': "key 'schema' occurs twice, expected once",
}


@pytest.mark.parametrize("text", NO_MANIFESTS)
def test_manifest_that_is_none(text) -> None:
    """It is refused once it is needed."""
    assert NO_MANIFESTS[text] in refusal("tvm", words(1) + entry("strange"), text)
    assert refusal("tvm", words(1) + entry("metadata_module"), text) == ""


def test_without_memory() -> None:
    """Each allocation of the core that fails is an error; the next read succeeds."""
    for what, data, manifest in make_inputs():
        for n in range(1, 10_000):
            _core.fail_allocation(n)
            try:
                found = refusal(what, data.data, manifest and manifest.data)
            except runtime.OutOfMemoryError as error:
                found = str(error)
            if _core.fail_allocation(0) > 0:
                break
            assert found == "" or "memory" in found
        assert found == ""
