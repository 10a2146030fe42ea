"""All rewrites in order, on whole networks."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
import onnx_ir as ir
import pytest
from onnx import numpy_helper, parser

from dso_packer_onnx.read import read_model, with_shapes
from dso_packer_onnx.rewrite import rewrite

from ..support import models
from ..support.rewriting import check, make, rewritten

NETWORKS = {
    "resnet18": {"Conv": 20, "Pooling": 2, "MatMul": 1, "Flatten": 1},
    "resnet50": {"Conv": 53, "Pooling": 2, "MatMul": 1, "Flatten": 1},
    "mobilenet_v2": {"Conv": 52, "Pooling": 1, "MatMul": 1, "Flatten": 1},
    "unet": {"Conv": 18, "Pooling": 3, "Interleave": 3, "Concat": 3},
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("batch", [1, "batch"])
def test_a_network_of_images_is_convolutions_and_pools(name: str, batch: int | str) -> None:
    """Normalizations, activations and residuals are in them."""
    model = read_model(getattr(models, name)(side=32, batch=batch))
    model = with_shapes(model)
    rewrite(model)
    check(model)
    assert Counter(node.op_type for node in model.graph) == NETWORKS[name]


@pytest.mark.parametrize("decomposed", [True, False])
@pytest.mark.parametrize("batch", [1, "batch"])
def test_a_layer_of_an_encoder_is_nine_operators(decomposed: bool, batch: int | str) -> None:
    """Six products, one attention, two normalizations; no transpose and no GELU is left."""
    proto = models.encoder(2, 16, 32, 4, 64, batch=batch, decomposed=decomposed)
    shaped = with_shapes(read_model(proto))
    found = rewritten(ir.to_proto(shaped), rewrite)
    assert Counter(found.kinds) == {"dso.MatMul": 12, "dso.Attention": 2, "dso.Normalize": 4}
    weights = {name: why for name, why in found.result.items() if "weight" in name}
    assert not weights


def test_transposes_around_a_product_go_where_the_batch_is_open() -> None:
    """Rows first, as PyTorch's attention computes; the batch is the first axis again at the end."""
    text = """<ir_version: 10, opset_import: ["" : 23]> g (float[batch,5,4] x) => (float[a,b,c] y) {
        t = Transpose<perm=[1,0,2]>(x) m = MatMul(t, v) y = Transpose<perm=[1,0,2]>(m) }"""
    proto = parser.parse_model(text)
    proto.graph.initializer.append(numpy_helper.from_array(np.ones((4, 4), np.float32), "v"))
    shaped = with_shapes(read_model(proto))
    rewrite(shaped)
    assert [node.op_type for node in shaped.graph] == ["MatMul"]


def test_two_thousand_nodes_take_less_than_two_seconds() -> None:
    """The time grows with the nodes, not with their square."""
    lines = []
    for index in range(400):
        i, o = f"v{index}", f"v{index + 1}"
        lines.append(f"c{index} = Conv<pads=[1,1,1,1]>({i}, w)")
        lines.append(f"n{index} = BatchNormalization(c{index}, s, s, s, s)")
        lines.append(f"r{index} = Relu(n{index}) i{index} = Identity(r{index})")
        lines.append(f"{o} = Add(i{index}, {i})")
    text = f"(float[batch,4,8,8] v0) => (float[] v400) {{ {' '.join(lines)} }}"
    weights = {"w": np.ones((4, 4, 3, 3), np.float32), "s": np.ones(4, np.float32)}
    model = ir.from_proto(make(text, weights))
    start = time.process_time()
    rewrite(model)
    assert time.process_time() - start < 2
    assert len(model.graph) == 800
