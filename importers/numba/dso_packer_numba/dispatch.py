"""Which signature a call uses: that which needs the least conversions, as in Numba."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from packer.declare.code import DTYPES

from .arguments import alignment_of
from .values import Value, Variant

# Costs of converting a number to a type: 0 exact, 1 promote, 2 safe, 3 unsafe, 4 no conversion
# (NB_EXACT ... of support/choose.h), from bool, int8 to int64, uint8 to uint64, float16 to float64,
# complex64 and complex128.
COSTS = {
    "bool": "03333333333344",
    "i8": "20333333333344",
    "i16": "21033233333344",
    "i32": "21103223333344",
    "i64": "21110222333344",
    "u8": "23333033333344",
    "u16": "23333103333344",
    "u32": "23333110333344",
    "u64": "23333111033344",
    "f32": "22233233310344",
    "f64": "22222222211044",
    "c64": "22233233322303",
    "c128": "22222222222210",
}
_EXACT = {"bool": "DSO_BOOL", "i64": "DSO_INT", "f64": "DSO_FLOAT"}
_KINDS = {"number": "N", "array": "A", "tuple": "T", "optional": "O", "pointer": "P", "str": "S"}
_KINDS |= {"bytes": "B", "none": "0"}


def exact_condition(variant: Variant) -> str:
    """Return the C condition that every argument is a number of exactly its type.

    Returns
    -------
    str
        Empty if simple comparisons cannot test that.
    """
    codes = [value.code if value.kind == "number" else "" for value in variant.arguments]
    if not codes or not all(code in _EXACT for code in codes):
        return ""
    return " && ".join(f"nb_is_plain(&args[{i}], {_EXACT[code]})" for i, code in enumerate(codes))


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
    costs = f'"{COSTS[value.code]}"' if value.kind == "number" else "NULL"
    dtype = DTYPES.get(value.code, "DSO_DT_ANY, 8")
    count = value.ndim if value.kind == "array" else len(value.items)
    layout = f"'{value.layout}'" if value.kind == "array" else "0"
    align = alignment_of(value.code) if value.kind == "array" else 1
    items = name if value.items else "NULL"
    flags = f"{layout}, {int(value.is_mutable)}, {align}"
    return f"{{'{_KINDS[value.kind]}', {costs}, {dtype}, {count}, {flags}, {items}}}"
