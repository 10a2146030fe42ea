"""Data types as text: every triple has one name, and the name is parsed to the triple."""

from __future__ import annotations

import pytest

from runtime.tensors.dtype import dtype_to_string, string_to_dtype


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("float32", (2, 32, 1)),
        ("int8x4", (0, 8, 4)),
        ("handle", (3, 64, 1)),
        ("bool", (6, 8, 1)),
        ("uint1", (1, 1, 1)),
        ("bfloat16", (4, 16, 1)),
        ("complex64", (5, 64, 1)),
        ("float8_e4m3fn", (10, 8, 1)),
        ("float4_e2m1fnx2", (17, 4, 2)),
        ("custom[99]32", (99, 32, 1)),
    ],
)
def test_name_and_triple_belong_together(text, code) -> None:
    """TVM and NumPy use these names."""
    assert dtype_to_string(code) == text
    assert string_to_dtype(text) == code


def test_every_triple_survives_a_round_trip() -> None:
    """All codes and bits, and some lanes: 300,000 names, all different."""
    triples = {
        (code, bits, lanes)
        for code in range(256)
        for bits in range(256)
        for lanes in (0, 1, 4, 65535)
    }
    assert all(string_to_dtype(dtype_to_string(triple)) == triple for triple in triples)


@pytest.mark.parametrize(
    "text", ["", "float", "int", "x4", "floaty32", "int8x", "int300", "int8x70000"]
)
def test_other_text_is_refused(text) -> None:
    """The error of an unknown name shows the form of a valid one."""
    with pytest.raises(ValueError, match="data type|range of DLDataType"):
        string_to_dtype(text)
