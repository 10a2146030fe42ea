"""The structs and unions of a library: the text of ``__packer_structs``.

    packer-structs 1
    struct point 16 8 x:f64@0 y:f64@8      name, size, alignment, member:code@offset
    union number 8 8 i:i32@0 f:f64@0
    struct flags 4 4 low:u32@0+0:3         a bit-field: the lowest bit and the width
    alias uv_loop_t uv_loop_s              a typedef of a type
    opaque archive_entry                   a type without layout, whose pointers C writes
    alias FT_Library FT_LibraryRec_ *      a typedef of a pointer
    other node                             two sources define different structs of this name

A NUL ends the text. Python reads it at the first access of a member.
"""

from __future__ import annotations

from collections.abc import Iterable

from .declaration import Aggregate

FIRST_LINE = "packer-structs 1"


def dump_structs(groups: Iterable[Iterable[Aggregate]], char: str) -> str:
    """Write the text of ``__packer_structs``, without the NUL; empty if there is no struct.

    `char` is the code of a plain char that is a number: arrays and pointers of it are text.
    """
    found: dict[str, set[str]] = {}
    aliases: dict[str, str] = {}
    for aggregate in (aggregate for group in groups for aggregate in group):
        found.setdefault(aggregate.name, set()).add(_line(aggregate, char))
        for name, *star in map(str.split, aggregate.aliases):
            aliases[name] = " ".join([aggregate.name, *star])
    for name, known in found.items():
        known -= {f"opaque {name}"} if len(known) > 1 else set()
    lines = [lines.pop() if len(lines) == 1 else f"other {name}" for name, lines in found.items()]
    lines += [f"alias {name} {own}" for name, own in aliases.items() if name not in found]
    return "\n".join([FIRST_LINE, *lines, ""]) if lines else ""


def _line(aggregate: Aggregate, char: str) -> str:
    if aggregate.kind == "opaque":
        return f"opaque {aggregate.name}"
    members = " ".join(
        f"{m.name}:{char if m.code == 'char' else m.code}@{m.offset}"
        + (f"+{m.bit}:{m.width}" if m.width else "")
        for m in aggregate.members
    )
    return f"{aggregate.kind} {aggregate.name} {aggregate.size} {aggregate.alignment} {members}"
