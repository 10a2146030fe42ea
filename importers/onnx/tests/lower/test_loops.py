"""Loops over many elements: whole parts of rows and columns, and the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import packer
import runtime

HEAD = '<ir_version: 10, opset_import: ["" : 23]> g '
REDUCTIONS = [f"Reduce{name}" for name in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2")]


def check(text: str, x: np.ndarray, folder: Path) -> None:
    """Compare a model of one node with ONNX Runtime."""
    proto = parser.parse_model(HEAD + text)
    onnx.checker.check_model(proto)
    main = runtime.load(packer.export_library(packer.from_onnx(proto), folder / "m.so"))["main"]
    (expected,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})
    found = main(x).numpy()
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5)


def given(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    """Random numbers of both signs; near 1, so that products are neither 0 nor large."""
    random = np.random.default_rng(len(shape))
    if dtype == "int64":
        return random.choice([-1, 1, 1], shape).astype(np.int64)
    return (1 + 0.1 * random.normal(size=shape)).astype(dtype)


@pytest.mark.parametrize("kind", REDUCTIONS)
@pytest.mark.parametrize("axes", ["0", "1", "2", "0, 1", "1, 2", "0, 2", "0, 1, 2"])
def test_reductions_of_many_elements_are_those_of_onnx_runtime(
    kind: str, axes: str, tmp_path: Path
) -> None:
    """More columns than one loop has, and rows that are not whole parts."""
    count = axes.count(",") + 1
    text = f"(float[3,21,70] x) => (float[] y) <int64[{count}] a = {{{axes}}}>"
    kept = f"{kind}<keepdims=0>(x, a)" if count == 3 else f"{kind}(x, a)"
    rank = "" if count == 3 else "p,q,r"
    check(
        text.replace("[] y", f"[{rank}] y" if rank else " y") + f" {{ y = {kept} }}",
        given((3, 21, 70)),
        tmp_path,
    )


@pytest.mark.parametrize(("kind", "result"), [("ReduceMax", "-inf"), ("ReduceMin", "inf")])
def test_no_element_gives_infinity(kind: str, result: str, tmp_path: Path) -> None:
    """As ONNX defines it."""
    text = f"(float[2,0,3] x) => (float[p,q,r] y) <int64[1] a = {{1}}> {{ y = {kind}(x, a) }}"
    proto = parser.parse_model(HEAD + text)
    main = runtime.load(packer.export_library(packer.from_onnx(proto), tmp_path / "m.so"))["main"]
    found = main(np.zeros((2, 0, 3), np.float32)).numpy()
    assert (found == np.full((2, 1, 3), float(result))).all()


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(
    "node",
    [
        "CumSum<exclusive=0>(x, a)",
        "CumSum<exclusive=1, reverse=1>(x, a)",
        "Softmax<axis={axis}>(x)",
        "LogSoftmax<axis={axis}>(x)",
    ],
)
def test_rows_and_columns_are_those_of_onnx_runtime(node: str, axis: int, tmp_path: Path) -> None:
    """Along each axis."""
    text = f"(float[5,33,70] x) => (float[p,q,r] y) <int64 a = {{{axis}}}>"
    check(f"{text} {{ y = {node.format(axis=axis)} }}", given((5, 33, 70)), tmp_path)


@pytest.mark.parametrize("kind", ["float", "int64"])
@pytest.mark.parametrize(
    ("shape", "perm"),
    [
        ((19, 35), (1, 0)),
        ((2, 17, 3, 20), (0, 2, 3, 1)),
        ((2, 17, 3, 20), (3, 1, 2, 0)),
        ((4, 1, 18, 5), (2, 1, 0, 3)),
        ((3, 4, 5), (0, 1, 2)),
        ((1, 1, 1), (2, 0, 1)),
        ((2, 3, 2, 3, 2), (4, 2, 0, 3, 1)),
    ],
)
def test_axes_are_exchanged(
    shape: tuple[int, ...], perm: tuple[int, ...], kind: str, tmp_path: Path
) -> None:
    """By rows and by squares, with a rest; axes that remain adjacent are one."""
    extents, rank = ",".join(map(str, shape)), ",".join("pqrst"[: len(shape)])
    text = f"({kind}[{extents}] x) => ({kind}[{rank}] y) {{ y = Transpose<perm={[*perm]}>(x) }}"
    check(text, given(shape, {"float": "float32"}.get(kind, kind)), tmp_path)


@pytest.mark.parametrize("pads", ["1,0,2,3, 0,2,1,1", "0,0,-1,2, 0,-2,3,-4", "0,0,0,-3, 0,0,0,-3"])
@pytest.mark.parametrize("fill", ["", ", v"])
def test_pads_of_both_signs_move_rows(pads: str, fill: str, tmp_path: Path) -> None:
    """Elements are added, or left out."""
    text = f"(float[2,3,5,6] x) => (float[p,q,r,s] y) <int64[8] a = {{{pads}}}, float v = {{-2}}>"
    check(f"{text} {{ y = Pad(x, a{fill}) }}", given((2, 3, 5, 6)), tmp_path)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_rows_are_gathered(axis: int, tmp_path: Path) -> None:
    """From the end too."""
    text = "(float[4,5,6] x) => (float[p,q,r,s] y) <int64[2,2] i = {0, -1, 3, -4}>"
    check(f"{text} {{ y = Gather<axis={axis}>(x, i) }}", given((4, 5, 6)), tmp_path)


@pytest.mark.parametrize("kind", ["ReduceSum", "ReduceMax", "ReduceProd"])
@pytest.mark.parametrize("axis", [0, 1])
def test_integers_are_combined_exactly(kind: str, axis: int, tmp_path: Path) -> None:
    """In 64 bits."""
    text = f"(int64[40,90] x) => (int64[p,q] y) <int64[1] a = {{{axis}}}> {{ y = {kind}(x, a) }}"
    check(text, given((40, 90), "int64"), tmp_path)
