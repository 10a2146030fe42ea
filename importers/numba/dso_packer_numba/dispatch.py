"""Which signature a call uses: that which needs the least conversions, as in Numba."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from packer.declare.code import DTYPES

from .arguments import alignment_of
from .values import Value, Variant

# NB_EXACT, NB_PROMOTE, NB_SAFE, NB_UNSAFE and NB_NO_FIT of support/choose.h.
_OTHERS = (2, 3, 3, 4)
_COSTS = {  # to the number, from Python's bool, int, float and complex
    "bool": (0, 3, 3, 4),
    "i64": (2, 0, 3, 4),
    "f64": (2, 2, 0, 4),
    "c64": (2, 3, 3, 3),
    "c128": (2, 2, 2, 0),
}
_EXACT = {"bool": "DSO_BOOL", "i64": "DSO_INT", "f64": "DSO_FLOAT"}
_KINDS = {"number": "N", "array": "A", "tuple": "T", "optional": "O", "pointer": "P", "str": "S"}
_KINDS |= {"bytes": "B", "none": "0"}


def costs_of(code: str) -> tuple[int, int, int, int]:
    """Return what it costs to convert a bool, int, float and complex of Python to a number."""
    return _COSTS.get(code, _OTHERS)


def exact_condition(variant: Variant) -> str:
    """Return the C condition that every argument is a number of exactly its type.

    Returns
    -------
    str
        Empty if that is no simple comparison.
    """
    codes = [value.code if value.kind == "number" else "" for value in variant.arguments]
    if not codes or not all(code in _EXACT for code in codes):
        return ""
    return " && ".join(f"args[{i}].type_index == {_EXACT[code]}" for i, code in enumerate(codes))


def type_lines(index: int, variants: Sequence[Variant]) -> Iterator[str]:
    """Define ``types_<index>``: the types of the parameters of each signature."""
    rows: list[str] = []
    for k, variant in enumerate(variants):
        for i, value in enumerate(variant.arguments):
            yield from _item_lines(f"items_{index}_{k}_{i}", value)
            rows.append(_row(f"items_{index}_{k}_{i}", value))
    yield from _table(f"types_{index}", rows or ["{0}"])


def _item_lines(name: str, value: Value) -> Iterator[str]:
    for i, item in enumerate(value.items):
        yield from _item_lines(f"{name}_{i}", item)
    if value.items:
        yield from _table(name, [_row(f"{name}_{i}", v) for i, v in enumerate(value.items)])


def _table(name: str, rows: Sequence[str]) -> Iterator[str]:
    yield f"static const nb_type {name}[] = {{"
    yield from (f"  {row}," for row in rows)
    yield "};"


def _row(name: str, value: Value) -> str:
    costs = ", ".join(map(str, costs_of(value.code)))
    dtype = DTYPES.get(value.code, "DSO_DT_ANY, 8")
    count = value.ndim if value.kind == "array" else len(value.items)
    layout = f"'{value.layout}'" if value.kind == "array" else "0"
    align = alignment_of(value.code) if value.kind == "array" else 1
    items = name if value.items else "NULL"
    flags = f"{layout}, {int(value.is_mutable)}, {align}"
    return f"{{'{_KINDS[value.kind]}', {{{costs}}}, {dtype}, {count}, {flags}, {items}}}"
