"""Extents that a call decides: expressions of named symbols.

An extent of a shape is an int, or the text of an expression, as ``"batch"`` or ``"4*batch*seq"``.
Equal expressions have equal texts: sympy, which onnx_ir has for its dimensions, writes them, and
`extent_text` reads them: onnx_ir takes -n**2 for n**2, and each symbol for at least 1.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from .extent_text import parsed

if TYPE_CHECKING:
    import onnx_ir as ir
    import sympy

Extent = int | str
# The parameter of a symbol in C: no name of a template, of C or of sympy begins so.
_PREFIX = "n_"
FLOOR_DIV = """\
static inline int64_t n_floor(int64_t a, int64_t b) {
  return a / b - (a % b && (a < 0) != (b < 0));
}
static inline int64_t n_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t n_min(int64_t a, int64_t b) { return a < b ? a : b; }
"""


def written(expression: sympy.Expr | int) -> Extent:
    """Return an expression as an extent."""
    number = getattr(expression, "is_Integer", isinstance(expression, int))
    return int(expression) if number else str(expression)


def expression_of(extent: Extent) -> Any:
    """Return an extent as an int or an expression of sympy."""
    return parsed(extent) if isinstance(extent, str) else extent


def rounded_down(expression: Any) -> Any:
    """Return the greatest integer that is not more.

    ``floor((floor(u) + n) / m)`` becomes ``floor((u + n) / m)``: extents after several windows stay
    short.
    """
    import sympy

    numerator, denominator = sympy.together(expression).as_numer_denom()
    terms = sympy.Add.make_args(sympy.expand(numerator))
    inner = [term for term in terms if isinstance(term, sympy.floor)]
    if len(inner) == 1 and denominator.is_Integer and all(term.is_integer for term in terms):
        terms = (*(term for term in terms if term is not inner[0]), inner[0].args[0])
    return sympy.floor(sympy.expand(sympy.Add(*terms) / denominator))


def rounded_up(expression: Any) -> Any:
    """Return the least integer that is not less; texts of extents have ``floor`` only."""
    import sympy

    numerator, denominator = sympy.together(expression).as_numer_denom()
    if numerator.is_integer and denominator.is_Integer:
        return rounded_down((numerator + denominator - 1) / denominator)
    return -sympy.floor(-expression)


@cache
def flattened(expression: Any) -> Any:
    """Return an expression with each ``floor`` as `rounded_down` has it."""
    import sympy

    return sympy.sympify(expression).replace(sympy.floor, rounded_down)


def greater(a: Any, b: Any) -> Any:
    """Return the greater of two expressions: one of them, if it is so in every call."""
    import sympy

    found = bounds_of(written(sympy.expand(a - b)))
    if found is None or found[0] < 0 < found[1]:
        return sympy.Max(a, b)
    return a if found[0] >= 0 else b


def product(extents: Iterable[Extent]) -> Extent:
    """Return the number of elements of an array."""
    return _product(tuple(extents))


@lru_cache(maxsize=1 << 14)
def _product(extents: tuple[Extent, ...]) -> Extent:
    number, texts = 1, []
    for extent in extents:
        if isinstance(extent, int):
            number *= extent
        else:
            texts.append(extent)
    if not texts or not number:
        return number
    if number == 1 and len(texts) == 1:
        return texts[0]
    made: Any = number
    for text in texts:
        made = made * parsed(text)
    return written(made)


def total(extents: Iterable[Extent]) -> Extent:
    """Return the sum of extents."""
    return _total(tuple(extents))


@lru_cache(maxsize=1 << 14)
def _total(extents: tuple[Extent, ...]) -> Extent:
    return written(sum((expression_of(extent) for extent in extents), 0))


def pads_of(node: ir.Node) -> list[Extent]:
    """Return the pads of dso.Conv, dso.LowpConv or dso.Pooling: top, left, bottom, right."""
    return extents_in(node, "pads") or [0, 0, 0, 0]


def extents_in(node: ir.Node, name: str) -> list[Extent]:
    """Return the extents in an attribute; none without it."""
    attribute = node.attributes.get(name)
    if attribute is None:
        return []
    if attribute.type == attribute.type.STRINGS:
        return [written(parsed(text)) for text in attribute.as_strings()]
    return list(attribute.as_ints())


def symbols_of(extents: Iterable[Extent]) -> tuple[str, ...]:
    """Return the names of all symbols, sorted."""
    names: set[str] = set()
    for extent in extents:
        if isinstance(extent, str):
            names.update(symbol.name for symbol in parsed(extent).free_symbols)
    return tuple(sorted(names))


def step_of(extent: Extent) -> tuple[str, int, int] | None:
    """Return s, a, b of an extent a*s + b with a > 0; None for a number or another expression."""
    if not isinstance(extent, str) or len(symbols := parsed(extent).free_symbols) != 1:
        return None
    (symbol,) = symbols
    factor, rest = parsed(extent).expand().as_independent(symbol, as_Add=True)[::-1]
    factor = factor / symbol
    is_step = factor.is_Integer and factor > 0 and rest.is_Integer
    return (symbol.name, int(factor), int(rest)) if is_step else None


def value_at(extent: Extent, values: Mapping[str, int]) -> int | None:
    """Return an extent for values of its symbols; None if one has no value."""
    if isinstance(extent, int):
        return extent
    expression = parsed(extent)
    named = {symbol: values.get(symbol.name) for symbol in expression.free_symbols}
    if None in named.values():
        return None
    found = expression.xreplace({key: _integer(value) for key, value in named.items()})
    return int(found) if found.is_Integer else None


def _integer(value: int | None) -> Any:
    import sympy

    return sympy.Integer(value)


def bounds_of(extent: Extent) -> tuple[int, int] | None:
    """Return the least and the greatest value of an extent, or numbers beyond them.

    None if it has no bounds, or none that are found: by taking each ``floor`` for its argument less
    a fraction.
    """
    import sympy

    found = _bounds(sympy.sympify(expression_of(extent)))
    if found is None or found[0]:
        return None
    return int(sympy.ceiling(found[1])), int(sympy.floor(found[2]))


def _bounds(expression: Any) -> tuple[Any, Any, Any] | None:
    """Return a part with symbols, and the least and greatest rest."""
    import sympy

    if expression.is_Rational:
        return sympy.Integer(0), expression, expression
    if expression.is_Symbol:
        return expression, sympy.Integer(0), sympy.Integer(0)
    parts = [_bounds(arg) for arg in expression.args]
    if isinstance(expression, sympy.floor) and parts[0] is not None:
        varied, least, greatest = parts[0]
        numerator, denominator = sympy.together(expression.args[0]).as_numer_denom()
        if not (numerator.is_integer and denominator.is_Integer):
            return None
        return _of_integer(varied, least - 1 + sympy.Integer(1) / denominator, greatest)
    if isinstance(expression, sympy.Mul) and expression.args[0].is_Rational:
        rest = _bounds(sympy.Mul(*expression.args[1:]))
        if rest is None:
            return None
        ends = sorted(expression.args[0] * end for end in rest[1:])
        return expression.args[0] * rest[0], ends[0], ends[1]
    if None in parts:
        return None
    varied, least, greatest = zip(*(part for part in parts if part is not None), strict=True)
    if isinstance(expression, sympy.Add):
        return _of_integer(sympy.expand(sum(varied)), sum(least), sum(greatest))
    if isinstance(expression, sympy.Max | sympy.Min) and not any(varied):
        choose = max if isinstance(expression, sympy.Max) else min
        return sympy.Integer(0), choose(least), choose(greatest)
    return None


def _of_integer(varied: Any, least: Any, greatest: Any) -> tuple[Any, Any, Any]:
    """Round the bounds of an integer, if no symbol is beside them."""
    import sympy

    if varied:
        return varied, least, greatest
    return varied, sympy.ceiling(least), sympy.floor(greatest)


def parameter(name: str) -> str:
    """Return the parameter of a symbol in C."""
    return _PREFIX + name


def in_c(extent: Extent) -> str:
    """Return an extent as a C expression of type int64_t, which binds like a product."""
    return str(extent) if isinstance(extent, int) else _in_c(parsed(extent))


@cache
def _in_c(expression: Any) -> str:
    """Write an expression of sympy; `FLOOR_DIV` has the functions."""
    import sympy

    if expression.is_Integer:
        return str(int(expression))
    if expression.is_Symbol:
        return parameter(expression.name)
    numerator, denominator = expression.as_numer_denom()
    if isinstance(expression, sympy.floor):
        numerator, denominator = sympy.together(expression.args[0]).as_numer_denom()
        return f"n_floor({_in_c(numerator)}, {_in_c(denominator)})"
    if isinstance(expression, sympy.ceiling):
        return f"(-{_in_c(sympy.floor(-expression.args[0]))})"
    args = [_in_c(arg) for arg in expression.args]
    if isinstance(expression, sympy.Add):
        return f"({' + '.join(args)})"
    if isinstance(expression, sympy.Mul) and denominator == 1:
        return " * ".join(args)
    if isinstance(expression, sympy.Pow) and expression.args[1].is_Integer and denominator == 1:
        return " * ".join([args[0]] * int(expression.args[1]))
    if isinstance(expression, sympy.Max | sympy.Min):
        name = "n_max" if isinstance(expression, sympy.Max) else "n_min"
        made = args[0]
        for arg in args[1:]:
            made = f"{name}({made}, {arg})"
        return made
    if isinstance(expression, sympy.Mod):
        a, b = args
        return f"({a} - n_floor({a}, {b}) * {b})"
    raise ValueError(f"an extent {expression}, expected sums, products, floor, Max, Min and Mod")


def identifier(name: str, taken: Sequence[str]) -> str:
    """Return a name of a symbol that is an identifier, and none of `taken`."""
    made = re.sub(r"\W", "_", name, flags=re.ASCII) or "_"
    made = f"_{made}" if made[0].isdigit() or keyword.iskeyword(made) else made
    while made in taken:
        made += "_"
    return made
