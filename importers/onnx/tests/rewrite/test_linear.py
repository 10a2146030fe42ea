"""Products whose rows are computed in another order, and whose columns are computed apart."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from dso_packer_onnx.rewrite.arrange import simplify_views
from dso_packer_onnx.rewrite.epilogue import fuse_bias
from dso_packer_onnx.rewrite.linear import sink_views, split_products
from dso_packer_onnx.rewrite.matmul import fuse_gemm, fuse_matmul
from dso_packer_onnx.rewrite.record import summary

from ..support.rewriting import Rewritten, make, named, rewritten

RANDOM = np.random.default_rng(1)
SPLIT = (fuse_gemm, fuse_matmul, fuse_bias, split_products, simplify_views)
SINK = (fuse_gemm, fuse_matmul, fuse_bias, sink_views, simplify_views)


def weight(*shape: int) -> np.ndarray:
    """Make random weights."""
    return RANDOM.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    "parts",
    [
        "a, b, c = Split<axis=2, num_outputs=3>(s)",
        "a = Slice(s, zero, eight, last) b = Slice(s, eight, two, last) "
        "c = Slice(s, two, end, last)",
        """r = Reshape(s, three) t = Transpose<perm=[2,0,1,3]>(r)
           a = Gather(t, first) b = Gather(t, second) c = Gather(t, third)""",
    ],
    ids=["split", "slice", "gather"],
)
def test_columns_that_are_read_apart_are_computed_apart(parts: str) -> None:
    """In the ways in which exporters write q, k and v of one projection."""
    model = make(
        f"""(float[batch,5,6] x) => (float[] p, float[] q, float[] y) {{
            m = MatMul(x, w) s = Add(m, v) {parts} p = Exp(a) q = Relu(b) y = Neg(c)
        }}""",
        {
            "w": weight(6, 24),
            "v": weight(24),
            "zero": np.array([0]),
            "eight": np.array([8]),
            "two": np.array([16]),
            "end": np.array([2**40]),
            "last": np.array([-1]),
            "three": np.array([0, 5, 3, 8]),
            "first": np.array(0),
            "second": np.array(1),
            "third": np.array(-1),
        },
    )
    shapes = {"r": ("batch", 5, 3, 8), "t": (3, "batch", 5, 8)}
    one = ("batch", 5, 8)
    shapes |= {"a": one, "b": one, "c": one, "p": one, "q": one, "y": one}
    found = rewritten(named(model, shapes), *SPLIT)
    assert sorted(found.kinds) == ["Exp", "Neg", "Relu", *["dso.MatMul"] * 3]
    assert {"w[0:8]", "w[8:16]", "w[16:24]", "v[0:8]"} <= set(found.model.graph.initializers)
    assert set(summary(found.model, ["w", "v"])) == {"w", "v"}


def test_rows_of_weights_are_split_if_they_are_transposed() -> None:
    """In parts of different width."""
    model = make(
        """(float[batch,6] x) => (float[] p, float[] q) {
            s = Gemm<transB=1>(x, w, v) a, b = Split<axis=1>(s, sizes) p = Exp(a) q = Relu(b)
        }""",
        {"w": weight(12, 6), "v": weight(12), "sizes": np.array([4, 8])},
    )
    found = rewritten(model, *SPLIT)
    assert sorted(found.kinds) == ["Exp", "Relu", "dso.MatMul", "dso.MatMul"]


@pytest.mark.parametrize(
    "text",
    [
        "s = MatMul(x, w) a, b = Split<axis=1, num_outputs=2>(s) p = Exp(a) q = Relu(s)",
        "s = MatMul(x, w) a = Slice(s, none, six, last) b = Slice(s, four, end, last) "
        "p = Exp(a) q = Relu(b)",
        "s = MatMul(x, w) a, b = Split<axis=1>(s, narrow) p = Exp(a) q = Relu(b)",
        "s = MatMul(x, w) a, b = Split<axis=0, num_outputs=2>(s) p = Exp(a) q = Relu(b)",
        "s = MatMul(x, w) a = Slice(s, none, end, last, even) b = Slice(s, one, end, last, even) "
        "p = Exp(a) q = Relu(b)",
        "t = MatMul(x, w) s = MatMul(x, w) a, b = Split<axis=1, num_outputs=2>(s) p = Exp(a) "
        "q = Relu(t)",
    ],
    ids=["read whole", "overlap", "narrow", "rows", "every second", "weights read twice"],
)
def test_other_products_are_not_split(text: str) -> None:
    """Each for one reason."""
    model = make(
        f"(float[4,6] x) => (float[] p, float[] q) {{ {text} }}",
        {
            "w": weight(6, 12),
            "none": np.array([0]),
            "one": np.array([1]),
            "four": np.array([4]),
            "six": np.array([6]),
            "end": np.array([12]),
            "last": np.array([1]),
            "even": np.array([2]),
            "narrow": np.array([2, 10]),
        },
    )
    after = ir.from_proto(model)
    after.graph.opset_imports["dso"] = 1
    fuse_matmul(after)
    assert split_products(after) == 0


def sunk(text: str, shapes: dict[str, tuple[int | str, ...]]) -> Rewritten:
    """Sink the chains of a model whose first axis is a symbolic batch."""
    weights = {
        "w": weight(6, 8),
        "v": weight(8),
        "rows": np.array([-1, 6]),
        "wide": np.array([-1, 12]),
        "apart": np.array([5, -1, 8]),
        "batches": np.array([-1, 5, 8]),
        "half": np.array([-1, 5, 2, 4]),
    }
    model: onnx.ModelProto = make(f"(float[batch,5,6] x) => (float[] y) {{ {text} }}", weights)
    return rewritten(named(model, shapes), *SINK)


def test_a_transpose_of_rows_before_and_after_a_product_is_gone() -> None:
    """With a bias between."""
    found = sunk(
        """t = Transpose<perm=[1,0,2]>(x) m = MatMul(t, w) s = Add(m, v)
           u = Transpose<perm=[1,0,2]>(s) y = Exp(u)""",
        {},
    )
    assert found.kinds == ["dso.MatMul", "Exp"]


def test_rows_that_are_joined_and_divided_again_are_read_as_they_are() -> None:
    """So a residual of the same shape can follow."""
    found = sunk(
        """r = Reshape(x, rows) s = Gemm(r, w, v) u = Reshape(s, batches) y = Exp(u)""",
        {"r": ("5*batch", 6), "s": ("5*batch", 8), "u": ("batch", 5, 8), "y": ("batch", 5, 8)},
    )
    assert found.kinds == ["dso.MatMul", "Exp"]


def test_rows_in_another_order_and_joined_are_read_as_they_are() -> None:
    """As after attention with the rows first."""
    found = sunk(
        """t = Transpose<perm=[1,0,2]>(x) r = Reshape(t, rows) s = Gemm(r, w, v)
           a = Reshape(s, apart) u = Transpose<perm=[1,0,2]>(a) y = Exp(u)""",
        {
            "r": ("5*batch", 6),
            "s": ("5*batch", 8),
            "a": (5, "batch", 8),
            "u": ("batch", 5, 8),
            "y": ("batch", 5, 8),
        },
    )
    assert found.kinds == ["dso.MatMul", "Exp"]


@pytest.mark.parametrize(
    "text",
    [
        "t = Transpose<perm=[1,0,2]>(x) s = MatMul(t, w) y = Exp(s)",
        "s = MatMul(x, w) u = Transpose<perm=[1,0,2]>(s) y = Exp(u)",
        "t = Transpose<perm=[0,2,1]>(x) s = MatMul(t, w5) y = Transpose<perm=[0,2,1]>(s)",
    ],
    ids=["only before", "only after", "columns"],
)
def test_another_chain_remains(text: str) -> None:
    """A move would leave as many copies."""
    model = make(
        f"(float[batch,5,6] x) => (float[] y) {{ {text} }}", {"w": weight(6, 8), "w5": weight(5, 8)}
    )
    after = ir.from_proto(model)
    after.graph.opset_imports["dso"] = 1
    fuse_matmul(after)
    assert sink_views(after) == 0
