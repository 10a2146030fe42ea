"""GRU and RNN that run backwards."""

from __future__ import annotations

import numpy as np
import pytest

from packer.importers.onnx.rewrite.recurrent import split_directions

from ..support.rewriting import make, rewritten, unchanged

RANDOM = np.random.default_rng(6)
GATES = {"GRU": 3, "RNN": 1}
INPUTS, HIDDEN, LENGTH = 4, 5, 6


def weights(kind: str, directions: int) -> dict[str, np.ndarray]:
    """Make the weights of a layer."""
    gates = GATES[kind] * HIDDEN
    shapes = {
        "w": (directions, gates, INPUTS),
        "r": (directions, gates, HIDDEN),
        "b": (directions, 2 * gates),
    }
    return {name: RANDOM.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize("kind", ["GRU", "RNN"])
@pytest.mark.parametrize(("direction", "count"), [("reverse", 1), ("bidirectional", 2)])
@pytest.mark.parametrize("state", ["", "h"])
def test_a_direction_is_a_forward_layer(kind: str, direction: str, count: int, state: str) -> None:
    """The results are in the order of the sequence, with and without a first state."""
    given = f", float[{count},batch,{HIDDEN}] h" if state else ""
    arguments = "x, w, r, b, , h" if state else "x, w, r, b"
    model = make(
        f"""(float[{LENGTH},batch,{INPUTS}] x{given}) => (float[] y, float[] last) {{
            y, last = {kind}<direction="{direction}", hidden_size={HIDDEN}>({arguments})
        }}""",
        weights(kind, count),
    )
    found = rewritten(model, split_directions)
    assert found.kinds.count(kind) == count
    assert "direction" not in {key for node in found.model.graph for key in node.attributes}


@pytest.mark.parametrize("options", ["", ", layout=1", ", activation_alpha=[0.1,0.1]"])
def test_other_layers_remain(options: str) -> None:
    """Forward ones, another layout, and parameters of activations."""
    direction = "reverse" if options else "forward"
    model = make(
        f"""(float[{LENGTH},2,{INPUTS}] x) => (float[] y) {{
            y = GRU<direction="{direction}", hidden_size={HIDDEN}{options}>(x, w, r, b)
        }}""",
        weights("GRU", 1),
    )
    assert unchanged(model, split_directions)
