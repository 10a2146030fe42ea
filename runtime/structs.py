"""Structs of declared functions: packing arguments, and results as named tuples.

The native core imports this file at the first call with a struct. Layouts are those that the
compiler reported when the library was exported (docs/format.md, "Facts about a function").
"""

from __future__ import annotations

import struct
import sys
from collections import namedtuple
from collections.abc import Mapping, MutableMapping
from functools import lru_cache
from typing import NamedTuple

from ._core import Handle, buffer_address, handle_at
from .error import near_names, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

    from ._core import Function

    Fields: TypeAlias = Mapping[str, Any] | Sequence[Any]

# The struct module's format of each number. Complex numbers are two.
FORMATS = {
    "i8": "b", "i16": "h", "i32": "i", "i64": "q",
    "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
    "bool": "?", "f16": "e", "f32": "f", "f64": "d", "char": "b",
}  # fmt: skip
_COMPLEX = {"c64": "ff", "c128": "dd"}


class Field(NamedTuple):
    """One field: its name, its code without extents, its extents, and its offset."""

    name: str
    code: str
    extents: tuple[int, ...]
    offset: int

    def __str__(self) -> str:
        extents = "".join(f"[{extent}]" for extent in self.extents)
        return f"{self.name}: {self.code}{extents} at {self.offset}"


class Layout(NamedTuple):
    """The layout of a struct."""

    name: str
    size: int
    fields: tuple[Field, ...]

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.fields))}; {self.size} bytes"


Layouts = dict[str, Layout]


class _Refused(Exception):  # noqa: N818 - it never leaves this file
    """A value does not fit; the text becomes the message of an argument error."""

    def __init__(self, kind: type[Exception], text: str) -> None:
        super().__init__(text)
        self.kind = kind


def split_extents(code: str) -> tuple[str, tuple[int, ...]]:
    """Split ``f32[2][3]`` into ``f32`` and (2, 3)."""
    base, *extents = code.split("[")
    return base, tuple(int(extent.rstrip("]")) for extent in extents)


@lru_cache(maxsize=256)
def _parse(structs: tuple[tuple[str, str], ...]) -> Layouts:
    layouts: Layouts = {}
    for name, text in structs:
        size, _, *fields = text.split(" ")
        layouts[name] = Layout(name, int(size), tuple(_field(field) for field in fields if field))
    return layouts


def _field(text: str) -> Field:
    head, _, offset = text.rpartition("@")
    name, _, code = head.partition(":")
    base, extents = split_extents(code)
    return Field(name, base, extents, int(offset))


def layouts_of(function: Function) -> Layouts:
    """Return the layouts that a function's metadata lists, by name."""
    return _parse(tuple(function._declared[4]))


def _named_struct(code: str) -> str:
    return code.lstrip("*&").partition("[")[0].strip("{}")


def _at(parent: str, name: str) -> str:
    return f"{parent}.{name}" if parent else name


# ---- Arguments


def fields_of(function: Function, index: int, value: Any) -> Any:
    """Return the fields of a struct that is passed by value, as a tuple.

    NotImplemented if `value` has no fields.
    """
    layouts, code = layouts_of(function), function._declared[0][index][1]
    try:
        return _fields(layouts, layouts[_named_struct(code)], _without_dtype(layouts, code, value))
    except _Refused as refused:
        raise _argument_error(function, index, refused) from None


def packed(function: Function, index: int, value: Any) -> Any:
    """Return the bytes of a struct that is passed by pointer.

    They are (memoryview, objects that the bytes refer to, function to call after the call or
    None). NotImplemented if `value` is neither a mapping, a tuple nor a structured NumPy array.
    """
    layouts, code = layouts_of(function), function._declared[0][index][1]
    layout, is_written = layouts[_named_struct(code)], code.startswith("*")
    try:
        if hasattr(value, "dtype"):
            return _packed_array(layouts, layout, value, is_written)
        if isinstance(value, Mapping):
            return _Packing(function, layouts).pack(layout, value, is_written)
        if not isinstance(value, tuple):
            return NotImplemented
        if is_written:
            text = f"expected a dict or an array, whose fields are updated, found {shown(value)}"
            raise _Refused(TypeError, text)
        return _Packing(function, layouts).pack(layout, value, is_written)
    except _Refused as refused:
        raise _argument_error(function, index, refused) from None


def _argument_error(function: Function, index: int, refused: _Refused) -> Exception:
    name = function._declared[0][index][0]
    text = f"{function.name}: argument {index + 1} '{name}': {refused}"
    return refused.kind(f"{text}; declared as {function.signature}")


def _ordered(layout: Layout, value: Any, where: str) -> list[Any]:
    """Return the fields' values in order; `...` for a field that a mapping omits."""
    names = [field.name for field in layout.fields]
    if isinstance(value, Mapping):
        for name in value:
            if name not in names:
                text = f"expected a field of struct {layout.name!r}, found {shown(name)}"
                raise _Refused(TypeError, _in(where, text) + near_names(str(name), names))
        return [value.get(name, ...) for name in names]
    if isinstance(value, tuple | list) and len(value) == len(names):
        return list(value)
    text = f"expected a mapping or a tuple of {len(names)} fields ({', '.join(names)}), found "
    raise _Refused(TypeError, _in(where, text) + shown(value))


def _in(where: str, text: str) -> str:
    return f"field {where!r}: {text}" if where else text


def _fields(layouts: Layouts, layout: Layout, value: Any, where: str = "") -> Any:
    if not isinstance(value, Mapping | tuple | list) and not where:
        return NotImplemented
    made = zip(layout.fields, _ordered(layout, value, where), strict=True)
    return tuple(_item(layouts, f.code, f.extents, v, _at(where, f.name)) for f, v in made)


def _item(layouts: Layouts, code: str, extents: tuple[int, ...], value: Any, where: str) -> Any:
    if extents:
        items = _items(extents[0], value, where)
        return tuple(_item(layouts, code, extents[1:], item, where) for item in items)
    if code.startswith("{"):
        value = {} if value is ... else value
        return _fields(layouts, layouts[code.strip("{}")], value, where)
    if value is ...:
        return 0 if code in FORMATS else (0.0, 0.0) if code in _COMPLEX else None
    return (value.real, value.imag) if code in _COMPLEX and not isinstance(value, tuple) else value


def _items(extent: int, value: Any, where: str) -> list[Any]:
    items = [...] * extent if value is ... else value
    if isinstance(items, str | bytes | Mapping) or not hasattr(items, "__len__"):
        raise _Refused(TypeError, f"field {where!r}: expected {extent} items, found {shown(value)}")
    if len(items) != extent:
        text = f"field {where!r}: expected {extent} items, found {len(items)}"
        raise _Refused(ValueError, text)
    return list(items)


class _Packing:
    """The bytes of one struct, and the objects that its pointers refer to."""

    def __init__(self, function: Function, layouts: Layouts) -> None:
        self.function = function
        self.layouts = layouts
        self.kept: list[Any] = []
        self.finishes: list[Callable[[], None]] = []

    def pack(self, layout: Layout, value: Any, is_written: bool) -> tuple[memoryview, Any, Any]:
        data = self.allocate(layout, value, is_written, "")
        finish = self.finish if self.finishes else None
        return memoryview(data), self.kept, finish

    def finish(self) -> None:
        """Write the fields back, after the call."""
        for finish in self.finishes:
            finish()

    def allocate(self, layout: Layout, value: Any, is_written: bool, where: str) -> bytearray:
        data = bytearray(layout.size)
        self.struct(data, 0, layout, value, where)
        if is_written and isinstance(value, MutableMapping):
            before = bytes(data)
            self.finishes.append(lambda: self.write_back(data, before, layout, value))
        return data

    def struct(self, data: bytearray, start: int, layout: Layout, value: Any, where: str) -> None:
        value = value.item() if hasattr(value, "dtype") else value
        for field, item in zip(layout.fields, _ordered(layout, value, where), strict=True):
            name = _at(where, field.name)
            self.store(data, start + field.offset, field.code, field.extents, item, name)

    def store(
        self, data: bytearray, at: int, code: str, extents: tuple[int, ...], value: Any, where: str
    ) -> None:
        if value is ...:
            return
        if extents:
            step = self.size(code, extents[1:])
            for i, item in enumerate(_items(extents[0], value, where)):
                self.store(data, at + i * step, code, extents[1:], item, where)
        elif code.startswith("{"):
            self.struct(data, at, self.layouts[code.strip("{}")], value, where)
        elif code in FORMATS or code in _COMPLEX or code == "bf16":
            _store_number(data, at, code, value, where)
        else:
            struct.pack_into("=Q", data, at, self.address(code, value, where))

    def size(self, code: str, extents: tuple[int, ...] = ()) -> int:
        if code.startswith("{"):
            nbytes = self.layouts[code.strip("{}")].size
        else:
            nbytes = 2 if code == "bf16" else struct.calcsize("=" + _format(code))
        for extent in extents:
            nbytes *= extent
        return nbytes

    # ---- Pointers

    def address(self, code: str, value: Any, where: str) -> int:
        """Return the address of what a pointer field refers to, and keep it."""
        if value is None:
            return 0
        if isinstance(value, Handle):
            return _handle_address(code, value, where)
        if code == "str" and isinstance(value, str | bytes):
            text = value.encode() if isinstance(value, str) else value
            if b"\0" in text:
                text = f"field {where!r}: expected text without NUL, found {shown(value)}"
                raise _Refused(ValueError, text)
            return self.keep(memoryview(text + b"\0"))
        if code[:1] in "*&" and code[1:2] == "{":
            return self.struct_address(code, value, where)
        if code[:1] not in "*&":
            expected = "a str" if code == "str" else f"a handle ({code})"
            raise _Refused(TypeError, f"field {where!r}: expected {expected}, found {shown(value)}")
        return self.keep(_buffer(code, value, where))

    def struct_address(self, code: str, value: Any, where: str) -> int:
        layout, is_written = self.layouts[_named_struct(code)], code.startswith("*")
        if hasattr(value, "dtype"):
            view, kept, finish = _packed_array(self.layouts, layout, value, is_written)
            self.kept.append(kept)
            self.finishes.extend([finish] if finish else [])
            return self.keep(view)
        return self.keep(memoryview(self.allocate(layout, value, is_written, where)))

    def keep(self, view: memoryview) -> int:
        self.kept.append(view)
        return buffer_address(view)

    # ---- After the call

    def write_back(
        self, data: bytearray, before: bytes, layout: Layout, target: MutableMapping[str, Any]
    ) -> None:
        for field in layout.fields:
            nbytes = self.size(field.code, field.extents)
            part = slice(field.offset, field.offset + nbytes)
            if field.code in FORMATS or field.code.startswith("{") or data[part] != before[part]:
                target[field.name] = self.load(data, field.offset, field.code, field.extents)

    def load(self, data: bytearray, at: int, code: str, extents: tuple[int, ...]) -> Any:
        if extents:
            step = self.size(code, extents[1:])
            return [self.load(data, at + i * step, code, extents[1:]) for i in range(extents[0])]
        if code.startswith("{"):
            fields = self.layouts[code.strip("{}")].fields
            return {f.name: self.load(data, at + f.offset, f.code, f.extents) for f in fields}
        if code == "bf16":
            return struct.unpack("=f", _halves(data[at : at + 2]))[0]
        found = struct.unpack_from("=" + _format(code), data, at)
        if code in FORMATS:
            return found[0]
        return complex(*found) if code in _COMPLEX else self.pointer(code, found[0])

    def pointer(self, code: str, address: int) -> Any:
        if code == "str" and address:
            import ctypes

            return ctypes.string_at(address).decode()
        return handle_at(self.function, address, code[1:] if code.startswith("@") else None)


def _format(code: str) -> str:
    return FORMATS.get(code) or _COMPLEX.get(code) or "Q"


def _halves(data: bytes) -> bytes:
    """Extend a bfloat16 to a float32."""
    return b"\0\0" + data if sys.byteorder == "little" else data + b"\0\0"


def _store_number(data: bytearray, at: int, code: str, value: Any, where: str) -> None:
    try:
        if code == "bf16":
            bits = struct.unpack("=I", struct.pack("=f", value))[0]
            rounded = bits if value != value else bits + 0x7FFF + (bits >> 16 & 1)
            struct.pack_into("=H", data, at, rounded >> 16 & 0xFFFF)
        elif code in _COMPLEX:
            number = complex(value)
            struct.pack_into("=" + _COMPLEX[code], data, at, number.real, number.imag)
        elif code == "bool" and value not in (0, 1):
            raise ValueError(f"expected a bool, found {shown(value)}")
        else:
            struct.pack_into("=" + FORMATS[code], data, at, value)
    except (struct.error, OverflowError, TypeError, ValueError):
        text = f"field {where!r}: expected a value of type {code}, found {shown(value)}"
        is_number = isinstance(value, int | float | complex)
        raise _Refused(OverflowError if is_number else TypeError, text) from None


def _handle_address(code: str, handle: Handle, where: str) -> int:
    kind = code[1:] if code.startswith("@") else _named_struct(code) if "{" in code else None
    if handle.closed:
        text = f"field {where!r}: expected an open handle, found {handle!r}"
        raise _Refused(ValueError, text)
    if code == "str" or (kind is not None and handle.kind not in (None, kind)):
        text = f"field {where!r}: expected a value of type {code}, found {handle!r}"
        raise _Refused(TypeError, text)
    return handle.address


def _buffer(code: str, value: Any, where: str) -> memoryview:
    """Return the memory of an array that a pointer field refers to."""
    target = code[1:]
    try:
        view = memoryview(value)
    except TypeError:
        text = f"field {where!r}: expected an array ({code}), found {shown(value)}"
        raise _Refused(TypeError, text) from None
    formats = {"char": "bBc", "u8": "bBc", "i8": "bBc", "bool": "?"}.get(target)
    formats = formats or {"i64": "ql", "u64": "QL"}.get(target, FORMATS.get(target, ""))
    is_typed = target == "void" or (view.format in formats and len(view.format) == 1)
    if not is_typed or not view.c_contiguous:
        text = f"field {where!r}: expected a contiguous array of {target}, found "
        text += f"format {view.format!r}" + ("" if view.c_contiguous else ", not contiguous")
        raise _Refused(TypeError, text)
    if view.readonly and code.startswith("*"):
        text = f"field {where!r}: expected a writable array, found a read-only one"
        raise _Refused(ValueError, text)
    return view


# ---- NumPy's structured types


def _without_dtype(layouts: Layouts, code: str, value: Any) -> Any:
    """Turn a structured scalar, or an array of one, into its fields."""
    if not hasattr(value, "dtype") or value.dtype.names is None or value.size != 1:
        return value
    _check_dtype(layouts, layouts[_named_struct(code)], value.dtype)
    return value.item()


def _packed_array(
    layouts: Layouts, layout: Layout, value: Any, is_written: bool
) -> tuple[memoryview, Any, Any]:
    if value.dtype.names is None:
        return NotImplemented  # type: ignore[no-any-return]
    _check_dtype(layouts, layout, value.dtype)
    import numpy

    if is_written and not value.flags.writeable:
        raise _Refused(ValueError, "expected a writable array, found a read-only one")
    array = value if isinstance(value, numpy.ndarray) else numpy.array(value)
    if not array.flags.c_contiguous:
        raise _Refused(ValueError, "expected a contiguous array, found one with strides")

    def finish() -> None:
        for name in value.dtype.names:
            value[name] = array[name]

    data = memoryview(array.reshape(-1).view(numpy.uint8))  # type: ignore[arg-type]
    return data, array, finish if is_written and array is not value else None


_NUMPY_KINDS = {"i": "i", "u": "u", "f": "f", "c": "c", "b": "?"}


def _fits(layouts: Layouts, dtype: Any, code: str, extents: tuple[int, ...]) -> bool:
    """Return True if a NumPy dtype has the layout of a field."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return bool(shape == extents) and _fits(layouts, base, code, ())
    if extents:
        is_text = code in ("i8", "u8", "char") and len(extents) == 1
        return is_text and dtype.kind == "S" and dtype.itemsize == extents[0]
    if code.startswith("{"):
        return dtype.names is not None and _same(layouts, layouts[code.strip("{}")], dtype)
    if not dtype.isnative:
        return False
    if code in FORMATS or code in _COMPLEX:
        nbytes = struct.calcsize("=" + _format(code))
        return bool(dtype.itemsize == nbytes) and dtype.kind == ("b" if code == "bool" else code[0])
    return dtype.kind in "iu" and dtype.itemsize == 8  # a pointer, as an integer


def _same(layouts: Layouts, layout: Layout, dtype: Any) -> bool:
    fields = [dtype.fields[name] for name in dtype.names]
    return (
        dtype.itemsize == layout.size
        and list(dtype.names) == [field.name for field in layout.fields]
        and all(
            at == field.offset and _fits(layouts, found, field.code, field.extents)
            for field, (found, at, *_) in zip(layout.fields, fields, strict=True)
        )
    )


def _check_dtype(layouts: Layouts, layout: Layout, dtype: Any) -> None:
    if _same(layouts, layout, dtype):
        return
    found = ", ".join(f"{n}: {dtype.fields[n][0]} at {dtype.fields[n][1]}" for n in dtype.names)
    text = f"expected the layout of struct {layout.name!r} ({layout}), found a dtype with "
    text += f"({found}; {dtype.itemsize} bytes); make it with numpy.dtype(..., align=True)"
    raise _Refused(TypeError, text)


# ---- Results


def result_maker(function: Function) -> Callable[[str, tuple[Any, ...]], Any]:
    """Return what turns the fields of a struct, in order, into a named tuple.

    The classes are made once for each function.
    """
    layouts = layouts_of(function)
    classes = {
        name: namedtuple(name, [f.name for f in layout.fields], rename=True)
        for name, layout in layouts.items()
    }

    def make(code: str, value: Any, extents: tuple[int, ...] = ()) -> Any:
        if extents:
            return tuple(make(code, item, extents[1:]) for item in value)
        if code in _COMPLEX and isinstance(value, tuple):
            return complex(*value)
        if code.startswith("@") and isinstance(value, Handle):
            return handle_at(function, value.address, code[1:])
        if not code.startswith("{") or not isinstance(value, tuple):
            return value
        layout = layouts[code.strip("{}")]
        fields = zip(layout.fields, value, strict=True)
        return classes[layout.name](*(make(f.code, item, f.extents) for f, item in fields))

    return make
