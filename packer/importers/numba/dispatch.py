"""Which signature of a function a call uses: those that fit exactly first, then by conversions."""

from __future__ import annotations

from collections.abc import Sequence

from .values import Value, Variant

# An int of Python is an int64, a float a float64. The others follow, the most similar first.
_NUMBERS = (
    "bool",
    "i64",
    "f64",
    "c128",
    "u64",
    "i32",
    "u32",
    "i16",
    "u16",
    "i8",
    "u8",
    "f32",
    "c64",
)
_LAYOUTS = ("C", "F", "A")
_EXACT = {"bool": "DSO_BOOL", "i64": "DSO_INT", "f64": "DSO_FLOAT"}


def ordered(variants: Sequence[Variant]) -> list[int]:
    """Return the indices of signatures in the order in which a call tries them.

    An array that is contiguous also fits a signature for any strides, so that comes later; so does
    a signature for read-only arrays, which any array fits.
    """
    return sorted(range(len(variants)), key=lambda k: _rank(variants[k]))


def _rank(variant: Variant) -> tuple[tuple[int, ...], ...]:
    return tuple(map(_rank_of, variant.arguments))


def _rank_of(value: Value) -> tuple[int, ...]:
    if value.kind == "number":
        return (0, _NUMBERS.index(value.code))
    if value.kind == "array":
        return (1, _LAYOUTS.index(value.layout), int(not value.is_mutable))
    return (2 + (value.kind == "optional"),)


def exact_condition(variant: Variant) -> str:
    """Return the C condition that every number has exactly the type of the signature.

    Returns
    -------
    str
        ``"0"`` if one never has, and ``""`` if the signature has no numbers.
    """
    texts = []
    for i, value in enumerate(variant.arguments):
        if value.kind != "number":
            continue
        if value.code == "c128":
            texts.append(f"nb_is_complex(&args[{i}])")
        elif value.code in _EXACT:
            texts.append(f"args[{i}].type_index == {_EXACT[value.code]}")
        else:
            return "0"
    return " && ".join(texts)
