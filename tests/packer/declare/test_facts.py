"""Facts: the text of a function, and back."""

from __future__ import annotations

import pytest

from packer.declare.declaration import Declaration, Field, Struct
from packer.declare.facts import dump_facts, parse_facts

from ...support.every_code import DECLARATIONS, declare

DOUBLE = Field("x", "f64", 0)
FULL = declare(
    "opened",
    "const char * path:str; struct s * s:*{s}; long n:i64; foo ** made:*@foo; char * c:*char",
    "i32",
    "int",
    out=("made", "c"),
    free="foo_free",
    lifetime="s",
    defaults={"n": 5},
    structs=(Struct("s", "struct s", 8, 8, (DOUBLE,)),),
    doc="struct doc\nout x",
)


def test_each_property_is_a_line() -> None:
    """In the order of the format; out-parameters have the codes of their values."""
    assert dump_facts(FULL).splitlines()[3:] == [
        f"type {FULL.text}",
        "params path:str s:*{s} n:i64",
        "out made:@foo c:char",
        "result i32",
        "default n 5",
        "free foo_free",
        "lifetime s",
        "struct s 8 8 x:f64@0",
        "doc struct doc",
        "out x",
    ]


@pytest.mark.parametrize("declaration", [*DECLARATIONS, FULL], ids=lambda d: d.name)
def test_facts_are_read_as_they_were_written(declaration: Declaration) -> None:
    """Everything but the spelling of structs, and what releases text, which the wrapper does."""
    facts = parse_facts(dump_facts(declaration).encode() + b"\0")
    assert facts.params == tuple((p.name, p.code) for p in declaration.passed)
    assert facts.out == tuple((p.name, p.code) for p in declaration.returned)
    assert (facts.result, facts.type, facts.doc) == (
        declaration.result,
        declaration.text,
        declaration.doc,
    )
    assert facts.free == (declaration.free if declaration.handles else "")
    assert facts.lifetime == declaration.lifetime
    assert facts.defaults == declaration.defaults
    assert facts.structs == tuple(s._replace(spelling="") for s in declaration.structs)


def _text(*lines: str) -> bytes:
    return "\n".join(["packer-function 1", *lines, ""]).encode() + b"\0"


def test_unknown_keys_and_codes_are_kept() -> None:
    """A newer writer may add both."""
    facts = parse_facts(_text("colour blue", "params x:i256 y:&vec<4>", "result future"))
    assert facts.params == (("x", "i256"), ("y", "&vec<4>"))
    assert facts.result == "future"


def test_a_field_of_a_struct_may_be_a_handle() -> None:
    """Its code begins with the character that precedes the offset."""
    (struct,) = parse_facts(_text("struct s 16 8 x:f64@0 c:@counter@8")).structs
    assert struct.fields == (Field("x", "f64", 0), Field("c", "@counter", 8))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("out x", "out 'x', expected name:code"),
        ("params x", "params 'x', expected name:code"),
        ("default x", "default 'x', expected a name and JSON"),
        ("default x {", "default 'x {', expected a name and JSON"),
        ("default x " + "[" * 100_000, "expected a name and JSON"),
        ("struct s", "struct 's', expected name size alignment field:code@offset ..."),
        ("struct s 8", "expected name size alignment"),
        ("struct s 8 x", "expected name size alignment"),
        ("struct s 8 8 x:f64", "expected name size alignment"),
        ("struct s 8 8 x@1", "expected name size alignment"),
        ("struct s 8 8 x:f64@-1", "expected name size alignment"),
        ("struct s 9999999999999999999 8", "expected name size alignment"),
    ],
)
def test_a_line_of_another_form_is_refused(line: str, message: str) -> None:
    """The message says what was expected."""
    with pytest.raises(ValueError, match="expected") as caught:
        parse_facts(_text(line))
    assert message in str(caught.value)
