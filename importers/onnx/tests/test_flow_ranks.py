"""Branches whose results have different numbers of axes, beside ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import packer
import runtime
from packer import ExportError

from .support.beside_ort import compare, main_of, parsed
from .test_flow import NO, YES, given

# As PyTorch writes x.squeeze(1).
SQUEEZE = """<int64[1] one = {1}, int64 at = {1}, float[5,2] w = {1,2,3,4,5,6,7,8,9,0}> {
  s = Shape(x) d = Gather(s, at) e = Reshape(d, one) c = Equal(e, one)
  z = If(c) <then_branch = t () => (float[a,5] v) { v = Squeeze(x, one) },
    else_branch = f () => (float[a,n,5] u) { u = Identity(x) }> """
OPEN = [[given(3, 2, 5)], [given(3, 1, 5)], [given(1, 1, 5)], [given(2, 7, 5)]]
DECIDED = """{ z = If(c) <then_branch = t () => (float[a] v) { v = ReduceSum<keepdims=0>(x, o) },
  else_branch = f () => (float[a,b] u) { u = Neg(x) }> """
CALLS = [[given(3, 4), YES], [given(3, 4), NO], [given(1, 2), NO], [given(0, 2), YES]]
IN = "(float[a,b] x, bool c) => "
BY = "<int64[1] o = {1}, int64[1] flat = {-1}, int64[2] two = {1,-1}, int64 n = {3}, bool t = {1}>"


MODELS: dict[str, tuple[str, list[list[Any]]]] = {
    "squeeze": ("(float[a,n,5] x) => (float[a,2] y) " + SQUEEZE + "y = MatMul(z, w) }", OPEN),
    "squeeze twice": (
        "(float[a,n,5] x) => (float[p] y, float[a,5] z) "
        + SQUEEZE
        + """g = ReduceMax(z) q = Shape<end=1>(z) k = Equal(q, one) zero = Sub(one, one)
          m = If(k) <then_branch = t2 () => (float[n] s2) { s2 = Squeeze(z, zero) },
          else_branch = f2 () => (float[a,n] i2) { i2 = Relu(z) }> j = Add(m, g) y = Abs(j) }""",
        OPEN,
    ),
    "two axes": (
        "(float[a,n,5] x, float[n,k] h) => (float[p] y) "
        + SQUEEZE
        + """q = Shape(h) r = Gather(q, at) i = Reshape(r, one) k = Equal(i, one)
          m = If(k) <then_branch = t2 () => (float[n] s2) { s2 = Squeeze(h, one) },
          else_branch = f2 () => (float[n,k] i2) { i2 = Identity(h) }>
          g = ReduceSum(z) j = ReduceSum<keepdims=0>(m) y = Add(g, j) }""",
        [
            [given(3, 2, 5), given(2, 3)],
            [given(3, 1, 5), given(1, 3)],
            [given(3, 2, 5), given(2, 1)],
        ],
    ),
    "a result": (IN + "(float[a] z) " + BY + DECIDED + "}", CALLS),
    "a result that is read": (
        IN + "(float[p] y, float[a] z) " + BY + DECIDED + "y = Reshape(z, flat) }",
        CALLS,
    ),
    "its shape and size": (
        IN + "(int64[r] y, int64 k) " + BY + DECIDED + "y = Shape(z) k = Size(z) }",
        CALLS,
    ),
    "readers far away, with others between": (
        IN
        + "(float[p,q] y, float[a,b] r) "
        + BY
        + DECIDED
        + "r = Exp(x) m = ReduceMax(z) k = Reshape(z, two) h = ReduceSum<keepdims=0>(m)"
        + " l = Mul(k, h) y = Transpose(l) }",
        CALLS[:3],
    ),
    "a branch in a branch": (
        IN
        + "(float[p] y) "
        + BY
        + """{ z = If(c) <then_branch = t () => (float[a] v) { s = ReduceSum<keepdims=0>(x)
          k = Greater(s, s0) v = If(k) <
            then_branch = t2 () => (float i) { i = ReduceMax<keepdims=0>(x) },
            else_branch = f2 () => (float[a] j) { j = ReduceMax<keepdims=0>(x, o) }> },
          else_branch = f () => (float[a,b] u) { u = Neg(x) }> y = Sub(z, z) }""".replace(
            "s0", "zero"
        ).replace("{ z = If", "{ zero = Constant<value_float = 0.0>() z = If"),
        [*CALLS[:3], [-abs(given(3, 4)), YES]],
    ),
    "in a loop": (
        IN
        + "(float[p] y) "
        + BY
        + """{ w = Reshape(x, flat) y = Loop(n, t, w) <body = l (int64 i, bool e, float[p] h)
          => (bool g, float[q] k) { g = Identity(e) z = If(c) <
            then_branch = t2 () => (float[p] v) { v = Neg(h) },
            else_branch = f () => (float[r,s] u) { u = Reshape(h, two) }>
          m = Mul(z, z) k = Reshape(m, flat) }> }""",
        CALLS,
    ),
    "what a loop captures": (
        IN
        + "(float[p] y) "
        + BY
        + DECIDED
        + """w = Reshape(x, flat) y = Loop(n, t, w) <body = l (int64 i, bool e, float[p] h)
          => (bool g, float[q] k) { g = Identity(e) r = ReduceMax<keepdims=0>(z)
          k = Sub(h, r) }> }""",
        CALLS[:3],
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_follows_runs(name: str, tmp_path: Path) -> None:
    """Each result is that of ONNX Runtime, also its number of axes."""
    text, calls = MODELS[name]
    compare(parsed(text), calls, tmp_path)


def test_a_result_of_any_rank_is_shown(tmp_path: Path) -> None:
    """Three dots stand for its axes."""
    module = packer.from_onnx(parsed(MODELS["a result"][0]))
    library = packer.export_library(module, tmp_path / "m.so", build=packer.Build(cpu=()))
    assert [str(one) for one in runtime.load(library).outputs] == ["z: float32[...]"]


def test_a_branch_that_cannot_run_raises(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Transpose of three axes cannot follow the branch of two; a note says so."""
    text = "(float[a,n,5] x) => (float[a,2] y) " + SQUEEZE + "y = Transpose<perm=[2,0,1]>(z) }"
    main = main_of(parsed(text), tmp_path)
    words = "then_branch of node 'z' (If) cannot run: node of output 'y' (Transpose)"
    assert words in capsys.readouterr().err
    x = given(3, 2, 5)
    assert main(x).numpy().tolist() == x.transpose(2, 0, 1).tolist()
    with pytest.raises(ValueError, match=r"then_branch of node .* cannot run: .*Transpose"):
        main(given(3, 1, 5))
    assert main(x).shape == (5, 3, 2)


def test_branches_of_two_types_are_refused() -> None:
    """With both, and what to change."""
    text = IN + "(float[a] z) { z = If(c) <then_branch = t () => (float[a,b] v) { v = Neg(x) },"
    text += "else_branch = f () => (int64[a,b] u) { u = Cast<to=7>(x) }> }"
    with pytest.raises(ExportError, match=r"one type, found float32 .* and int64 .*; cast one"):
        packer.from_onnx(parsed(text))


def test_too_many_nested_branches_are_refused() -> None:
    """Each doubles what follows."""
    text = IN + "(float[a] y) " + BY + DECIDED.replace("z =", "z0 =")
    for i in range(6):
        text += f"""m{i} = ReduceSum<keepdims=0>(z{i}) c{i} = Cast<to=9>(m{i})
          z{i + 1} = If(c{i}) <then_branch = t{i} () => (float[a] v{i}) {{ v{i} = Exp(z{i}) }},
          else_branch = f{i} () => (float[a,b] u{i}) {{ u{i} = Unsqueeze(z{i}, o0) }}> """
    text += "y = Neg(z6) }"
    text = text.replace("bool t = {1}>", "bool t = {1}, int64[1] o0 = {0}>")
    with pytest.raises(ExportError, match=r"at most 4 branches of different ranks.*input_shapes"):
        packer.from_onnx(parsed(text))


def test_a_loop_keeps_its_rank() -> None:
    """A branch may not change the rank of a carried value."""
    text = IN + "(float[p] y) " + BY
    text += """{ s = ReduceSum<keepdims=0>(x) y = Loop(n, t, s) <body = l (int64 i, bool e, float h)
      => (bool g, float[q] k) { g = Identity(e) k = If(c) <
      then_branch = t2 () => (float[p] v) { v = Neg(h) },
      else_branch = f () => (float[r] u) { u = Reshape(h, flat) }> }> }"""
    with pytest.raises(ExportError, match=r"carried value 0: expected float32 of 0 axes after a"):
        packer.from_onnx(parsed(text))
