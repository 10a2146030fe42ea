"""The record of structs: what it lists, what it leaves out, and readers of damaged ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import packer
import runtime
from packer.declare.struct_record import dump_structs
from runtime.abi import STRUCTS
from runtime.structs.record import types_of


def record(code: str, folder: Path, **options: Any) -> list[str]:
    """Export a source; return the lines of its record after the first one."""
    host = packer.CSourceModule(code, functions="auto", **options)
    model = runtime.load(packer.export_library(host, folder / "s.so"))
    data = model._library.data(STRUCTS)
    return bytes(data)[:-1].decode().splitlines()[1:] if data else []


def test_types_are_found_through_pointers_and_callbacks(tmp_path: Path) -> None:
    """Targets of pointers, parts, and structs of callbacks are listed after their parts."""
    code = """
    struct leaf; union both { int i; double d; };
    struct part { short s; };
    typedef struct tree { struct tree *up; const union both *both; struct part parts[2];
      const struct leaf *leaf; char text[4]; long (*f)(int); float **rows; } tree;
    struct event { int kind : 4; };
    void walk(tree *t, void (*f)(const struct event *e)) { (void)t, (void)f; }
    """
    assert sorted(record(code, tmp_path)) == [
        "struct event 4 4 kind:i32@0+0:4",
        "struct part 2 2 s:i16@0",
        "struct tree 56 8 up:*{tree}@0 both:&{both}@8 parts:{part}[2]@16 leaf:@leaf@24"
        " text:char[4]@32 f:*fn(i32)i64@40 rows:**f32@48",
        "union both 8 8 i:i32@0 d:f64@0",
    ]


@pytest.mark.parametrize(
    "members",
    [
        "int a __attribute__((aligned));",
        "int a; _Alignas(double) char c;",
        "char a; int b : 3; } __attribute__((packed)) dummy; struct t {",
        "char a; int : 0; char b;",
        "int v __attribute__((vector_size(16)));",
    ],
)
def test_layouts_that_are_not_computed_have_no_members(tmp_path: Path, members: str) -> None:
    """A struct that an attribute or an unknown length places is a handle without members."""
    code = f"struct s {{ {members} }}; struct s *same(struct s *p) {{ return p; }}"
    lines = record(code, tmp_path)
    assert not any(line.startswith("struct s ") for line in lines)


def test_packed_structs_have_the_layout_of_the_compiler(tmp_path: Path) -> None:
    """A packed struct and #pragma pack are computed, and confirmed."""
    code = """
    struct __attribute__((packed)) a { char c; double d; };
    #pragma pack(push, 2)
    struct b { char c; double d; };
    #pragma pack(pop)
    void use(struct a *a, struct b *b) { (void)a, (void)b; }
    """
    assert sorted(record(code, tmp_path)) == [
        "struct a 9 1 c:i8@0 d:f64@1",
        "struct b 10 2 c:i8@0 d:f64@2",
    ]


def test_cpp_and_libraries_without_structs(tmp_path: Path) -> None:
    """C++ types are listed likewise; a library without structs has no record."""
    code = 'struct s { bool b; struct { int x; } in; };\nextern "C" int f(s *p) { return p->in.x; }'
    lines = record(code, tmp_path, fmt="cc")
    assert lines == ["struct s.in 4 4 x:i32@0", "struct s 8 4 b:bool@0 in:{s.in}@4"]
    assert record("int f(int x) { return x; }", tmp_path) == []


def test_two_structs_of_one_name_have_no_members(tmp_path: Path) -> None:
    """Two sources that define different structs of a name: the record says so."""
    one = "struct s { int a; }; struct s *one(struct s *p) { return p; }"
    other = "struct s { double a; }; struct s *other(struct s *p) { return p; }"
    hosts = [packer.CSourceModule(code, functions="auto") for code in (one, other)]
    hosts[0].import_module(hosts[1])
    path = packer.export_library(hosts[0], tmp_path / "two.so")
    model = runtime.load(path)
    assert bytes(model._library.data(STRUCTS))[:-1].decode().splitlines()[1:] == ["other s"]
    with pytest.raises(ValueError, match="new: expected a struct that functions"):
        runtime.new(model, "struct s")
    assert dump_structs([], "i8") == ""


class Damaged:
    """A library whose record is this text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def data(self, name: str) -> bytes:
        """Return the record."""
        return self.text.encode() + b"\0"


@pytest.mark.parametrize(
    "text",
    [
        "packer-structs 2\n",
        "packer-structs 1\nstruct s 8\n",
        "packer-structs 1\nstruct s 8 8 x\n",
        "packer-structs 1\nstruct s 8 8 x:f64@8\n",
        "packer-structs 1\nstruct s 8 8 x:f64@-1\n",
        "packer-structs 1\nstruct s 8 8 x:i32[3]@0\n",
        "packer-structs 1\nstruct s 8 8 x:i32@0+30:3\n",
        "packer-structs 1\nstruct s 8 8 x:{s}[2]@0\n",
        "packer-structs 1\nstruct s 8 8 x:i32[99999999999999999999999]@0\n",
        "packer-structs 1\nstruct s 8 8 x:" + "*" * 9999 + "i32@0\n",
        "packer-structs 1\nstruct s 16 16 x:i128@0+3:4\n",
    ],
)
def test_damaged_records_are_refused(text: str) -> None:
    """A member that its struct does not contain, or another text, is an error."""
    with pytest.raises(ValueError, match="export again"):
        types_of(Damaged(text))
