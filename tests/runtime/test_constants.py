"""The record of constants: what is written is read, and damage is refused."""

from __future__ import annotations

import pytest

from runtime.constants import ConstantsRecord, Enum, dump_constants, named_values, parse_constants
from runtime.error import BlobFormatError


def record() -> ConstantsRecord:
    """A record with every kind of line."""
    made = ConstantsRecord()
    made.values = {"N": -(2**63), "F": 0.1, "T": 'a "b"\n\0é', "B": b"\xff\0", "E": b""}
    made.enums = [Enum("color", {"RED": 1, "mro": 2})]
    made.globals, made.left_out = {"count": "i32", "t": "&f32[][3]"}, {"x": "a reason"}
    return made


def test_a_record_survives() -> None:
    """Numbers to the last bit, text with any character."""
    text = dump_constants(record())
    assert dump_constants(parse_constants(text.encode() + b"\0")) == text
    assert parse_constants(text.encode() + b"\0").values == record().values
    assert dump_constants(ConstantsRecord()) == ""
    assert parse_constants(None).plain() == {}


def test_a_name_that_no_enum_of_python_can_have_is_an_int() -> None:
    """The others are members."""
    found = named_values(record())
    assert (found["mro"], found["RED"].name) == (2, "RED")


@pytest.mark.parametrize(
    "text",
    [
        b"packer-constants 1\nint N 1\n",
        b"packer-constants 2\n\0",
        b"packer-constants 1\nint N x\n\0",
        b"packer-constants 1\nint N " + b"9" * 99 + b"\n\0",
        b"packer-constants 1\nfloat N\n\0",
        b"packer-constants 1\ntext N [\n\0",
        b"packer-constants 1\nbytes N f\n\0",
        b"packer-constants 1\nenum e A\n\0",
        b"packer-constants 1\nglobal t i32[x]\n\0",
        b"packer-constants 1\nint N \xff\n\0",
    ],
)
def test_a_damaged_record_is_refused(text: bytes) -> None:
    """With the path, the line and what to do."""
    with pytest.raises(BlobFormatError, match="^a.so: __packer_constants: .*export the library"):
        parse_constants(text, "a.so")


def test_unknown_lines_are_skipped() -> None:
    """A newer writer may add some."""
    assert parse_constants(b"packer-constants 1\nnew N 1\nint A 1\n\0").values == {"A": 1}
