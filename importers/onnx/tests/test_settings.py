"""The settings of models: input shapes, and values of inputs."""

from __future__ import annotations

import pytest

from dso_packer_onnx.importer import read_input_shapes, read_input_values
from runtime.error import ExportError


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], []),
        (["x=1x3x224x224"], [{"x": (1, 3, 224, 224)}]),
        (["x=batch,3", "y=", "a=b=7"], [{"x": ("batch", 3), "y": (), "a=b": (7,)}]),
        (["x=Nx3"], [{"x": ("N", 3)}]),
        (["x=1x2", "x=8x2"], [{"x": (1, 2)}, {"x": (8, 2)}]),
        (
            ["x=1", "m=5", "y=1x2", "x=8", "y=8x2"],
            [{"x": (1,), "m": (5,), "y": (1, 2)}, {"x": (8,), "m": (5,), "y": (8, 2)}],
        ),
    ],
)
def test_input_shapes_are_sets(texts: list[str], expected: list[dict]) -> None:
    """An input that is named again begins the next set."""
    assert read_input_shapes(texts) == expected


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["x"], "input shapes: expected NAME=SHAPE, as in x=1x3x224x224, found 'x'"),
        (["=1x2"], "input shapes: expected NAME=SHAPE, as in x=1x3x224x224, found '=1x2'"),
        (["x=1xx2"], "input shapes: 'x=1xx2': a shape, expected extents as in 1x3x224x224"),
        (
            ["x=1", "x=2", "x=3", "y=1", "y=2"],
            "input shapes: 'y' has 2 shapes, expected 1 or 3, as other inputs have",
        ),
    ],
)
def test_wrong_input_shapes_are_refused(texts: list[str], message: str) -> None:
    """With the text, and the form that is expected."""
    with pytest.raises(ExportError) as raised:
        read_input_shapes(texts)
    assert raised.value.message == message


def test_input_values_are_numbers() -> None:
    """Whole ones stay whole; an equals sign may be in a name."""
    texts = ["size=1,2, 5,8", "a=b=1.5", "low=-1e3", "high=inf"]
    expected = {"size": [1, 2, 5, 8], "a=b": [1.5], "low": [-1000.0], "high": [float("inf")]}
    assert read_input_values(texts) == expected


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["x"], "input values: expected NAME=NUMBERS, as in size=2,2,5,6, found 'x'"),
        (["x=1,b"], "input values: 'x=1,b': expected numbers"),
        (["x=1", "x=2"], "input values: expected each name once, found 'x=2'"),
    ],
)
def test_wrong_input_values_are_refused(texts: list[str], message: str) -> None:
    """With the text, and the form that is expected."""
    with pytest.raises(ExportError) as raised:
        read_input_values(texts)
    assert raised.value.message == message
