"""Layouts of structs: packing has the bytes that NumPy writes for the same layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.structs.arrays import check_dtype
from runtime.structs.layout import Field, Layout, Layouts, Refused
from runtime.structs.packing import Packing

DTYPES = {
    **{f"{sign}{8 * n}": f"{sign}{n}" for sign in "iu" for n in (1, 2, 4, 8)},
    "f16": "f2",
    "f32": "f4",
    "f64": "f8",
    "c64": "c8",
    "c128": "c16",
    "bool": "?",
}


def layout_of(name: str, dtype: np.dtype, codes: dict[str, str]) -> Layout:
    """The layout of a structured dtype."""
    fields = []
    for field in dtype.names:
        found, offset = dtype.fields[field][:2]
        fields.append(Field(field, codes[field], found.shape, offset))
    return Layout(name, dtype.itemsize, tuple(fields))


def number(code: str) -> st.SearchStrategy[Any]:
    """A value that the type holds exactly."""
    kind, dtype = code[0], np.dtype(DTYPES[code])
    if kind in "iu":
        return st.integers(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    if kind == "b":
        return st.booleans()
    width = dtype.itemsize * 8 // (2 if kind == "c" else 1)
    part = st.floats(width=width, allow_nan=False)
    return part if kind == "f" else st.builds(complex, part, part)


@st.composite
def structs(draw: st.DrawFn) -> tuple[Layouts, np.dtype, dict[str, Any]]:
    """A struct with numbers, arrays and a struct in it, as layouts, dtype and value."""
    layouts, made = Layouts(), {}
    for name in ("inner", "outer"):
        members, codes, value = [], {}, {}
        for i, code in enumerate(draw(st.lists(st.sampled_from(sorted(DTYPES)), min_size=1))):
            extents = draw(st.sampled_from([(), (2,), (2, 3)]))
            members.append((f"m{i}", DTYPES[code], extents))
            codes[f"m{i}"] = code
            value[f"m{i}"] = draw(values(code, extents))
        if name == "outer":
            members.insert(1, ("in", made["inner"][0]))
            codes["in"], value["in"] = "{inner}", made["inner"][1]
        dtype = np.dtype(members, align=draw(st.booleans()))
        made[name] = dtype, value
        layouts[name] = layout_of(name, dtype, codes)
    return layouts, *made["outer"]


def values(code: str, extents: tuple[int, ...]) -> st.SearchStrategy[Any]:
    """Nested lists of numbers."""
    if not extents:
        return number(code)
    return st.lists(values(code, extents[1:]), min_size=extents[0], max_size=extents[0])


def as_tuple(value: Any) -> Any:
    """A mapping as NumPy takes it."""
    return tuple(map(as_tuple, value.values())) if isinstance(value, dict) else value


@given(structs())
def test_packed_bytes_are_numpys(made: tuple[Layouts, np.dtype, dict[str, Any]]) -> None:
    """The bytes are equal, and are read back as the same values."""
    layouts, dtype, value = made
    ordered = {name: value[name] for name in dtype.names}
    expected = np.zeros((), dtype)
    expected[()] = as_tuple(ordered)
    check_dtype(layouts, layouts["outer"], dtype)
    given_value: dict[str, Any] = dict(ordered)
    view, _, finish = Packing(None, layouts).pack(layouts["outer"], given_value, True)
    assert bytes(view) == expected.tobytes()
    finish()
    assert given_value == ordered


@given(structs(), structs())
def test_other_layout_is_refused(first: Any, second: Any) -> None:
    """A dtype is accepted only if it is equal to that of the layout."""
    layouts, dtype, _ = first
    if dtype == second[1]:
        return
    with pytest.raises(Refused, match=r"expected the layout of struct 'outer' \(m0: "):
        check_dtype(layouts, layouts["outer"], second[1])


def test_struct_without_layout_is_named() -> None:
    """Metadata of another tool may lack the line."""
    with pytest.raises(LookupError, match="struct 'gone': expected its layout in the function's"):
        Layouts()["gone"]


@pytest.mark.parametrize(
    ("value", "bits"), [(1.0, 0x3F80), (1.00390625, 0x3F80), (1.01171875, 0x3F82), (-2.5, 0xC020)]
)
def test_bfloat16_is_rounded_to_even(value: float, bits: int) -> None:
    """And is read back."""
    layouts = Layouts(s=Layout("s", 2, (Field("h", "bf16", (), 0),)))
    packing = Packing(None, layouts)
    data = packing.pack(layouts["s"], {"h": value}, False)[0]
    assert int.from_bytes(data, "little") == bits
    assert packing.load(bytearray(data), 0, "bf16", ()) == np.array(bits << 16, "u4").view("f4")
