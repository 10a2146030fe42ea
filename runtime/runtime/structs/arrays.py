"""NumPy's structured arrays as structs: their dtype must have the layout of the compiler."""

from __future__ import annotations

import struct

from .layout import COMPLEX, FORMATS, Layout, Layouts, Refused, format_of, struct_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def has_dtype(value: Any) -> bool:
    """Return True for an array or a scalar of NumPy."""
    return hasattr(getattr(value, "dtype", None), "names")


def without_dtype(layouts: Layouts, code: str, value: Any) -> Any:
    """Turn a structured scalar, or an array of one, into its fields."""
    if not has_dtype(value) or value.dtype.names is None or value.size != 1:
        return value
    check_dtype(layouts, layouts[struct_name(code)], value.dtype)
    return value.item()


def packed_array(
    layouts: Layouts, layout: Layout, value: Any, is_written: bool
) -> tuple[memoryview, tuple[Any, ...], Any]:
    """Return the bytes of a structured array, as `packed` does."""
    if value.dtype.names is None:
        return NotImplemented  # type: ignore[no-any-return]
    check_dtype(layouts, layout, value.dtype)
    import numpy

    if is_written and not value.flags.writeable:
        raise Refused(ValueError, "expected a writable array, found a read-only one")
    array = value if isinstance(value, numpy.ndarray) else numpy.array(value)
    if not array.flags.c_contiguous:
        raise Refused(ValueError, "expected a contiguous array, found one with strides")

    def finish() -> None:
        for name in value.dtype.names:
            value[name] = array[name]

    shape = (*array.shape, layout.size)  # the wrapper compares the extents
    data = memoryview(array.reshape(-1).view(numpy.uint8).reshape(shape))  # type: ignore[arg-type]
    return data, (array,), finish if is_written and array is not value else None


def _fits(layouts: Layouts, dtype: Any, code: str, extents: tuple[int, ...]) -> bool:
    """Return True if a NumPy dtype has the layout of a field."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return bool(shape == extents) and _fits(layouts, base, code, ())
    if extents:
        is_text = code in ("i8", "u8", "char") and len(extents) == 1
        return is_text and dtype.kind == "S" and dtype.itemsize == extents[0]
    if code.startswith("{"):
        return dtype.names is not None and _same(layouts, layouts[struct_name(code)], dtype)
    if not dtype.isnative:
        return False
    if code in FORMATS or code in COMPLEX:
        nbytes = struct.calcsize("=" + format_of(code))
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


def check_dtype(layouts: Layouts, layout: Layout, dtype: Any) -> None:
    """Refuse a dtype whose layout is not the compiler's; the message shows both."""
    if _same(layouts, layout, dtype):
        return
    found = ", ".join(f"{n}: {dtype.fields[n][0]} at {dtype.fields[n][1]}" for n in dtype.names)
    text = f"expected the layout of struct {layout.name!r} ({layout}), found a dtype with "
    text += f"({found}; {dtype.itemsize} bytes); make it with numpy.dtype(..., align=True)"
    raise Refused(TypeError, text)
