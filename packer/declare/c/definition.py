"""Structs and unions as C text that needs no other declaration: the glue passes them by value."""

from __future__ import annotations

from .layout import LayoutError, alignment_limit, alignment_of
from .numbers import enum_code
from .scope import Scope
from .types import Array, CType, Pointer, Tagged

_MOST_ALIGNED = 16  # that memory of Python has


def definition_of(type_: Tagged, scope: Scope) -> str:
    """Return ``union { int32_t whole; double real; }``: each member has the ABI of its type.

    Raises LayoutError for a placement that only a pragma can write.
    """
    members = []
    for member in type_.members or ():
        width = f" : {scope.extent(member.bits)}" if member.bits else ""
        text = f"{_declared(member.type, member.name, scope)}{width}"
        members.append(f"{text}{_placement(member.attributes)};")
    if 1 < alignment_limit(type_.attributes) < 16:
        raise LayoutError(f"{type_.spelling} is placed by #pragma pack")
    return f"{type_.kind} {{ {' '.join(members)} }}{_placement(type_.attributes)}"


def _placement(attributes: str) -> str:
    """Return the attributes that place a member or a struct."""
    aligned = alignment_of(attributes)
    if aligned > _MOST_ALIGNED:
        raise LayoutError(f"it is aligned to {aligned} bytes, expected at most {_MOST_ALIGNED}")
    is_packed = "packed" in attributes or alignment_limit(attributes) == 1
    words = ["packed"] * is_packed + [f"aligned({aligned})"] * bool(aligned)
    return f" __attribute__(({', '.join(words)}))" if words else ""


def _declared(type_: CType, name: str, scope: Scope) -> str:
    found = scope.resolved(type_)
    if isinstance(found, Array):
        count = scope.extent(found.extent) if found.extent else 0
        return _declared(found.item, f"{name}[{count}]", scope)
    if isinstance(found, Pointer):
        return f"void *{name}"
    if isinstance(found, Tagged) and found.kind != "enum":
        return f"{definition_of(found, scope)} {name}".rstrip()
    if isinstance(found, Tagged):
        code = enum_code(found, scope)
        return f"{'u' * (code[0] == 'u')}int{code[1:]}_t {name}".rstrip()
    words = " ".join(getattr(found, "words", ()))
    return f"{'uint8_t' if words in ('_Bool', 'bool') else words} {name}".rstrip()
