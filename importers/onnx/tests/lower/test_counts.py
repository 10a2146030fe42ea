"""Results whose length the data decides: the declared length is checked in each call."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import packer
import runtime

Array = np.ndarray[Any, Any]


def parsed(text: str) -> onnx.ModelProto:
    """A model in ONNX's text form, without its head."""
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>\ng {text}')


def check(
    text: str,
    given: dict[str, Array],
    others: dict[int, dict[str, Array]],
    message: str,
    folder: Path,
) -> None:
    """Compare a call with ONNX Runtime; others, whose results have other lengths, raise."""
    model = parsed(text)
    main = runtime.load(packer.export_library(packer.from_onnx(model), folder / "m.so"))["main"]
    found = main(*given.values())
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, given)
    for one, wanted in zip(found if len(expected) > 1 else [found], expected, strict=True):
        assert one.numpy().tolist() == wanted.tolist()
    for length, other in others.items():
        with pytest.raises(IndexError, match=re.escape(f"{message}, found {length}")):
            main(*{**given, **other}.values())


BOXES = np.array([[[0, 0, 1, 1], [0, 0, 1, 0.9], [0, 2, 1, 3], [0, 4, 1, 5]]], np.float32)


@pytest.mark.parametrize("rows", [1, 3])
def test_boxes_that_are_selected(rows: int, tmp_path: Path) -> None:
    """None, fewer, more, and as many as declared; the last are ONNX Runtime's."""
    text = f"""(float[1,4,4] boxes, float[1,2,4] scores, int64 most) => (int64[{rows},3] y)
      <float i = {{0.5}}, float s = {{0.2}}>
      {{ y = NonMaxSuppression (boxes, scores, most, i, s) }}"""
    all_three = np.array([[[0.9, 0.8, 0.1, 0.5], [0, 0, 0.3, 0]]], np.float32)
    one = np.array([[[0, 0, 0, 0.5], [0, 0, 0, 0]]], np.float32)
    five = np.array([[[0.9, 0.8, 0.4, 0.5], [0, 0, 0.3, 0.4]]], np.float32)
    scores = {3: all_three, 1: one, 5: five}
    given = {"boxes": BOXES, "scores": scores.pop(rows), "most": np.array(9)}
    others = {length: {"scores": array} for length, array in scores.items()}
    others[0] = {"most": np.array(0)}
    check(
        text,
        given,
        others,
        f"NonMaxSuppression: selected boxes, expected {rows} to {rows}",
        tmp_path,
    )


def test_elements_that_differ(tmp_path: Path) -> None:
    """With all outputs, sorted."""
    text = """(float[5] x) => (float[3] y, int64[3] i, int64[5] j, int64[3] n)
      { y, i, j, n = Unique (x) }"""
    given = {"x": np.array([2, 1, 2, 3, 1], np.float32)}
    others = {5: {"x": np.arange(5, dtype=np.float32)}, 1: {"x": np.ones(5, np.float32)}}
    check(text, given, others, "Unique: elements that differ, expected 3 to 3", tmp_path)


def test_slices_that_differ(tmp_path: Path) -> None:
    """Along the last axis."""
    text = """(float[2, 3] x) => (float[2, 2] y, int64[2] i, int64[3] j, int64[2] n)
      { y, i, j, n = Unique <axis = -1> (x) }"""
    given = {"x": np.array([[1, 2, 1], [3, 4, 3]], np.float32)}
    others = {3: {"x": np.array([[1, 1, 1], [3, 4, 5]], np.float32)}}
    check(text, given, others, "Unique: elements that differ, expected 2 to 2", tmp_path)


@pytest.mark.parametrize(("axis", "shape"), [("", "2"), ("<axis = -1>", "2, 2")])
def test_elements_that_are_chosen(axis: str, shape: str, tmp_path: Path) -> None:
    """Of the flat array, and along an axis."""
    text = f"(float[2, 3] x, bool[3] c) => (float[{shape}] y) {{ y = Compress {axis} (x, c) }}"
    given = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "c": np.array([True, False, True])}
    others = {count: {"c": np.arange(3) < count} for count in (0, 1, 3)}
    check(text, given, others, "Compress: elements that are true, expected 2 to 2", tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "(float[5] x) => (float[3] y) <bool[5] c = {1, 1, 0, 0, 0}> { y = Compress (x, c) }",
            r"\(elements that are true, expected 3 as declared, found 2\)",
        ),
    ],
)
def test_a_constant_that_the_declared_length_contradicts_is_refused(
    text: str, message: str
) -> None:
    """When the model is exported."""
    with pytest.raises(packer.ExportError, match=message):
        packer.from_onnx(parsed(text))


def test_a_slice_between_bounds_of_a_call(tmp_path: Path) -> None:
    """Forward and backward, from the end, and with bounds of 64 bits."""
    text = """(float[5, 6] x, int64[2] s, int64[2] e) => (float[3, 2] y)
      <int64[2] a = {1, 0}, int64[2] d = {-3, 1}> { y = Slice (x, s, e, a, d) }"""
    least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    given = {
        "x": np.arange(30, dtype=np.float32).reshape(5, 6),
        "s": np.array([most, -3]),
        "e": np.array([least, most]),
    }
    others = {1: {"s": np.array([2, -3])}, 0: {"s": np.array([-7, 0])}}
    check(text, given, others, "Slice: elements of axis 1, expected 2 to 2", tmp_path)
    others = {5: {"s": np.array([most, 0])}, 2: {"e": np.array([least, -1])}}
    check(text, given, others, "Slice: elements of axis 0, expected 3 to 3", tmp_path)


@pytest.mark.parametrize(
    ("text", "axis", "low", "high"),
    [
        ("(float[2, 3] x, int64 a) => (float[2, 3] y) { y = CumSum (x, a) }", 2, -2, 1),
        ("(float[1, 4, 2] x, int64 a) => (float[1, 4, 2] y) { y = DFT (x, , a) }", -1, -3, 1),
    ],
)
def test_an_axis_of_a_call(text: str, axis: int, low: int, high: int, tmp_path: Path) -> None:
    """One that the input lacks would leave the result as it is in memory."""
    model = parsed(text)
    main = runtime.load(packer.export_library(packer.from_onnx(model), tmp_path / "m.so"))["main"]
    shape = [one.dim_value for one in model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(2).normal(size=shape).astype(np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (expected,) = session.run(None, {"x": x, "a": np.array(-2)})
    np.testing.assert_allclose(main(x, np.array(-2)).numpy(), expected, atol=1e-6)
    with pytest.raises(IndexError, match=f"expected {low} to {high}, found {axis}"):
        main(x, np.array(axis))


def test_an_input_that_decides_a_shape_is_given() -> None:
    """Where no code finds the shape, the advice works."""
    text = "(float[1,5,5] x, int64[2] a) => (float[1,1,5,5] y) <int64[2] b={1, 5}>"
    model = parsed(f"{text} {{ y = Col2Im (x, a, b) }}")
    message = r"\(Col2Im\): .*; give 'a', which decides it, by input_values"
    with pytest.raises(packer.ExportError, match=message):
        packer.from_onnx(model)
    assert packer.from_onnx(model, input_values={"a": [5, 5]}).type_key
