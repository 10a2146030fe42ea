"""Branches and loops that run, beside ONNX Runtime."""

from __future__ import annotations

import resource
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime

from .support.beside_ort import compare, main_of, parsed

Array = np.ndarray[Any, Any]
YES, NO = np.array(True), np.array(False)


def given(*shape: int, seed: int = 0) -> Array:
    """Small numbers of both signs."""
    return np.random.default_rng(seed).normal(size=shape).round(1).astype(np.float32)


def rounds(number: int) -> Array:
    """A number of rounds."""
    return np.array(number, np.int64)


MODELS: dict[str, tuple[str, list[list[Any]]]] = {
    "branches of other shapes": (
        """(float[a,4] x, bool c) => (float[p,4] y) { y = If(c) <
          then_branch = t () => (float[p,4] n) { n = Neg(x) },
          else_branch = e () => (float[p,4] m) { m = Concat<axis=0>(x, x) }> }""",
        [[given(3, 4), YES], [given(3, 4), NO], [given(5, 4), NO]],
    ),
    "branches of one open shape": (
        """(float[a,4] x, bool c) => (float[a,4] y) { z = If(c) <
          then_branch = t () => (float[p,4] n) { n = Neg(x) },
          else_branch = e () => (float[p,4] m) { m = Exp(x) }> y = Add(z, x) }""",
        [[given(3, 4), YES], [given(5, 4), NO]],
    ),
    "weights around a branch and in it": (
        """(float[a,4] x, bool c) => (float[a,2] y) <float[4,2] w = {1,2,3,4,5,6,7,8}> {
          y = If(c) <then_branch = t () => (float[p,2] n) { n = MatMul(x, w) },
          else_branch = e () => (float[p,2] m) <float[4,2] v = {0,2,3,4,5,6,7,8}>
            { z = MatMul(x, v) m = Relu(z) }> }""",
        [[given(3, 4), YES], [given(3, 4), NO]],
    ),
    "a branch that is an input": (
        """(float[3,4] x, bool c) => (float[p,q] y) { y = If(c) <
          then_branch = t () => (float[p,q] n) { n = Identity(x) },
          else_branch = e () => (float[p,q] m) { m = Transpose(x) }> }""",
        [[given(3, 4), YES], [given(3, 4), NO]],
    ),
    "rows of a loop": (
        """(int64 n, float[a,4] x) => (float[a,4] y, float[k,a,4] s) <bool t = {1}> {
          y, s = Loop(n, t, x) <body = b (int64 i, bool c, float[a,4] v)
            => (bool d, float[a,4] w, float[a,4] o)
            { d = Identity(c) f = Cast<to=1>(i) w = Add(v, f) o = Mul(w, x) }> }""",
        [[rounds(5), given(3, 4)], [rounds(100), given(1, 4)], [rounds(1), given(3, 4)]],
    ),
    "a loop whose carried value grows": (
        """(int64 n, float[a,4] x) => (float[p,4] y) <bool t = {1}> {
          y = Loop(n, t, x) <body = b (int64 i, bool c, float[p,4] v) => (bool d, float[q,4] w)
            { d = Identity(c) w = Concat<axis=0>(v, x) }> }""",
        [[rounds(5), given(3, 4)], [rounds(0), given(3, 4)], [rounds(1), given(1, 4)]],
    ),
    "zeros of an open shape are carried": (
        """(int64 n, float[a,3] x) => (float[a,3] y, float[a,p] v)
          <bool t = {1}, int64[2] s = {0,-1}> {
          e = Shape(x) zeros = ConstantOfShape(e) h = Expand(zeros, e) u = Reshape(h, s)
          y = Loop(n, t, zeros) <body = b (int64 i, bool c, float[a,3] w) => (bool d, float[a,3] o)
            { d = Identity(c) o = Add(w, x) }>
          v = Loop(n, t, u) <body = b2 (int64 j, bool f, float[a,3] q) => (bool g, float[a,3] r)
            { g = Identity(f) r = Add(q, x) }> }""",
        [[rounds(2), given(4, 3)], [rounds(0), given(1, 3)]],
    ),
    "an early end": (
        """(float[4] x) => (float[4] y, int64[k] s)
          <bool t = {1}, int64 m = {1000}, float most = {100}, float two = {2}> {
          y, s = Loop(m, t, x) <body = b (int64 i, bool c, float[4] v)
            => (bool d, float[4] w, int64 o) { w = Mul(v, two) r = ReduceMax<keepdims=0>(w)
              d = Less(r, most) o = Identity(i) }> }""",
        [[np.abs(given(4)) + 1], [np.abs(given(4)) + 200]],
    ),
    "a loop without a limit": (
        """(float[4] x) => (float[4] y) <bool t = {1}, float most = {100}, float two = {2}> {
          y = Loop(, t, x) <body = b (int64 i, bool c, float[4] v) => (bool d, float[4] w)
            { w = Mul(v, two) r = ReduceMax<keepdims=0>(w) d = Less(r, most) }> }""",
        [[np.abs(given(4)) + 1]],
    ),
    "a loop in a loop": (
        """(int64 n, float[a] x) => (float[a] y) <bool t = {1}> {
          y = Loop(n, t, x) <body = b (int64 i, bool c, float[a] v) => (bool d, float[a] w) {
            d = Identity(c) w = Loop(i, t, v) <body = b2 (int64 j, bool e, float[a] v2)
              => (bool f, float[a] w2)
              { f = Identity(e) g = Cast<to=1>(j) u = Add(v2, g) w2 = Add(u, x) }> }> }""",
        [[rounds(5), given(3)], [rounds(0), given(3)]],
    ),
    "a branch in a loop": (
        """(int64 n, float[a] x) => (float[p] y) <bool t = {1}, int64 two = {2}, int64 z = {0}> {
          y = Loop(n, t, x) <body = b (int64 i, bool c, float[q] v) => (bool d, float[r] w) {
            d = Identity(c) m = Mod(i, two) e = Equal(m, z)
            w = If(e) <then_branch = tb () => (float[u] o) { o = Concat<axis=0>(v, x) },
              else_branch = eb () => (float[s] k) { k = Neg(v) }> }> }""",
        [[rounds(5), given(3)], [rounds(0), given(3)]],
    ),
    "data decides a shape in a loop": (
        """(int64 n, float[a] x) => (float[p] y, int64[s] k) <bool t = {1}, float h = {0.1}> {
          y, k = Loop(n, t, x) <body = b (int64 i, bool c, float[q] v)
            => (bool d, float[r] w, int64 o) { d = Identity(c) s = Sub(v, h) u = Relu(s)
              m = Cast<to=9>(u) w = Compress<axis=0>(s, m) z = Size(w) o = Identity(z) }> }""",
        [[rounds(5), given(30)], [rounds(0), given(3)], [rounds(50), given(3)]],
    ),
    "Scan": (
        """(float[a] h, float[T,a] x) => (float[a] y, float[k,a] z) {
          y, z = Scan<num_scan_inputs=1, body = b (float[a] g, float[a] xi)
            => (float[a] l, float[a] o) { s = Add(g, xi) l = Tanh(s) o = Neg(l) }>(h, x) }""",
        [[given(3), given(7, 3)], [given(3), given(1, 3)]],
    ),
    "Scan of columns from the end": (
        """(float[a] h, float[a,T] x) => (float[a] y, float[p,q] z) {
          y, z = Scan<num_scan_inputs=1, scan_input_axes=[1], scan_input_directions=[1],
            scan_output_axes=[1], scan_output_directions=[1], body = b (float[a] g, float[a] xi)
            => (float[a] l, float[a] o) { s = Add(g, xi) l = Tanh(s) o = Neg(l) }>(h, x) }""",
        [[given(3), given(3, 7)], [given(3), given(3, 1)]],
    ),
}
MODELS |= {
    "equal bodies": (
        """(float[a,4] x, bool c) => (float[a,4] y, float[a,4] z) {
          y = If(c) <then_branch = t () => (float[p,4] k) { k = Neg(x) },
            else_branch = e () => (float[p,4] l) { l = Neg(x) }>
          z = If(c) <then_branch = u () => (float[p,4] m) { m = Exp(x) },
            else_branch = f () => (float[p,4] n) { n = Neg(x) }> }""",
        [[given(3, 4), YES], [given(3, 4), NO]],
    ),
    "a greedy decoder that stops": (
        """(int64[b,l] ids, int64 n) => (int64[b,m] out, float[s,b] k)
          <bool t = {1}, int64[1] one = {1}, int64 none = {0}, int64 five = {5}> {
          out, k = Loop(n, t, ids) <body = b (int64 i, bool c, int64[b,k] v)
            => (bool d, int64[b,j] w, float[b] o) { s = ReduceSum<keepdims=1>(v, one)
              r = Mod(s, five) w = Concat<axis=1>(v, r) h = ReduceMax<keepdims=0>(r)
              d = Greater(h, none) f = Cast<to=1>(r) o = Squeeze(f, one) }> }""",
        [[np.array([[1, 2], [3, 4]]), rounds(50)]],
    ),
    "a round that gives another length, equal in all samples by chance": (
        """(float[a] x, int64 n) => (float[p] y)
          <bool t = {1}, int64[1] o = {0}, int64[1] m = {12}, float[2] two = {1, 2}> {
          xx = Concat<axis=0>(x, x) u = Slice(xx, o, m) x2 = Concat<axis=0>(x, two)
          w = Slice(x2, o, m) y = Loop(n, t, u) <body = b (int64 i, bool c, float[h] v)
            => (bool d, float[k] r) { d = Identity(c) r = Neg(w) }> }""",
        [[given(size), rounds(number)] for size in (1, 2, 5) for number in (0, 2)],
    ),
    "branches of two lengths, equal in all samples by chance": (
        """(float[a] x, bool c) => (float[p] y)
          <int64[1] o = {0}, int64[1] m = {12}, float[2] two = {1, 2}> {
          xx = Concat<axis=0>(x, x) u = Slice(xx, o, m) x2 = Concat<axis=0>(x, two)
          w = Slice(x2, o, m) y = If(c) <then_branch = t () => (float[h] r) { r = Neg(u) },
          else_branch = e () => (float[k] s) { s = Abs(w) }> }""",
        [[given(size), condition] for size in (1, 2, 5) for condition in (YES, NO)],
    ),
    "the first elements of a value that grows": (
        """(float[a] x, int64 n) => (float[p] y) <bool t = {1}, int64[1] o = {0},
          int64[1] m = {12}> { s = Slice(x, o, m)
          y = Loop(n, t, s) <body = b (int64 i, bool c, float[u] v) => (bool d, float[w] r)
            { d = Identity(c) k = Concat<axis=0>(v, s) r = Slice(k, o, m) }> }""",
        [
            [given(3), rounds(2)],
            [given(9), rounds(3)],
            [given(20), rounds(1)],
            [given(3), rounds(0)],
        ],
    ),
    "the tokens and the scores of a search": (
        """(float[5,5] w, int64 n) => (int64[p,q] ids, float[r] all) <bool t = {1},
          int64[1,1] first = {2}, float[1] none = {0}, int64[1] last = {-1}, int64[1] one = {1},
          int64[1] k = {3}, int64 five = {5}, int64[1] flat = {-1}> {
          ids, all = Loop(n, t, first, none) <body = b (int64 i, bool c, int64[e,l] x, float[e] s)
            => (bool d, int64[f,m] y, float[f] u) { d = Identity(c) j = Gather<axis=1>(x, last)
              h = Squeeze(j, one) g = Gather(w, h) v = Unsqueeze(s, one) a = Add(g, v)
              z = Reshape(a, flat) u, o = TopK(z, k) r = Div(o, five) q = Mod(o, five)
              p = Gather(x, r) qq = Unsqueeze(q, one) y = Concat<axis=1>(p, qq) }> }""",
        [[given(5, 5), rounds(4)], [given(5, 5), rounds(1)]],
    ),
    "a mixture of experts": (
        """(float[t,4] x, float[t,2] g) => (float[p,q] y) <int64 zero = {0}, int64 one = {1},
          float[4,4] v = {1,2,3,4,5,6,7,8,9,1,1,2,3,4,5,6},
          float[4,4] w = {1,0,3,4,5,0,7,8,9,0,1,2,3,1,5,1}> {
          k = ArgMax<axis=1,keepdims=0>(g) a = Equal(k, zero) b = NonZero(a)
          c = Transpose<perm=[1,0]>(b) d = GatherND(x, c) e = MatMul(d, v) f = Relu(e)
          h = Equal(k, one) i = NonZero(h) j = Transpose<perm=[1,0]>(i) l = GatherND(x, j)
          m = MatMul(l, w) n = Relu(m) z = Sub(x, x) o = ScatterND(z, c, f)
          y = ScatterND<reduction="add">(o, j, n) }""",
        [[given(6, 4), given(6, 2)], [given(1, 4), given(1, 2)], [given(30, 4), given(30, 2)]],
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_bodies_run(name: str, tmp_path: Path) -> None:
    """Each result is that of ONNX Runtime."""
    text, calls = MODELS[name]
    compare(parsed(text), calls, tmp_path)


COUNT = """(int64 n, float[a] x) => (float[a] y) <bool t = {1}, float one = {1}> {
  y = Loop(n, t, x) <body = b (int64 i, bool c, float[a] v) => (bool d, float[a] w)
    { d = Identity(c) w = Add(v, one) }> }"""


def test_rounds_need_no_more_memory(tmp_path: Path) -> None:
    """A million rounds of 400 bytes."""
    main = main_of(parsed(COUNT), tmp_path)
    x = np.zeros(100, np.float32)
    main(rounds(10), x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert main(rounds(1_000_000), x).numpy().tolist() == [1_000_000.0] * 100
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8192  # KiB


def test_no_round_makes_no_row(tmp_path: Path) -> None:
    """The shapes of the inputs decide the extents of a row."""
    main = main_of(parsed(MODELS["rows of a loop"][0]), tmp_path)
    y, rows = main(rounds(0), given(3, 4))
    assert (y.numpy().tolist(), rows.shape) == (given(3, 4).tolist(), (0, 3, 4))


def test_a_loop_without_an_end_is_interrupted(tmp_path: Path) -> None:
    """By the handler of a signal, as of Ctrl-C."""
    text = """(float[2] x) => (float[2] y) <bool t = {1}> { y = Loop(, t, x) <
      body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w)
      { d = Identity(c) w = Neg(v) }> }"""
    main = main_of(parsed(text), tmp_path)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            main(given(2))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_rows_of_unequal_shapes_are_refused(tmp_path: Path) -> None:
    """With the result and both extents."""
    text = """(int64 n, float[a] x) => (float[k,p] y) <bool t = {1}, int64[1] z = {0}> {
      y = Loop(n, t) <body = b (int64 i, bool c) => (bool d, float[p] w)
        { d = Identity(c) e = Reshape(i, z1) w = Slice(x, z, e, z) }> }"""
    text = text.replace("int64[1] z = {0}", "int64[1] z = {0}, int64[1] z1 = {1}")
    main = main_of(parsed(text), tmp_path)
    with pytest.raises(ValueError, match=r"'y' of float32: extent of axis 0, expected 0, found 1"):
        main(rounds(2), given(4))


def test_two_models_with_bodies_are_in_one_library(tmp_path: Path) -> None:
    """Equal inputs and names of bodies, and other extents of the results."""
    text = """(float[a] x, bool c) => (float[p] y) { y = If(c) <
      then_branch = t () => (float[p] n) { n = Neg(x) },
      else_branch = e () => (float[q] m) { m = OTHER }> }"""
    others = ("Exp(x)", "Concat<axis=0>(x, x)")
    first, second = (packer.from_onnx(parsed(text.replace("OTHER", one))) for one in others)
    first.import_module(second)
    library = runtime.load(packer.export_library(first, tmp_path / "m.so"))
    assert library["main"](given(3), NO).shape == (3,)
    (other,) = (one for one in library.imported_modules if one.type_key == first.type_key)
    assert other["main"](given(3), NO).shape == (6,)
