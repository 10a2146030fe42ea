"""Structs as bytes: from mappings and tuples, and back into a mapping after the call."""

from __future__ import annotations

import struct
from collections.abc import Mapping, MutableMapping

from .._core import Handle, buffer_address, handle_at, handle_belongs, memory_at
from ..error import near_names, shown
from .arrays import has_dtype, packed_array
from .layout import (
    C_NAMES,
    COMPLEX,
    FORMATS,
    Layout,
    Layouts,
    Refused,
    format_of,
    size_of,
    struct_name,
)
from .numbers import halves, store_number
from .text import encoded_text, text_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._core import Function


def name_at(parent: str, name: str) -> str:
    """Return a field's name as messages show it: ``from.x``."""
    return f"{parent}.{name}" if parent else name


def ordered(layout: Layout, value: Any, where: str) -> list[Any]:
    """Return the fields' values in order; `...` for a field that a mapping omits."""
    names = [field.name for field in layout.fields]
    if isinstance(value, Mapping):
        for name in value:
            if name not in names:
                text = f"expected a field of struct {layout.name!r}, found {shown(name)}"
                raise Refused(TypeError, _in(where, text) + near_names(str(name), names))
        return [value.get(name, ...) for name in names]
    if isinstance(value, tuple | list) and len(value) == len(names):
        return list(value)
    text = f"expected a mapping or a tuple of {len(names)} fields ({', '.join(names)}), found "
    raise Refused(TypeError, _in(where, text) + shown(value))


def _in(where: str, text: str) -> str:
    return f"field {where!r}: {text}" if where else text


def items_of(code: str, extents: tuple[int, ...], value: Any, where: str) -> list[Any]:
    """Return the items of an array field; refuse another number of them.

    Bytes and text for 8-bit integers may be shorter: zeros follow, as in C.
    """
    extent = extents[0]
    items = [...] * extent if value is ... else value
    if isinstance(value, str | bytes) and code in ("i8", "u8") and len(extents) == 1:
        data = encoded_text(value, where)
        items = memoryview(data.ljust(extent, b"\0")).cast("b" if code == "i8" else "B")
    try:
        count = -1 if isinstance(items, str | bytes | Mapping) else len(items)
        made = list(items) if count == extent else []
    except (TypeError, ValueError):
        count = -1
    if count < 0:
        raise Refused(TypeError, f"field {where!r}: expected {extent} items, found {shown(value)}")
    if count != extent:
        raise Refused(ValueError, f"field {where!r}: expected {extent} items, found {count}")
    return made


_BYTES = {C_NAMES[code] for code in ("char", "i8", "u8")}  # pointers to these are converted


class Packing:
    """The bytes of one struct, and the objects that its pointers refer to."""

    def __init__(self, function: Function, layouts: Layouts) -> None:
        self.function = function
        self.layouts = layouts
        self.kept: list[Any] = []
        self.written: list[tuple[memoryview, bytes, Layout, MutableMapping[str, Any]]] = []
        self.finishes: list[Callable[[], None]] = []  # of arrays

    def pack(
        self, layout: Layout, value: Any, is_written: bool
    ) -> tuple[memoryview, tuple[Any, ...], Any]:
        if isinstance(value, list):
            view = self.items(layout, value, is_written)
        else:
            view = memoryview(self.allocate(layout, value, is_written, ""))
        finish = self.finish if self.written or self.finishes else None
        return view, tuple(self.kept), finish

    def finish(self) -> None:
        """Write the fields back, after the call."""
        for written in self.written:
            self.write_back(*written)
        for finish in self.finishes:
            finish()

    def allocate(self, layout: Layout, value: Any, is_written: bool, where: str) -> bytearray:
        data = bytearray(layout.size)
        self.place(data, 0, layout, value, is_written, where)
        return data

    def items(self, layout: Layout, values: list[Any], is_written: bool) -> memoryview:
        """Return the bytes of an array of structs; the wrapper compares its extents."""
        data = bytearray(layout.size * len(values))
        for i, value in enumerate(values):
            self.place(data, i * layout.size, layout, value, is_written, f"[{i}]")
        return memoryview(data).cast("B", (len(values), layout.size))

    def place(
        self, data: bytearray, at: int, layout: Layout, value: Any, is_written: bool, where: str
    ) -> None:
        self.struct(data, at, layout, value, where)
        if is_written and isinstance(value, MutableMapping):
            view = memoryview(data)[at : at + layout.size]
            self.written.append((view, bytes(view), layout, value))

    def struct(self, data: bytearray, start: int, layout: Layout, value: Any, where: str) -> None:
        value = value.item() if has_dtype(value) and value.size == 1 else value
        for field, item in zip(layout.fields, ordered(layout, value, where), strict=True):
            name = name_at(where, field.name)
            self.store(data, start + field.offset, field.code, field.extents, item, name)

    def store(
        self, data: bytearray, at: int, code: str, extents: tuple[int, ...], value: Any, where: str
    ) -> None:
        if value is ...:
            return
        if extents:
            step = size_of(self.layouts, code, extents[1:])
            for i, item in enumerate(items_of(code, extents, value, where)):
                self.store(data, at + i * step, code, extents[1:], item, where)
        elif code.startswith("{"):
            self.struct(data, at, self.layouts[struct_name(code)], value, where)
        elif code in FORMATS or code in COMPLEX or code == "bf16":
            store_number(data, at, code, value, where)
        else:
            struct.pack_into("=Q", data, at, self.address(code, value, where))

    # ---- Pointers

    def address(self, code: str, value: Any, where: str) -> int:
        """Return the address of what a pointer field refers to, and keep it."""
        if value is None:
            return 0
        if isinstance(value, Handle):
            self.kept.append(value)
            return _handle_address(self.function, code, value, where)
        if code == "str" and isinstance(value, str | bytes):
            return self.keep(text_memory(code, value, where))
        if code[:1] in "*&" and code[1:2] == "{":
            return self.struct_address(code, value, where)
        if code[:1] not in "*&":
            expected = "a str" if code == "str" else f"a handle ({code})"
            raise Refused(TypeError, f"field {where!r}: expected {expected}, found {shown(value)}")
        return self.keep(view_of(code, value, where))

    def struct_address(self, code: str, value: Any, where: str) -> int:
        layout, is_written = self.layouts[struct_name(code)], code.startswith("*")
        made: Any = NotImplemented
        if has_dtype(value):
            made = packed_array(self.layouts, layout, value, is_written)
        if made is not NotImplemented:
            view, kept, finish = made
            self.kept.append(kept)
            self.finishes.extend([finish] if finish else [])
            return self.keep(view)
        return self.keep(memoryview(self.allocate(layout, value, is_written, where)))

    def keep(self, view: memoryview) -> int:
        self.kept.append(view)
        return buffer_address(view)

    # ---- After the call

    def write_back(
        self, data: memoryview, before: bytes, layout: Layout, target: MutableMapping[str, Any]
    ) -> None:
        after = bytes(data)  # CPython 3.11 crashes if it has no memory for a slice of a bytearray
        for field in layout.fields:
            nbytes = size_of(self.layouts, field.code, field.extents)
            part = slice(field.offset, field.offset + nbytes)
            if field.code in FORMATS or field.code.startswith("{") or after[part] != before[part]:
                found = self.load(after, field.offset, field.code, field.extents)
                update(target, field.name, found)

    def load(self, data: bytes, at: int, code: str, extents: tuple[int, ...]) -> Any:
        if extents:
            step = size_of(self.layouts, code, extents[1:])
            return [self.load(data, at + i * step, code, extents[1:]) for i in range(extents[0])]
        if code.startswith("{"):
            fields = self.layouts[struct_name(code)].fields
            return {f.name: self.load(data, at + f.offset, f.code, f.extents) for f in fields}
        if code == "bf16":
            return struct.unpack("=f", halves(data[at : at + 2]))[0]
        found = struct.unpack_from("=" + format_of(code), data, at)
        if code in FORMATS:
            return found[0]
        return complex(*found) if code in COMPLEX else self.pointer(code, found[0])

    def pointer(self, code: str, address: int) -> Any:
        if code == "str" and address:
            return str(memory_at(address, -1, self.function), "utf-8")
        return handle_at(self.function, address, pointee_name(code), code[0] == "&")


def pointee_name(code: str) -> str | None:
    """Return what a pointer points to, as a handle's kind names it; None for ``void *``."""
    if code.startswith("@"):
        return code[1:]
    return struct_name(code) if code[1:2] == "{" else C_NAMES.get(code[1:])


def is_pointee(handle: Handle, code: str) -> bool:
    """Return True if a handle is of what a pointer of this code points to, or may be."""
    kind, name = handle.kind, pointee_name(code)
    if kind is None or name is None or kind == name:
        return True
    return kind.startswith("fn(") if name == "function" else {kind, name} <= _BYTES


def update(target: MutableMapping[str, Any], name: str, found: Any) -> None:
    """Store a field's value, in place if the mapping has an array or a mapping there."""
    known: Any = target.get(name)
    if isinstance(known, MutableMapping):
        for key, value in found.items():
            update(known, key, value)
    elif hasattr(known, "dtype") and isinstance(found, list):
        known[...] = found
    else:
        target[name] = found


def _handle_address(function: Function, code: str, handle: Handle, where: str) -> int:
    if handle.closed:
        text = f"field {where!r}: expected an open handle, found {handle!r}"
        raise Refused(ValueError, text)
    if code == "str" or not is_pointee(handle, code):
        text = f"field {where!r}: expected a value of type {code}, found {handle!r}"
        raise Refused(TypeError, text)
    is_own = code[0] == "@" or "{" in code  # a type of the library
    if is_own and handle.kind is not None and not handle_belongs(function, handle):
        text = f"field {where!r}: expected a handle of this library, found {handle!r} of another"
        raise Refused(ValueError, text)
    return handle.address


def view_of(code: str, value: Any, where: str) -> memoryview:
    """Return the memory of an array that a pointer field refers to."""
    target = code[1:]
    try:
        view = memoryview(value)
    except TypeError:
        expected = "a handle of a C function" if callable(value) else f"an array ({code})"
        text = f"field {where!r}: expected {expected}, found {shown(value)}"
        raise Refused(TypeError, text) from None
    formats = {"char": "bBc", "u8": "bBc", "i8": "bBc", "bool": "?"}.get(target)
    formats = formats or {"i64": "ql", "u64": "QL"}.get(target, FORMATS.get(target, ""))
    is_typed = target == "void" or (view.format in formats and len(view.format) == 1)
    if not is_typed or not view.c_contiguous:
        text = f"field {where!r}: expected a contiguous array of {target}, found "
        text += f"format {view.format!r}" + ("" if view.c_contiguous else ", not contiguous")
        raise Refused(TypeError, text)
    if view.readonly and code.startswith("*"):
        text = f"field {where!r}: expected a writable array, found a read-only one"
        raise Refused(ValueError, text)
    return view
