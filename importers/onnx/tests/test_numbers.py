"""Numbers that models compute from open extents: exact expressions, and their use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import sympy

import packer
import runtime
from dso_packer_onnx.extent import (
    bounds_of,
    flattened,
    greater,
    rounded_down,
    rounded_up,
    value_at,
    written,
)
from dso_packer_onnx.extent_text import parsed

TEXTS = (
    "floor(floor((h - 1)/2)/2)",
    "floor((floor(h/3) + 8)/4)",
    "2*floor((h + 1)/2) - h + 1",
    "4*floor(h/4) - h",
    "Max(0, h - 3)",
    "floor((h - floor(h/2))/2)",
    "3",
)


def values(extent: Any) -> list[int | None]:
    """The values of an extent for h from 0 to 99."""
    return [value_at(extent, {"h": h}) for h in range(100)]


@pytest.mark.parametrize("text", TEXTS)
def test_shorter_expressions_have_the_same_values(text: str) -> None:
    """Nested floors become one."""
    assert values(written(flattened(parsed(text)))) == values(written(parsed(text)))
    assert str(flattened(parsed(TEXTS[0]))).count("floor") == 1


@pytest.mark.parametrize("text", TEXTS)
def test_bounds_hold(text: str) -> None:
    """For each value of the symbol; an extent without bounds has none."""
    found = bounds_of(written(parsed(text)))
    numbers = [number for number in values(written(parsed(text))) if number is not None]
    assert found is None or (found[0] <= min(numbers) and max(numbers) <= found[1])
    assert (found is None) == (max(numbers) > 9)


@pytest.mark.parametrize("divisor", [1, 2, 3, 8])
def test_quotients_are_rounded_as_written(divisor: int) -> None:
    """Down, and up without a minus."""
    quotient = (parsed("h") + 1) / sympy.Integer(divisor)
    assert values(written(rounded_down(quotient))) == [(h + 1) // divisor for h in range(100)]
    assert values(written(rounded_up(quotient))) == [-(-(h + 1) // divisor) for h in range(100)]


def test_the_greater_one_is_chosen_if_it_is_so_in_every_call() -> None:
    """Else both remain."""
    h = parsed("h")
    assert greater(h + 1, h) == h + 1
    assert greater(h, h + 1) == h + 1
    assert greater(h, sympy.Integer(2)) == sympy.Max(2, h)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-floor(-b**2/16)", 2),
        ("a - -b**2", 29),
        ("Max(a, 1) + Min(1, a)", 5),
        ("max(1, c) + Min(c, 1)", 1),
        ("(a + b) // 4 * 3 + b % 3", 8),
        ("ids.45_dim_1 - 2*b", -3),
    ],
)
def test_texts_are_read_as_they_are_written(text: str, value: int) -> None:
    """Powers before signs; a symbol may be 0; a name may have dots."""
    assert value_at(text, {"a": 4, "b": 5, "c": 0, "ids.45_dim_1": 7}) == value


@pytest.mark.parametrize(
    "text", ["", "a b", "9**9**9", "a/0", "a % 0", "Max()", "floor(a, b)", "f(a)", "(" * 999, "1.5"]
)
def test_a_text_of_another_kind_is_no_extent(text: str) -> None:
    """Also where sympy takes for ever, or has no number."""
    with pytest.raises(ValueError, match="expected an expression of extents"):
        parsed(text)


EMPTY = {  # of (float[n,2] x), if n is 0
    "Slice from 1": ("s = Slice(x, one, last, zero) y = Exp(s)", (0, 2)),
    "Slice to 1": ("s = Slice(x, zero, one, zero) y = Exp(s)", (0, 2)),
    "Max": ("n = Shape<start=0, end=1>(x) k = Max(n, one) y = ConstantOfShape(k)", (1,)),
    "Min": ("n = Shape<start=0, end=1>(x) k = Min(n, one) y = ConstantOfShape(k)", (0,)),
}


@pytest.mark.parametrize("case", EMPTY)
def test_an_axis_without_entries_has_exact_numbers(case: str, tmp_path: Path) -> None:
    """Where 1 more or less decides."""
    nodes, shape = EMPTY[case]
    text = f"""<ir_version: 10, opset_import: ["" : 21]>
      g (float[n,2] x) => (float[{", ".join("pq"[: len(shape)])}] y)
      <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] last = {{99}}> {{ {nodes} }}"""
    model = packer.from_onnx(onnx.parser.parse_model(text))
    main = runtime.load(packer.export_library(model, tmp_path / "m.so"))["main"]
    assert main(np.zeros((0, 2), np.float32)).shape == shape


HEAD = '<ir_version: 10, opset_import: ["" : 21]>\ng (float[1,2,h,w] x, float[1,2,p,q] like)'
ENDS = """
  all = Shape (like)
  end = Slice (all, two, four)
"""
RESIZE = f"""{HEAD} => (float[1, 2, p, q] y)
  <int64[1] two = {{2}}, int64[1] four = {{4}}, int64[2] pair = {{1, 2}}> {{{ENDS}
  sizes = Concat <axis = 0> (pair, end)
  y = Resize <mode = "linear"> (x, , , sizes)
}}"""
PAD = f"""{HEAD} => (float[1, 2, r, s] y)
  <int64[1] two = {{2}}, int64[1] four = {{4}}, int64[4] first = {{0, 0, 1, -1}},
   int64[2] pair = {{0, 0}}, float[1] fill = {{3}}> {{{ENDS}
  added = Concat <axis = 0> (first, pair, end)
  y = Pad (x, added, fill)
}}"""


@pytest.mark.parametrize("text", [RESIZE, PAD])
def test_sizes_of_another_image(text: str, tmp_path: Path) -> None:
    """A Resize to them, and a Pad by them that cuts the first column: ONNX Runtime's results."""
    model = onnx.parser.parse_model(text)
    library = packer.export_library(packer.from_onnx(model), tmp_path / "m.so")
    main, session = (
        runtime.load(library)["main"],
        onnxruntime.InferenceSession(model.SerializeToString()),
    )
    for h, w, p, q in ((3, 4, 6, 8), (5, 2, 1, 7), (8, 8, 3, 1)):
        random = np.random.default_rng(h)
        given = [random.normal(size=(1, 2, *end)).astype("f4") for end in ((h, w), (p, q))]
        (expected,) = session.run(None, dict(zip(("x", "like"), given, strict=True)))
        assert expected.size
        np.testing.assert_allclose(main(*given).numpy(), expected, rtol=1e-5, atol=1e-6)


def resized(rule: str) -> onnx.ModelProto:
    """A model that resizes its pictures to sizes that a rule makes of `size`."""
    text = f"""<ir_version: 10, opset_import: ["" : 21]>
g (float[1,2,h,w] x) => (float[1,2,p,q] y)
  <int64[2] pair = {{1, 2}}, int64[1] first = {{2}}, int64[2] step = {{2, 32}}> {{
  all = Shape (x)
  last = Constant <value_ints = [4]> ()
  size = Slice (all, first, last)
  {rule}
  sizes = Concat <axis = 0> (pair, rounded)
  y = Resize <mode = "linear"> (x, , , sizes)
}}"""
    return onnx.parser.parse_model(text)


DOWN = "rest = Mod (size, step)\n  rounded = Sub (size, rest)"
# Extents of 64 and 192 alone do not tell that it rounds to multiples of 2 and 32.
NEAREST = """a = Cast <to = 1> (size)
  b = Cast <to = 1> (step)
  c = Div (a, b)
  d = Round (c)
  e = Mul (d, b)
  rounded = Cast <to = 7> (e)"""
TOWARDS_0 = "a = Neg (size)\n  b = Div (a, first)\n  c = Mul (b, first)\n  rounded = Neg (c)"


@pytest.mark.parametrize("rule", [DOWN, NEAREST, TOWARDS_0])
def test_sizes_that_are_rounded(rule: str, tmp_path: Path) -> None:
    """Remainders, and quotients of negative numbers: ONNX Runtime's shapes and results."""
    model = resized(rule)
    main = runtime.load(packer.export_library(packer.from_onnx(model), tmp_path / "m.so"))["main"]
    session = onnxruntime.InferenceSession(model.SerializeToString())
    for shape in ((1, 2, 64, 64), (1, 2, 33, 65), (1, 2, 2, 95)):
        x = np.random.default_rng(0).normal(size=shape).astype("f4")
        (expected,) = session.run(None, {"x": x})
        np.testing.assert_allclose(main(x).numpy(), expected, atol=1e-4)
