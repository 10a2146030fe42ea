"""LSTM, GRU and RNN as a product and the steps of the state."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from dso_packer_onnx.rewrite.recurrent import fuse_recurrent

from ..support.rewriting import make, rewritten, unchanged

STEPS, BATCH, INPUTS, HIDDEN = 4, 2, 5, 20
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def layer(
    kind: str,
    attributes: str = "",
    inputs: str = "x, w, r, b",
    outputs: str = "y, h",
    directions: int = 1,
    shape: str = f"{STEPS},{BATCH}",
) -> onnx.ModelProto:
    """Make a model of one layer; h0 and c0 are inputs, w, r, b, p and lengths constants."""
    random, gates = np.random.default_rng(3), GATES[kind]
    weights = {
        name: random.normal(size=(directions, *extents)).astype(np.float32)
        for name, extents in {
            "w": (gates * HIDDEN, INPUTS),
            "r": (gates * HIDDEN, HIDDEN),
            "b": (2 * gates * HIDDEN,),
            "p": (3 * HIDDEN,),
        }.items()
    }
    weights["lengths"] = np.array([2, STEPS], np.int32)
    state = f"{directions},{shape.partition(',')[2]},{HIDDEN}"
    names = [name.strip() for name in inputs.split(",")]
    states = "".join(f", float[{state}] {name}" for name in ("h0", "c0") if name in names)
    given = ", ".join(name or '""' for name in names)
    results = ", ".join(f"float[] {name.strip()}" for name in outputs.split(",") if name.strip())
    made = ", ".join(name.strip() or '""' for name in outputs.split(","))
    text = f"hidden_size={HIDDEN}{attributes and ', '}{attributes}"
    used = {name: array for name, array in weights.items() if name in names}
    body = f"{{ {made} = {kind}<{text}>({given}) }}"
    return make(f"(float[{shape},{INPUTS}] x{states}) => ({results}) {body}", used)


@pytest.mark.parametrize(
    ("kind", "attributes", "cell"),
    [
        ("LSTM", "", "lstm"),
        ("LSTM", 'activations=["Sigmoid", "Tanh", "Tanh"]', "lstm"),
        ("LSTM", "input_forget=1", "lstm"),
        ("GRU", "", "gru"),
        ("GRU", "linear_before_reset=1", "gru_reset_after"),
        ("RNN", "", "rnn_tanh"),
        ("RNN", 'activations=["Relu"]', "rnn_relu"),
    ],
)
@pytest.mark.parametrize("inputs", ["x, w, r, b", "x, w, r"])
def test_a_layer_is_a_product_and_its_steps(
    kind: str, attributes: str, cell: str, inputs: str
) -> None:
    """With and without biases."""
    found = rewritten(layer(kind, attributes, inputs), fuse_recurrent)
    assert found.kinds == ["dso.MatMul", "dso.Recurrent"]
    assert found.attributes("Recurrent") == {"kind": cell, "reverse": 0, "results": ("y", "h")}


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize(
    ("direction", "directions"), [("forward", 1), ("reverse", 1), ("bidirectional", 2)]
)
def test_each_direction_has_its_part_of_the_product(
    kind: str, direction: str, directions: int
) -> None:
    """With lengths and first states."""
    inputs = "x, w, r, b, lengths, h0"
    model = layer(kind, f'direction="{direction}"', inputs, directions=directions)
    found = rewritten(model, fuse_recurrent)
    assert found.kinds == ["dso.MatMul", "dso.Recurrent"]
    assert found.attributes("Recurrent")["reverse"] == (direction == "reverse")


@pytest.mark.parametrize("outputs", ["y", ", h", ", , c", "y, , c", "y, h, c"])
def test_only_the_outputs_that_are_read_are_made(outputs: str) -> None:
    """The attribute has their names; peepholes are padded like the gates."""
    found = rewritten(layer("LSTM", "", "x, w, r, b, , h0, c0, p", outputs), fuse_recurrent)
    names = tuple(name.strip() for name in outputs.split(",") if name.strip())
    assert found.attributes("Recurrent")["results"] == names


def test_steps_and_batch_may_be_open() -> None:
    """The product has their names."""
    model = layer("GRU", "linear_before_reset=1", "x, w, r, b, , h0", shape="steps,batch")
    found = rewritten(model, fuse_recurrent)
    shape = found.node("MatMul").outputs[0].shape
    assert [str(extent) for extent in shape] == ["steps", "batch", "96"]


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("LSTM", "clip=0.0"),
        ("LSTM", 'activations=["Sigmoid", "Tanh", "Relu"]'),
        ("GRU", 'activations=["HardSigmoid", "Tanh"]'),
        ("RNN", 'activations=["LeakyRelu"], activation_alpha=[0.1]'),
        ("RNN", "layout=1"),
    ],
)
def test_any_other_layer_remains(kind: str, attributes: str) -> None:
    """Each for one reason."""
    assert unchanged(layer(kind, attributes, outputs="y"), fuse_recurrent)


@pytest.mark.parametrize(
    "text",
    [
        """(float[4,2,5] x, float[1,80,5] w, float[1,80,20] r) => (float[] y) {
            y = LSTM<hidden_size=20>(x, w, r)
        }""",
        """(double[4,2,5] x, double[1,20,5] w, double[1,20,20] r) => (double[] y) {
            y = RNN<hidden_size=20>(x, w, r)
        }""",
    ],
    ids=["computed weights", "double"],
)
def test_other_weights_remain(text: str) -> None:
    """Each for one reason."""
    assert unchanged(make(text), fuse_recurrent)


def test_a_layer_without_rows_remains() -> None:
    """Nothing is multiplied."""
    assert unchanged(layer("GRU", outputs="y", shape="4,0"), fuse_recurrent)


def test_directions_with_different_activations_remain() -> None:
    """The kernel has one kind for both."""
    attributes = 'direction="bidirectional", activations=["Relu", "Tanh"]'
    assert unchanged(layer("RNN", attributes, outputs="y", directions=2), fuse_recurrent)
