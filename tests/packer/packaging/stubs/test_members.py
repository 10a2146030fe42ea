"""Members of structs in stubs."""

from __future__ import annotations

from pathlib import Path

import packer

CODE = """
typedef struct node {
  struct node *next; const char *name; double value; int str; unsigned low : 3; char tag[4];
  struct { long a; } in, part; int marks[3]; int kind; struct other *other; long double exact;
} node;
node *node_self(node *n) { return n; }
"""


def test_handles_have_the_members_of_their_struct(tmp_path: Path) -> None:
    """Numbers, text, parts and targets have types; a handle's own names are left out."""
    host = packer.CSourceModule(CODE, functions="auto")
    text = packer.stub_of(packer.export_library(host, tmp_path / "nodes.so"))
    body = text.partition("class node(Handle):")[2].partition("@type_check_only")[0]
    lines = [line.strip() for line in body.splitlines() if ": " in line and '"' not in line]
    hidden = [line for line in lines if "field" in line]
    assert [line for line in lines if line not in hidden and not line.startswith("#")] == [
        "next: node | None",
        "value: float",
        "str: int",
        "low: int",
        "part: node_part",
        "marks: Handle",
        "other: Handle | None",
        "exact: float",
    ]
    assert [line.partition(":")[0] for line in hidden] == ["name", "tag", "_field", "_field_2"]
    assert "class node_part(Handle):" in text and "    a: int" in text
