"""Resize beside ONNX Runtime."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import packer
import runtime

PLACES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
HOW: list[dict[str, Any]] = [
    *(
        {"mode": mode, "coordinate_transformation_mode": places}
        for mode, places in product(("linear", "cubic"), PLACES)
    ),
    *(
        {"coordinate_transformation_mode": places, "nearest_mode": nearest}
        for places, nearest in product(PLACES, NEAREST)
    ),
    {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1},
    {"mode": "linear", "antialias": 1, "exclude_outside": 1},
    {"mode": "cubic", "antialias": 1, "coordinate_transformation_mode": "align_corners"},
    {"mode": "cubic", "antialias": 1, "cubic_coeff_a": -0.5},
]
# The shape, the scales or the sizes.
EXTENTS = {
    "fractions": ((2, 3, 5, 7), {"scales": [1, 1, 1.7, 0.6]}),
    "sizes": ((2, 16, 5, 7), {"sizes": [2, 16, 9, 4]}),
}
OTHERS = {
    "twice as large": ((2, 3, 5, 7), {"scales": [1, 1, 2, 2]}, {}),
    "one row": ((1, 3, 5, 7), {"sizes": [1, 3, 1, 11]}, {"mode": "linear"}),
    "one axis": ((2, 3, 7), {"scales": [1, 1, 2.5]}, {"mode": "linear"}),
    "three axes": ((2, 3, 4, 5, 6), {"scales": [1, 1, 2, 1.5, 2]}, {"mode": "linear"}),
    "channels last": ((1, 8, 9, 3), {"scales": [1, 2, 2, 1]}, {"mode": "linear"}),
    "a matrix": ((4, 5), {"scales": [2, 3]}, {}),
    "named axes": ((1, 2, 4, 5), {"sizes": [8, 6], "axes": [2, -1]}, {"mode": "cubic"}),
}


def model_of(
    shape: tuple[Any, ...], extents: dict[str, list[float]], how: dict[str, Any]
) -> onnx.ModelProto:
    """Make a model of one Resize."""
    attributes = {**how, **({"axes": extents["axes"]} if "axes" in extents else {})}
    sizes = np.array(extents.get("sizes", []), np.int64)
    scales = np.array(extents.get("scales", []), np.float32)
    constant = ("sizes", sizes) if len(sizes) else ("scales", scales)
    names = ["x", "", "", "sizes"] if len(sizes) else ["x", "", "scales"]
    x, y = (
        helper.make_tensor_value_info(name, 1, extents)
        for name, extents in (("x", shape), ("y", [None] * len(shape)))
    )
    node = helper.make_node("Resize", names, ["y"], **attributes)
    weights = [numpy_helper.from_array(constant[1], constant[0])]
    graph = helper.make_graph([node], "g", [x], [y], weights)
    opsets = [helper.make_opsetid("", 20)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def check(proto: onnx.ModelProto, folder: Path, *shapes: tuple[int, ...]) -> None:
    """Compare with ONNX Runtime, which rounds the extents of `align_corners` as ONNX does not."""
    main = runtime.load(packer.export_library(packer.from_onnx(proto), folder / "m.so"))["main"]
    session: Any = onnxruntime.InferenceSession(proto.SerializeToString())
    if b"align_corners" in proto.SerializeToString():
        session = ReferenceEvaluator(proto)
    for shape in shapes:
        x = np.random.default_rng(1).random(shape, np.float32)
        (expected,) = session.run(None, {"x": x})
        np.testing.assert_allclose(main(x).numpy(), expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("how", HOW, ids=lambda how: " ".join(map(str, how.values())))
@pytest.mark.parametrize("name", EXTENTS)
def test_images_are_resized_as_by_onnx_runtime(
    name: str, how: dict[str, Any], tmp_path: Path, capfd
) -> None:
    """Also where a place is between two pixels; by the kernel, not in plain loops."""
    shape, extents = EXTENTS[name]
    check(model_of(shape, extents, how), tmp_path, shape)
    assert "plain loops" not in capfd.readouterr().err


@pytest.mark.parametrize("name", OTHERS)
def test_any_axes_are_resized(name: str, tmp_path: Path, capfd) -> None:
    """Two at once, or one after the other."""
    shape, extents, how = OTHERS[name]
    check(model_of(shape, extents, how), tmp_path, shape)
    assert "plain loops" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "how",
    [
        {"mode": "nearest"},
        {"mode": "linear"},
        {"mode": "linear", "antialias": 1},
        {"mode": "cubic", "antialias": 1},
    ],
    ids=lambda how: " ".join(map(str, how.values())),
)
def test_images_of_open_extents_are_resized(how: dict[str, Any], tmp_path: Path) -> None:
    """By scales, and to sizes that the model gives."""
    shapes = ((1, 2, 4, 6), (3, 2, 1, 1), (2, 2, 9, 5))
    scales = [1, 1, 2, 1.5] if len(how) == 1 else [1, 1, 0.4, 0.7]
    for extents in ({"scales": scales}, {"sizes": [5, 8], "axes": [2, 3]}):
        proto = model_of(("n", 2, "h", "w"), extents, how)
        check(proto, tmp_path, *shapes)


@pytest.mark.parametrize(("antialias", "what"), [(0, "image without pixels"), (1, "axis without")])
def test_an_empty_image_that_has_a_larger_one_is_refused(
    antialias: int, what: str, tmp_path: Path
) -> None:
    """There is no pixel to take."""
    how = {"mode": "linear", "antialias": antialias}
    proto = model_of((1, 2, "h", 3), {"sizes": [5], "axes": [2]}, how)
    main = runtime.load(packer.export_library(packer.from_onnx(proto), tmp_path / "m.so"))["main"]
    assert main(np.ones((1, 2, 1, 3), np.float32)).numpy().tolist() == [[[[1.0] * 3] * 5] * 2]
    with pytest.raises(ValueError, match=f"Resize: an {what}"):
        main(np.zeros((1, 2, 0, 3), np.float32))
