"""Channels that are mixed, and blocks that become channels."""

from __future__ import annotations

import numpy as np
import pytest

from dso_packer_onnx.rewrite.mixing import mix_channels
from dso_packer_onnx.rewrite.shuffles import expand_shuffles

from ..support.rewriting import make, rewritten, unchanged

RANDOM = np.random.default_rng(1)
WEIGHTS = {
    "w": RANDOM.normal(size=(4, 3)).astype(np.float32),
    "wide": RANDOM.normal(size=(4, 40)).astype(np.float32),
    "b": RANDOM.normal(size=3).astype(np.float32),
}
TURNED = "t = Transpose<perm=[0,2,3,1]>(x)"
BACK = "y = Transpose<perm=[0,3,1,2]>"


@pytest.mark.parametrize("middle", ["u = MatMul(t, w)", "v = MatMul(t, w) u = Add(b, v)"])
def test_a_product_between_transposes_is_a_convolution(middle: str) -> None:
    """Of one pixel, with a bias if one is added."""
    text = f"(float[2,4,5,6] x) => (float[] y) {{ {TURNED} {middle} {BACK}(u) }}"
    found = rewritten(make(text, WEIGHTS), mix_channels)
    assert found.kinds == ["Conv"]
    assert len(found.node("Conv").inputs) == (3 if "Add" in middle else 2)


@pytest.mark.parametrize(
    "body",
    [
        f"{TURNED} u = MatMul(t, wide) {BACK}(u)",
        f"t = Transpose<perm=[0,3,2,1]>(x) u = MatMul(t, w) {BACK}(u)",
        f"{TURNED} u = MatMul(t, w) y = Transpose<perm=[0,3,2,1]>(u)",
    ],
    ids=["many channels", "another order", "another end"],
)
def test_any_other_product_remains(body: str) -> None:
    """Each for one reason."""
    shape = "2,4,5,4" if "3,2,1]>(x)" in body else "2,4,5,6"
    assert unchanged(make(f"(float[{shape}] x) => (float[] y) {{ {body} }}", WEIGHTS), mix_channels)


@pytest.mark.parametrize("text", ["DepthToSpace<blocksize=2>", "SpaceToDepth<blocksize=3>"])
@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks_are_moved_by_a_transpose(text: str, mode: str) -> None:
    """Also with an open batch; tests of open extents have open images."""
    text = text.replace(">", f', mode="{mode}">') if "DepthTo" in text else text
    for shape in ("2,12,6,9", "n,12,6,9"):
        model = make(f"(float[{shape}] x) => (float[] y) {{ y = {text}(x) }}")
        assert rewritten(model, expand_shuffles).kinds == ["Reshape", "Transpose", "Reshape"]
