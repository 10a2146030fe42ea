"""The record of a library's metadata: written, read, and refused in words."""

from __future__ import annotations

import datetime
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import runtime
from runtime.error import BlobFormatError
from runtime.serial.library_metadata import MAX_NBYTES, dump_metadata, parse_metadata

from ...support.process import run_python
from ..test_load import data_symbol

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.booleans()
    | st.integers(-(10**39), 10**39)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)
TABLES = st.dictionaries(TEXTS.filter(lambda name: name not in ("version", "license")), VALUES)


def record(**metadata: object) -> bytes:
    """Bytes as another program may write them."""
    return json.dumps({"schema": 1, "metadata": metadata}).encode() + b"\0"


def nested(depth: int) -> list[object]:
    """Lists in lists."""
    made: list[object] = []
    for _ in range(depth - 1):
        made = [made]
    return made


@given(TABLES)
def test_all_values_are_read_as_they_were_given(values) -> None:
    """Text, numbers, booleans, lists and tables; json.loads agrees."""
    data = dump_metadata(values)
    assert data.endswith(b"\0")
    assert parse_metadata(data) == values
    assert json.loads(data[:-1]) == {"schema": 1, "metadata": values}


def test_version_and_license_are_first_and_tuples_are_lists() -> None:
    """The order of the rest is the caller's."""
    made = parse_metadata(dump_metadata({"b": (1, 2), "license": "MIT", "a": {}, "version": "1"}))
    assert list(made.items()) == [("version", "1"), ("license", "MIT"), ("b", [1, 2]), ("a", {})]


CIRCLE: list[object] = []
CIRCLE.append(CIRCLE)
UNSTORABLE = {
    "null": ({"a": None}, "a: expected text, a number, true, false, a list or a table, found None"),
    "date": ({"a": {"b": [1, datetime.date(2026, 1, 2)]}}, r"a.b\[1\]: expected text, .* found da"),
    "bytes": ({"a": b"x"}, "a: expected text, a number, .* found b'x'"),
    "NaN": ({"a": [float("nan")]}, r"a\[0\]: expected a finite number, found nan"),
    "infinity": ({"a": float("-inf")}, "a: expected a finite number, found -inf"),
    "key": ({"a": {1: 2}}, "a: expected names that are text, found 1"),
    "top key": ({1: 2}, "expected names that are text, found 1"),
    "surrogate": ({"a": "\udc80"}, "'a': expected Unicode, found half a surrogate pair"),
    "surrogate in a key": ({"\udc80": 1}, r"'\\udc80': expected Unicode, found half a surrogate"),
    "circle": ({"a": CIRCLE}, "metadata of more than 62 levels, expected at most that many"),
    "digits": ({"a": 10**40}, "JSON of 41 digits in a number, expected at most 40"),
    "size": ({"a": "x" * MAX_NBYTES}, r"metadata of 10486\d\d bytes, expected at most 1048576"),
    "values": ({"a": [0] * 400_001}, r"JSON of 40000\d values, expected at most 400000"),
    "version": ({"version": 1.0}, "version: expected text, found 1.0"),
    "license": ({"license": " "}, "license: expected text, found ' '"),
    "no table": ([1], r"expected a table, found \[1\]"),
}


@pytest.mark.parametrize("case", UNSTORABLE)
def test_values_that_cannot_be_stored_are_named(case) -> None:
    """The error has the place of the value, and what is expected there."""
    values, text = UNSTORABLE[case]
    with pytest.raises(ValueError, match=f"^{text}"):
        dump_metadata(values)


def test_sixty_two_levels_are_accepted() -> None:
    """One more is refused, by the writer and by the reader."""
    deepest = {"a": nested(62)}
    assert parse_metadata(dump_metadata(deepest)) == deepest
    with pytest.raises(ValueError, match="more than 62 levels"):
        dump_metadata({"a": nested(63)})
    with pytest.raises(BlobFormatError, match="JSON of 65 levels, expected at most 64"):
        parse_metadata(record(a=nested(63)))


MALFORMED = {
    "no NUL": (record()[:-1], "text without a NUL at its end"),
    "not JSON": (b"version=1\0", "not JSON"),
    "NUL inside": (b'{"schema":1,\0"metadata":{}}\0', "not JSON"),
    "not UTF-8": (b'{"schema":1,"metadata":{"a":"\xff"}}\0', "can't decode byte 0xff"),
    "no object": (b"[]\0", "schema None, expected 1"),
    "no schema": (b'{"metadata":{}}\0', "schema None, expected 1"),
    "newer": (b'{"schema":2,"metadata":{}}\0', "schema 2, expected 1"),
    "schema of true": (b'{"schema":true,"metadata":{}}\0', "schema True, expected 1"),
    "no metadata": (b'{"schema":1}\0', "expected a table, found None"),
    "list": (b'{"schema":1,"metadata":[]}\0', r"expected a table, found \[\]"),
    "twice": (b'{"schema":1,"metadata":{"a":1,"a":2}}\0', "key 'a' occurs twice"),
    "null": (record(a=None), "a: expected text"),
    "NaN": (b'{"schema":1,"metadata":{"a":NaN}}\0', "NaN, expected a finite number"),
    "version": (record(version=["1"]), r"version: expected text, found \['1'\]"),
    "size": (record(a="x" * MAX_NBYTES), "bytes, expected at most 1048576"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_record_is_refused_when_it_is_read(case, compile_library) -> None:
    """The library loads, since nothing else depends on the record; its code can be called."""
    data, text = MALFORMED[case]
    with pytest.raises(BlobFormatError, match=f"^lib.so: __packer_library at 0x0: .*{text}"):
        parse_metadata(data, path="lib.so")
    if len(data) < 1000:
        module = runtime.load(compile_library(data_symbol("__packer_library", data)))
        with pytest.raises(BlobFormatError, match=text) as caught:
            _ = module.metadata
        assert str(caught.value).startswith(f"{module.path}: __packer_library at 0x0: ")
        assert caught.value.path == module.path


def test_record_of_another_program_is_read(compile_library) -> None:
    """Unknown fields beside the metadata are ignored, as in the manifest."""
    data = b'{"schema": 1, "made": "elsewhere", "metadata": {"version": "1"}}\0'
    module = runtime.load(compile_library(data_symbol("__packer_library", data)))
    assert module.metadata == {"version": "1"}


def test_metadata_is_read_only_and_a_copy(compile_library) -> None:
    """A caller that changes a nested value changes its own copy."""
    module = runtime.load(compile_library(data_symbol("__packer_library", record(a=[1]))))
    with pytest.raises(TypeError, match="does not support item assignment"):
        module.metadata["version"] = "2"
    module.metadata["a"].append(2)
    assert module.metadata == {"a": [1]}


def test_other_modules_have_none(compile_library) -> None:
    """Without a record, and modules that no library contains."""
    assert runtime.load(compile_library("int x;")).metadata == {}
    assert runtime.ConstLoaderModule({}, {}).metadata == {}
    with pytest.raises(TypeError):
        runtime.Module().metadata["a"] = 1  # type: ignore[index]


def test_load_does_not_read_it(compile_library) -> None:
    """The first access imports the reader."""
    path = compile_library(data_symbol("__packer_library", record(version="1")))
    code = (
        "import sys, runtime\n"
        f"module = runtime.load({str(path)!r})\n"
        "late = {'json', 'runtime.serial.library_metadata', 'runtime.serial.strict_json'}\n"
        "imported = late & set(sys.modules)\n"
        "import json\n"
        "print(json.dumps([sorted(imported), dict(module.metadata)]))\n"
    )
    assert run_python(code) == [[], {"version": "1"}]
