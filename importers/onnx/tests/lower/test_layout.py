"""Images in blocks and planar ones in the same graph, beside ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper, parser

import packer
import runtime

SQUEEZE = """
    a = Conv<pads=[1,1,1,1]>(x, w32x3x3x3)
    b = GlobalAveragePool(a)
    c = Conv(b, w16x32x1x1)
    d = Relu(c)
    e = Conv(d, w32x16x1x1)
    f = Sigmoid(e)
    g = Mul(a, f)
    y = Conv<pads=[1,1,1,1]>(g, w8x32x3x3)
"""
CASES = {
    "planar pooling of all pixels": """
        a = Conv(x, w16x3x1x1)
        b = Softsign(a)
        y = GlobalAveragePool(b)
    """,
    "blocks joined to blocks that are not whole": """
        a = Conv<pads=[1,1,1,1]>(x, w16x3x3x3)
        b = Conv<pads=[1,1,1,1]>(x, w24x3x3x3)
        c = Concat<axis=1>(a, b)
        y = Conv<pads=[1,1,1,1]>(c, w8x40x3x3)
    """,
    "blocks that are not whole joined to blocks": """
        a = Conv<pads=[1,1,1,1]>(x, w16x3x3x3)
        b = Conv<pads=[1,1,1,1]>(x, w24x3x3x3)
        c = Concat<axis=1>(b, a)
        y = Conv<pads=[1,1,1,1]>(c, w8x40x3x3)
    """,
    "elements of blocks that are not whole": """
        a = Conv(x, w24x3x1x1)
        b = Exp(a)
        y = Conv<pads=[1,1,1,1]>(b, w8x24x3x3)
    """,
    "elements that are not 0 in padding": """
        a = Conv(x, w16x3x1x1)
        b = Exp(a)
        y = Conv<pads=[2,2,2,2]>(b, w8x16x5x5)
    """,
    "one image for both kinds of readers": """
        a = Conv<pads=[1,1,1,1]>(x, w16x3x3x3)
        b = Conv<pads=[1,1,1,1]>(a, w16x16x3x3)
        c = Transpose<perm=[0,3,2,1]>(a)
        d = Transpose<perm=[0,3,2,1]>(b)
        y = Sub(c, d)
    """,
    "a residual with another padding": """
        a = Conv(x, w16x3x1x1)
        b = Conv<pads=[1,1,1,1]>(a, w16x16x3x3)
        c = Add(a, b)
        d = Relu(c)
        y = Conv<pads=[2,2,2,2]>(d, w8x16x5x5)
    """,
    "channels that are scaled": SQUEEZE,
}


def model_of(body: str, batch: str) -> onnx.ModelProto:
    """Make a model; the names of weights are their shapes."""
    graph = f"g (float[{batch},3,9,11] x) => (float[a,b,c,d] y) {{ {body} }}"
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {graph}')
    random = np.random.default_rng(4)
    for name in sorted({name for node in model.graph.node for name in node.input[1:]}):
        if name.startswith("w") and "x" in name:
            array = random.normal(0, 0.3, [int(e) for e in name[1:].split("x")])
            model.graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), name))
    return model


def assert_equal_results(model: onnx.ModelProto, library: runtime.Module, batch: int) -> None:
    """Compare with ONNX Runtime, by the greatest element."""
    x = np.random.default_rng(5).normal(size=(batch, 3, 9, 11)).astype(np.float32)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    found = np.asarray(library["main"](x))
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("case", CASES)
def test_every_reader_gets_the_image_in_its_layout(case: str, tmp_path: Path) -> None:
    """Two images, so that their distance counts."""
    model = model_of(CASES[case], "2")
    library = runtime.load(packer.export_library(packer.from_onnx(model), tmp_path / "a.so"))
    assert_equal_results(model, library, 2)


def test_images_of_any_batch_are_stored_in_blocks(tmp_path: Path) -> None:
    """The symbolic extent is the number of images."""
    model = model_of(SQUEEZE, "batch")
    module = packer.from_onnx(model, dynamic=["batch"])
    library = runtime.load(packer.export_library(module, tmp_path / "a.so"))
    for batch in (1, 3):
        assert_equal_results(model, library, batch)
