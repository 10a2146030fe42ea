"""Results whose shapes the data of a call decides, beside ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer

from ..support.beside_ort import compare, main_of, parsed

Array = np.ndarray[Any, Any]


def given(*shape: int, seed: int = 0) -> Array:
    """Numbers of which many are equal, and some are 0."""
    return np.random.default_rng(seed).normal(size=shape).round().astype(np.float32)


def numbers(*values: int) -> Array:
    """A vector of int64."""
    return np.array(values, np.int64)


BOXES = np.random.default_rng(1).uniform(0, 1, (2, 60, 4)).astype(np.float32)
BOXES[..., 2:] = BOXES[..., :2] + 0.3
SCORES = np.random.default_rng(2).uniform(0, 1, (2, 3, 60)).round(1).astype(np.float32)  # ties
MODELS: dict[str, tuple[str, list[list[Any]]]] = {
    "NonZero": (
        "(float[3,4] x) => (int64[r,n] y) { y = NonZero(x) }",
        [[given(3, 4)], [np.zeros((3, 4), np.float32)], [np.ones((3, 4), np.float32)]],
    ),
    "its number alone": (
        "(float[a,4] x) => (int64[1] y) { i = NonZero(x) y = Shape<start=1>(i) }",
        [[given(3, 4)], [given(0, 4)]],
    ),
    "x[mask]": (
        "(float[a,b] x) => (float[n] y) { z = Relu(x) c = Cast<to=9>(z) i = NonZero(c)"
        " t = Transpose<perm=[1,0]>(i) g = GatherND(x, t) y = Neg(g) }",
        [[given(3, 4)], [given(7, 5)]],
    ),
    "the same one twice": (
        "(float[a,b] x) => (float[n] y, float[m] z) { i = NonZero(x) t = Transpose<perm=[1,0]>(i)"
        " j = NonZero(x) u = Transpose<perm=[1,0]>(j) g = GatherND(x, t) h = GatherND(x, u)"
        " y = Neg(g) z = Add(g, h) }",
        [[given(3, 4)]],
    ),
    "a view whose extents are known after its elements": (
        "(float[6] x, int64[2] n) => (float[p,q] y) { z = Exp(x) y = Reshape(z, n) }",
        [[given(6), numbers(2, -1)], [given(6), numbers(6, 1)]],
    ),
    "one after another": (
        "(float[a,b] x) => (float[n] y, float[m] z) { i = NonZero(x) t = Transpose<perm=[1,0]>(i)"
        " g = GatherND(x, t) r = Relu(g) j = NonZero(r) k = Transpose<perm=[1,0]>(j)"
        " h = GatherND(g, k) y = Neg(h) z = Exp(g) }",
        [[given(3, 4)], [given(7, 5)]],
    ),
    "ranges that an extent of 0 ends early": (
        "(float[a] x) => (int64[p] y, int64[q] z, int64[r] v)"
        " <int64 zero={0}, int64 one={1}, int64 back={-2}, int64[1] first={0}>"
        " { s = Shape(x) n = Squeeze(s, first) m = Sub(one, n)"
        " y = Range(one, n, one) z = Range(n, one, back) v = Range(zero, m, one) }",
        [[given(0)], [given(1)], [given(5)]],
    ),
    "Compress": (
        "(float[a,4] x, bool[b] c) => (float[n,4] y) { y = Compress<axis=0>(x, c) }",
        [[given(3, 4), np.array([1, 0, 1], bool)], [given(5, 4), np.zeros(3, bool)]],
    ),
    "Compress of all": (
        "(float[3,4] x, bool[5] c) => (float[n] y) { z = Compress(x, c) y = Exp(z) }",
        [[given(3, 4), np.array([1, 0, 1, 1, 0], bool)]],
    ),
    "Unique": (
        "(float[a,4] x) => (float[n] y, int64[n] i, int64[m] v, int64[n] c)"
        " { y, i, v, c = Unique(x) }",
        [[given(3, 4)], [given(90, 4)], [given(0, 4)]],
    ),
    "Unique of rows": (
        "(float[a,2] x) => (float[n,2] y, int64[n] i, int64[m] v, int64[n] c)"
        " { y, i, v, c = Unique<axis=0,sorted=0>(x) }",
        [[given(9, 2)], [given(31, 2)]],
    ),
    "Slice": (
        "(float[a,6] x, int64[1] n) => (float[p,q] y) <int64[1] z={0}, int64[1] o={1}>"
        " { s = Slice(x, z, n, o) y = Abs(s) }",
        [[given(3, 6), numbers(2)], [given(3, 6), numbers(-1)], [given(3, 6), numbers(-9)]],
    ),
    "Range": (
        "(int64 n) => (int64[p] y) <int64 z={0}, int64 o={1}> { y = Range(z, n, o) }",
        [[np.array(5)], [np.array(0)], [np.array(-3)]],
    ),
    "Reshape": (
        "(float[a,6] x, int64[1] n) => (float[p,q,2] y) <int64[1] m={-1}, int64[1] t={2}>"
        " { s = Concat<axis=0>(n, m, t) z = Reshape(x, s) y = Softmax(z) }",
        [[given(3, 6), numbers(3)], [given(4, 6), numbers(0)]],
    ),
    "Expand": (
        "(float[1,6] x, int64[1] n) => (float[p,q] y) <int64[1] t={6}>"
        " { s = Concat<axis=0>(n, t) z = Expand(x, s) y = Relu(z) }",
        [[given(1, 6), numbers(3)], [given(1, 6), numbers(0)]],
    ),
    "ConstantOfShape": (
        "(int64[2] n) => (float[p,q] y) { y = ConstantOfShape(n) }",
        [[numbers(3, 2)], [numbers(0, 4)]],
    ),
    "TopK": (
        "(float[a,9] x, int64[1] k) => (float[p,q] y, int64[p,q] i) { y, i = TopK(x, k) }",
        [[given(3, 9), numbers(4)], [given(3, 9), numbers(9)], [given(3, 9), numbers(0)]],
    ),
    "TopK of fewer than there are": (
        "(float[a] x) => (float[p] y, int64[p] i) <int64[1] m={5}> { b = Cast<to=9>(x)"
        " z = Compress(x, b) s = Shape(z) c = Concat<axis=0>(s, m) k = ReduceMin<keepdims=1>(c)"
        " y, i = TopK(z, k) }",
        [[given(3)], [given(30)]],
    ),
    "the least ones of columns": (
        "(float[9,b] x, int64[1] k) => (float[p,q] y, int64[p,q] i)"
        " { y, i = TopK<axis=0,largest=0>(x, k) }",
        [[given(9, 4), numbers(5)]],
    ),
    "Split": (
        "(float[9,2] x, int64[2] k) => (float[p,2] y, float[q,2] z) { y, z = Split<axis=0>(x, k) }",
        [[given(9, 2), numbers(2, 7)], [given(9, 2), numbers(9, 0)]],
    ),
    "Tile": (
        "(float[3,2] x, int64[2] k) => (float[p,q] y) { y = Tile(x, k) }",
        [[given(3, 2), numbers(2, 3)], [given(3, 2), numbers(0, 3)]],
    ),
    "NonMaxSuppression": (
        "(float[2,60,4] b, float[2,3,60] s) => (int64[n,3] y)"
        " <int64 k={5}, float i={0.3}, float t={0.4}> { y = NonMaxSuppression(b, s, k, i, t) }",
        [[BOXES, SCORES], [BOXES, SCORES * 0]],
    ),
    "NonMaxSuppression of open boxes": (
        "(float[p,q,4] b, float[p,3,q] s, int64[1] k) => (int64[n,3] y) <float i={0.3}>"
        " { z = NonMaxSuppression<center_point_box=1>(b, s, k, i) y = Neg(z) }",
        [[BOXES, SCORES, numbers(7)], [BOXES[:, :9], SCORES[:, :, :9], numbers(1000)]],
    ),
    "OneHot": (
        "(int64[a,b] i, int64 d, float[2] v) => (float[p,q,r] y) { y = OneHot<axis=1>(i, d, v) }",
        [
            [np.array([[0, 2, -1]]), np.array(3), given(2)],
            [np.ones((2, 0), np.int64), np.array(2), given(2)],
        ],
    ),
    "ScatterElements": (
        "(float[a,4] x, int64[b,4] i, float[b,4] u) => (float[p,q] y)"
        ' { y = ScatterElements<axis=0, reduction="add">(x, i, u) }',
        [[given(5, 4), np.array([[0, 1, 2, 3], [4, 4, 3, -1]]), given(2, 4)]],
    ),
    "x[mask] = 7": (
        "(float[a,4] x) => (float[p,q] y) <float[1] z={7}> { c = Relu(x) d = Cast<to=9>(c)"
        " n = NonZero(d) t = Transpose<perm=[1,0]>(n) s = Shape<start=1>(n) u = Expand(z, s)"
        " y = ScatterND(x, t, u) }",
        [[given(5, 4)], [given(1, 4)]],
    ),
    "fixed entries that open indices choose from": (
        "(float[2,2,3] x, int64[1] n) => (float[p,q,r] y) <int64[6] g = {0,1,2,2,1,0},"
        " int64[2] s = {2,3}> { i = Reshape(g, s) m = Concat<axis=0>(n, s) e = Expand(i, m)"
        " y = GatherElements<axis=2>(x, e) }",
        [[given(2, 2, 3), numbers(2)], [given(2, 2, 3), numbers(1)]],
    ),
    "CumSum along an axis": (
        "(float[a,b] x, int32 k) => (float[a,b] y) { y = CumSum<reverse=1>(x, k) }",
        [[given(3, 4), np.array(axis, np.int32)] for axis in (0, 1, -2)],
    ),
    "a window of open length": (
        "(float[a] x) => (float[a] y) { s = Size(x) w = HannWindow(s) y = Mul(w, x) }",
        [[given(5)], [given(9)]],
    ),
    "windows": (
        "(int64 n, int32 m) => (float[p] y, float[q] z, float[q] w) { y = HannWindow(n)"
        " z = HammingWindow<periodic=0>(m) w = BlackmanWindow(m) }",
        [[np.array(n), np.array(m, np.int32)] for n, m in ((5, 9), (8, 1))],
    ),
    "AffineGrid": (
        "(float[a,2,3] x, int64[3] n) => (float[a,p,q,2] y) { s = Shape<end=1>(x)"
        " k = Concat<axis=0>(s, n) y = AffineGrid(x, k) }",
        [[given(1, 2, 3), numbers(2, 3, 4)], [given(3, 2, 3), numbers(1, 6, 5)]],
    ),
    "CenterCropPad": (
        "(float[a,b] x, int64[2] n) => (float[p,q] y) { y = CenterCropPad(x, n) }",
        [[given(9, 8), numbers(3, 10)], [given(2, 3), numbers(5, 1)]],
    ),
    "EyeLike": (
        "(int64[2] n) => (float[p,q] y) { z = ConstantOfShape(n) y = EyeLike<dtype=1, k=-1>(z) }",
        [[numbers(3, 4)], [numbers(5, 2)], [numbers(0, 2)]],
    ),
    "Pad": (
        "(float[a,4,2] x, int64[2] p, float v) => (float[a,q,2] y) <int64[1] k={-2}>"
        " { y = Pad(x, p, v, k) }",
        [
            [given(3, 4, 2), numbers(*pads), np.array(7, np.float32)]
            for pads in ((1, 2), (-2, 5), (-2, -2))
        ],
    ),
    "Pad of elements to a multiple": (
        "(float[a] x, int64[1] m) => (float[q] y) <int64[1] z={0}> { s = Shape(x) n = Mod(s, m)"
        " k = Sub(m, n) r = Mod(k, m) p = Concat<axis=0>(z, r)"
        ' y = Pad<mode="edge">(x, p) }',
        [[given(5), numbers(4)], [given(8), numbers(4)], [given(1), numbers(7)]],
    ),
    "Pad by mirrors": (
        '(float[a,b] x, int64[4] p) => (float[p,q] y) { z = Pad<mode="reflect">(x, p)'
        ' y = Pad<mode="wrap">(z, p) }',
        [[given(3, 4), numbers(1, 0, 2, 3)], [given(5, 7), numbers(0, 0, 0, 0)]],
    ),
    "Resize to all sizes": (
        "(float[a,b,c,d] x, int64[4] n) => (float[p,q,r,s] y)"
        ' { z = Resize<mode="linear">(x, , , n) y = Relu(z) }',
        [[given(1, 2, 5, 4), numbers(1, 2, 7, 9)], [given(2, 3, 5, 4), numbers(2, 3, 5, 1)]],
    ),
    "Resize to sizes of pictures": (
        "(float[a,2,b,c] x, int64[2] n, float[2,2,1,1] w) => (float[a,2,q,r] y)"
        ' { z = Conv(x, w) u = Resize<mode="cubic", axes=[2,-1]>(z, , , n) y = Conv(u, w) }',
        [[given(1, 2, 5, 4), numbers(*n), given(2, 2, 1, 1)] for n in ((7, 9), (5, 4), (1, 3))],
    ),
    "Resize by scales": (
        "(float[a,2,b,c] x, float[2] f) => (float[a,2,q,r] y) <float[2] o={1.0, 1.0}>"
        ' { s = Concat<axis=0>(o, f) z = Resize<mode="linear">(x, , s) y = Resize(z, , s) }',
        [
            [given(2, 2, 9, 4), np.array(scales, np.float32)]
            for scales in ((1.5, 2.3), (1, 1), (0.6, 0.35), (0.1, 2))
        ],
    ),
    "Resize to a height": (
        "(float[1,1,b,c] x, int64 n) => (float[1,1,q,r] y) <float[2] o={1.0, 1.0}>"
        " { h = Shape<start=2, end=3>(x) f = Cast<to=1>(h) t = Cast<to=1>(n) q = Div(t, f)"
        " s = Concat<axis=0>(o, q, q) y = Resize(x, , s) }",
        [[given(1, 1, 5, 4), np.array(8)], [given(1, 1, 3, 7), np.array(2)]],
    ),
    "one element in several shapes": (
        "(int64[2] n, float[1] x) => (float[p,q] y, float[q] z) <int64[1] i={1}, int64 o={0},"
        " int64 u={1}, int64 j={1}> { a = ConstantOfShape(n) k = Gather(n, i) b = Expand(x, k)"
        " c = Add(a, b) m = Gather(n, j) r = Range(o, m, u) f = Cast<to=1>(r) y = Add(c, f)"
        " z = Mul(f, b) }",
        [[numbers(2, 3), given(1)], [numbers(0, 1), given(1)]],
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_data_decides_a_shape(name: str, tmp_path: Path) -> None:
    """Each result has the shape and the elements of ONNX Runtime's."""
    text, calls = MODELS[name]
    compare(parsed(text), calls, tmp_path)


ELEMENTS = "(float[6] x, int64[2] n) => (float[p,q] y) { z = Reshape(x, n) y = Relu(z) }"
PADS = "(float[6] x, int64[2] p) => (float[q] y) { y = Pad(x, p) }"
SCALES = MODELS["Resize by scales"][0]
REFUSED: dict[str, tuple[str, list[Any], str]] = {
    "Reshape": (ELEMENTS, [given(6), numbers(4, 2)], "Reshape: elements, expected 6 to 6, found 8"),
    "negative": (ELEMENTS, [given(6), numbers(-2, 3)], "an extent, expected 0 to .*, found -2"),
    "two open": (ELEMENTS, [given(6), numbers(-1, -1)], "an extent, expected 0 to .*, found -1"),
    "large": (ELEMENTS, [given(6), numbers(1 << 40, 1 << 40)], "elements, expected 6 to 6"),
    "Expand": (
        "(float[2,3] x, int64[2] n) => (float[p,q] y) { y = Expand(x, n) }",
        [given(2, 3), numbers(2, 4)],
        "Expand: an extent, expected 3 to 3, found 4",
    ),
    "ConstantOfShape": (
        MODELS["ConstantOfShape"][0],
        [numbers(3, -2)],
        "ConstantOfShape: an extent, expected 0 to .*, found -2",
    ),
    "memory": (
        MODELS["ConstantOfShape"][0],
        [numbers(1 << 30, 1 << 30)],
        "the values for these extents exceed memory",
    ),
    "TopK": (MODELS["TopK"][0], [given(3, 9), numbers(10)], "TopK: k, expected 0 to 9, found 10"),
    "Split": (
        MODELS["Split"][0],
        [given(9, 2), numbers(2, 6)],
        "Split: elements of all parts, expected 9 to 9, found 8",
    ),
    "an index": (
        MODELS["ScatterElements"][0],
        [given(5, 4), np.full((1, 4), 5), given(1, 4)],
        "ScatterElements: index 0 of input 1, expected -5 to 4, found 5",
    ),
    "Tile": (MODELS["Tile"][0], [given(3, 2), numbers(-1, 1)], "Tile: an extent, .*, found -3"),
    "Pad": (
        PADS,
        [given(6), numbers(-4, -3)],
        "Pad: an extent, expected 0 to .*, found -1",
    ),
    "a large pad": (
        PADS,
        [given(6), numbers(1 << 62, 1 << 62)],
        "Pad: a pad of axis 0, expected -2147483647 to 2147483647, found 4611686018427387904",
    ),
    "a pad without elements": (
        MODELS["Pad by mirrors"][0],
        [given(3, 4), numbers(-1, 0, 1, 0)],
        "Pad: a pad, expected 0 to 2147483647, found -1",
    ),
    "Resize": (
        MODELS["Resize to all sizes"][0],
        [given(1, 2, 5, 4), numbers(1, 2, -3, 4)],
        "Resize: an extent, expected 0 to 2147483647, found -3",
    ),
    "a scale": (SCALES, [given(2, 2, 9, 4), np.float32([np.nan, 1])], "Resize: a scale, expected"),
    "a large scale": (
        SCALES,
        [given(2, 2, 9, 4), np.float32([1, 1e9])],
        "Resize: a scale, expected a number over 0 and a result of fewer than 2..31 elements",
    ),
    "an axis": (
        MODELS["CumSum along an axis"][0],
        [given(3, 4), np.array(2, np.int32)],
        "CumSum: axis, expected -2 to 1, found 2",
    ),
    "Compress": (
        MODELS["Compress"][0],
        [given(3, 4), np.ones(4, bool)],
        "Compress: conditions, expected 0 to 3, found 4",
    ),
    "an element that is another one later": (
        "(int64[1] n, float[6] x) => (float[p] y, float[q,r] z) <int64[1] m={-1}>"
        " { y = ConstantOfShape(n) s = Concat<axis=0>(n, m) z = Reshape(x, s) }",
        [numbers(4), given(6)],
        "Reshape: elements, expected 6 to 6, found 4",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_numbers_that_no_shape_has_are_refused(case: str, tmp_path: Path) -> None:
    """With the operator and the numbers; the next call works."""
    text, arrays, message = REFUSED[case]
    main = main_of(parsed(text), tmp_path)
    with pytest.raises((IndexError, MemoryError, ValueError), match=message):
        main(*arrays)


def test_extents_that_must_be_equal_are_compared(tmp_path: Path) -> None:
    """Both lengths are known when the second one is."""
    text = """(float[a] x, float[b] z) => (float[n, m] y) <int64[1] o = {0}> {
      c = Cast<to=9>(x) d = Cast<to=9>(z) i = Compress(x, c) k = Compress(z, d)
      u = Unsqueeze(i, o) v = Unsqueeze(k, o) y = Concat<axis=0>(u, v) }"""
    main = main_of(parsed(text), tmp_path)
    assert main(np.ones(3, np.float32), np.array([2, 0, 2, 2], np.float32)).shape == (2, 3)
    with pytest.raises(ValueError, match=r"\(Concat\): extent n2 as n1, expected 3, found 2"):
        main(np.ones(3, np.float32), np.ones(2, np.float32))


def test_a_model_that_no_sample_fits_is_refused(tmp_path: Path) -> None:
    """With the extent that the data decides, though no input is open."""
    text = """(float[3,4] x) => (int64[p, q] y) <int64[2] s = {7, 13}> {
      i = NonZero(x) y = Reshape(i, s) }"""
    with pytest.raises(packer.ExportError, match=r"found \(7, 13\); this is with n1 = 17"):
        main_of(parsed(text), tmp_path)
