"""The weights of a library have the names, shapes and values of the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import numpy_helper, parser

import packer
import runtime

TEXT = """<ir_version: 10, opset_import: ["" : 23]>
g (float[2,40] x, float[40,40] r) => (float[2,40] y, float[40,40] z, float[2,40] q)
{
    y = MatMul(x, w)
    t = Transpose<perm=[1,0]>(w)
    z = Add(r, w)
    q = MatMul(x, t)
}"""


def test_a_weight_of_several_forms_is_one_weight(tmp_path: Path) -> None:
    """It is a packed factor, a transposed one, and a plain summand."""
    weight = np.random.default_rng(2).normal(size=(40, 40)).astype(np.float32)
    model = parser.parse_model(TEXT)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    library = runtime.load(packer.export_library(packer.from_onnx(model), tmp_path / "a.so"))
    x, r = np.ones((2, 40), np.float32), np.ones((40, 40), np.float32)
    y, z, q = (np.asarray(result) for result in library["main"](x, r))
    for found, expected in ((y, x @ weight), (z, r + weight), (q, x @ weight.T)):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)
    assert "w" in library.weights
    assert not [name for name in library.weights if "#" in name]
    np.testing.assert_array_equal(np.asarray(library.weights["w"]), weight)
