"""LSTM, GRU and RNN, compared with ONNX Runtime and PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import helper

import packer
import runtime

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
OUTPUTS = {"RNN": ["y", "y_h"], "GRU": ["y", "y_h"], "LSTM": ["y", "y_h", "y_c"]}
ACTIVATIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}
DIRECTIONS = ["forward", "reverse", "bidirectional"]
LENGTH, BATCH, INPUTS, HIDDEN = 5, 3, 4, 6
BATCH_SECOND = ("x", "h", "c")  # with layout 0

Array = np.ndarray[Any, Any]


def values(kind: str, direction: str, scale: float = 1) -> dict[str, Array]:
    """Each input of a layer; one sequence is empty, and one is shorter than the longest."""
    random = np.random.default_rng(5)
    count, gates = 2 if direction == "bidirectional" else 1, GATES[kind]

    def some(*shape: int) -> Array:
        return random.normal(0, scale, shape).astype(np.float32)

    made = {
        "x": some(LENGTH, BATCH, INPUTS),
        "w": some(count, gates * HIDDEN, INPUTS),
        "r": some(count, gates * HIDDEN, HIDDEN),
        "b": some(count, 2 * gates * HIDDEN),
        "l": np.array([LENGTH, 0, 3], np.int32),
        "h": some(count, BATCH, HIDDEN),
        "c": some(count, BATCH, HIDDEN),
        "p": some(count, 3 * HIDDEN),
    }
    return made if kind == "LSTM" else {key: made[key] for key in "xwrblh"}


def model_of(
    kind: str, given: dict[str, Array], left_out: str = "", **attributes: object
) -> onnx.ModelProto:
    """A model of one layer; `left_out` has the inputs that it does not take."""
    inputs = ["" if key in left_out else key for key in given]
    node = helper.make_node(kind, inputs, OUTPUTS[kind], hidden_size=HIDDEN, **attributes)
    count = len(given["w"])
    y, state = (LENGTH, count, BATCH, HIDDEN), (count, BATCH, HIDDEN)
    if attributes.get("layout"):
        y, state = (BATCH, LENGTH, count, HIDDEN), (BATCH, count, HIDDEN)
    types = [
        helper.make_tensor_value_info(
            key, helper.np_dtype_to_tensor_dtype(given[key].dtype), given[key].shape
        )
        for key in inputs
        if key
    ]
    results = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, y if name == "y" else state)
        for name in OUTPUTS[kind]
    ]
    graph = helper.make_graph([node], "layer", types, results)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def found_by(model: onnx.ModelProto, given: dict[str, Array], folder: Path) -> list[Array]:
    """The results of the library of a model."""
    library = runtime.load(packer.export_library(packer.from_onnx(model), folder / "layer.so"))
    names = [one.name for one in model.graph.input]
    return [one.numpy() for one in library["main"](*(given[name] for name in names))]


def expected_by(model: onnx.ModelProto, given: dict[str, Array]) -> list[Array]:
    """The results of ONNX Runtime."""
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return list(session.run(None, {one.name: given[one.name] for one in model.graph.input}))


def batch_first(given: dict[str, Array]) -> dict[str, Array]:
    """The inputs of a layer of layout 1."""
    return {
        key: np.ascontiguousarray(one.swapaxes(0, 1)) if key in BATCH_SECOND else one
        for key, one in given.items()
    }


def compare(found: list[Array], expected: list[Array]) -> None:
    """Fail unless two lists of results are equal, but for the order of sums."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_each_result_is_at_the_time_of_its_element(
    kind: str, direction: str, tmp_path: Path
) -> None:
    """With lengths of sequences, first states, peepholes and a limit, in both layouts.

    ONNX Runtime has layout 0 alone.
    """
    given = values(kind, direction)
    for attributes in ({}, {"clip": 0.7}):
        model = model_of(kind, given, direction=direction, **attributes)
        expected = expected_by(model, given)
        compare(found_by(model, given, tmp_path), expected)
    other = batch_first(given)
    model = model_of(kind, other, direction=direction, layout=1, clip=0.7)
    expected = [expected[0].transpose(2, 0, 1, 3), *(one.swapaxes(0, 1) for one in expected[1:])]
    compare(found_by(model, other, tmp_path), expected)


@pytest.mark.parametrize(
    ("kind", "name"), [("GRU", "linear_before_reset"), ("LSTM", "input_forget")]
)
def test_the_forms_of_gates(kind: str, name: str, tmp_path: Path) -> None:
    """GRU resets after the product; LSTM has one gate for input and forget."""
    given = values(kind, "bidirectional")
    model = model_of(kind, given, "l", direction="bidirectional", **{name: 1})
    compare(found_by(model, given, tmp_path), expected_by(model, given))


@pytest.mark.parametrize("kind", GATES)
def test_an_activation_with_a_parameter_takes_the_next_number(kind: str, tmp_path: Path) -> None:
    """Tanh takes none, so the numbers belong to the activations after it."""
    given, each = values(kind, "bidirectional", 0.3), ACTIVATIONS[kind]
    names = ["Tanh", "HardSigmoid", "LeakyRelu"][:each] + ["Elu", "Softsign", "HardSigmoid"][:each]
    attributes = {"activations": names, "activation_alpha": [0.3], "activation_beta": [0.4]}
    model = model_of(kind, given, direction="bidirectional", **attributes)
    compare(found_by(model, given, tmp_path), expected_by(model, given))


def test_a_missing_parameter_is_refused() -> None:
    """ONNX has no default for it."""
    model = model_of("RNN", values("RNN", "forward"), activations=["ScaledTanh"])
    message = r"\(RNN\): .*\(activation_alpha, expected a number for ScaledTanh, found None\)"
    with pytest.raises(packer.ExportError, match=message):
        packer.from_onnx(model)


@pytest.mark.parametrize("length", [-1, LENGTH + 1])
def test_a_length_outside_the_sequence_raises(length: int, tmp_path: Path) -> None:
    """As in ONNX Runtime."""
    given = values("LSTM", "reverse")
    given["l"] = np.array([1, 2, length], np.int32)
    message = f"LSTM: index 0 of input 4, expected 0 to {LENGTH}, found {length}"
    with pytest.raises(IndexError, match=message):
        found_by(model_of("LSTM", given, direction="reverse"), given, tmp_path)


@pytest.mark.parametrize("kind", GATES)
def test_a_layer_of_pytorch_in_both_directions(kind: str, tmp_path: Path) -> None:
    """Two layers, batch first, with first states."""
    torch.manual_seed(1)
    layer = getattr(torch.nn, kind)(
        INPUTS, HIDDEN, num_layers=2, bidirectional=True, batch_first=True
    ).eval()
    x, h = torch.randn(BATCH, LENGTH, INPUTS), torch.randn(4, BATCH, HIDDEN)
    state = (h, torch.randn(4, BATCH, HIDDEN)) if kind == "LSTM" else h
    made = packer.from_torch(layer, [x, state])
    main = runtime.load(packer.export_library(made, tmp_path / "layer.so"))["main"]
    found = main(x, *state) if kind == "LSTM" else main(x, state)
    with torch.no_grad():
        y, last = layer(x, state)
    expected = [y, *last] if kind == "LSTM" else [y, last]
    compare([one.numpy() for one in found], [one.numpy() for one in expected])


# ---- Layers with constant weights, which are fast ----

FAST = [
    ("LSTM", {}),
    ("GRU", {"linear_before_reset": 0}),
    ("GRU", {"linear_before_reset": 1}),
    ("RNN", {}),
    ("LSTM", {"clip": 0.4, "input_forget": 1}),
    ("GRU", {"clip": 0.4}),
    ("GRU", {"clip": 0.4, "linear_before_reset": 1}),
    ("RNN", {"clip": 0.4}),
]


def fast_model(
    kind: str,
    extents: tuple[int | str, int | str, int, int],
    inputs: str = "xwrb",
    outputs: str = "",
    **attributes: object,
) -> onnx.ModelProto:
    """A model of one layer with weights; extents are (steps, batch, width of x, hidden)."""
    steps, batch, width, hidden = extents
    count = 2 if attributes.get("direction") == "bidirectional" else 1
    random, gates, kept = np.random.default_rng(7), GATES[kind], outputs or "yhc"
    shapes = {
        "w": (count, gates * hidden, width),
        "r": (count, gates * hidden, hidden),
        "b": (count, 2 * gates * hidden),
        "p": (count, 3 * hidden),
    }
    weights = [
        onnx.numpy_helper.from_array(
            (random.normal(size=shape) / np.sqrt(hidden)).astype(np.float32), key
        )
        for key, shape in shapes.items()
        if key in inputs
    ]
    places = "xwrblhcp" if kind == "LSTM" else "xwrblh"
    given = [key if key in inputs else "" for key in places]
    made = [name if name[-1] in kept else "" for name in OUTPUTS[kind]]
    node = helper.make_node(kind, given, made, hidden_size=hidden, **attributes)
    state, float_type = [count, batch, hidden], onnx.TensorProto.FLOAT
    taken = {"x": [steps, batch, width], "h": state, "c": state}
    types = [
        helper.make_tensor_value_info(key, float_type, shape)
        for key, shape in taken.items()
        if key in given
    ]
    if "l" in inputs:
        types.append(helper.make_tensor_value_info("l", onnx.TensorProto.INT32, [batch]))
    results = [
        helper.make_tensor_value_info(
            name, float_type, [steps, count, batch, hidden] if name == "y" else state
        )
        for name in made
        if name
    ]
    graph = helper.make_graph([node], "layer", types, results, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def fast_values(model: onnx.ModelProto, **named: int) -> dict[str, Array]:
    """Random inputs of a model whose open extents have these values."""
    random, values = np.random.default_rng(8), {}
    for one in model.graph.input:
        shape = [dim.dim_value or named[dim.dim_param] for dim in one.type.tensor_type.shape.dim]
        number = random.normal(size=shape).astype(np.float32)
        is_length = one.name == "l"
        values[one.name] = random.integers(0, 4, shape, np.int32) if is_length else number
    return values


def compare_fast(model: onnx.ModelProto, folder: Path) -> None:
    """Compare the library of a model with ONNX Runtime; the kernel must run it."""
    given = fast_values(model)
    library = runtime.load(packer.export_library(packer.from_onnx(model), folder / "layer.so"))
    (record,) = (m.metadata["dso.graph"] for m in library.imported_modules if m.metadata)
    assert "dso.Recurrent" in record
    made = library["main"](*given.values())
    found = made if len(model.graph.output) > 1 else [made]
    compare([one.numpy() for one in found], expected_by(model, given))


@pytest.mark.parametrize(("kind", "attributes"), FAST)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_fast_layer_has_all_inputs_and_outputs(
    kind: str, attributes: dict[str, int], direction: str, tmp_path: Path
) -> None:
    """Lengths, first states and peepholes; the size of the state is not a multiple of a block."""
    model = fast_model(kind, (5, 3, 4, 37), "xwrblhcp", direction=direction, **attributes)
    compare_fast(model, tmp_path)


@pytest.mark.parametrize(("kind", "attributes"), FAST)
def test_a_fast_layer_of_any_steps_and_batch(
    kind: str, attributes: dict[str, int], tmp_path: Path
) -> None:
    """One library for all of them."""
    model = fast_model(kind, ("steps", "batch", 6, 40), "xwrblhc", **attributes)
    main = runtime.load(packer.export_library(packer.from_onnx(model), tmp_path / "m.so"))["main"]
    for steps, batch in ((3, 1), (4, 2), (7, 17), (64, 1)):
        given = fast_values(model, steps=steps, batch=batch)
        compare([one.numpy() for one in main(*given.values())], expected_by(model, given))
    given = fast_values(model, steps=3, batch=0)
    assert [one.shape[-2] for one in main(*given.values())] == [0] * len(OUTPUTS[kind])


@pytest.mark.parametrize("outputs", ["y", "h", "c", "yc"])
def test_a_fast_layer_makes_the_outputs_that_are_read(outputs: str, tmp_path: Path) -> None:
    """Of one step and one row, without biases."""
    compare_fast(fast_model("LSTM", (1, 1, 3, 16), "xwr", outputs), tmp_path)


def test_a_fast_rnn_with_relu(tmp_path: Path) -> None:
    """In both directions."""
    attributes = {"activations": ["Relu", "Relu"], "direction": "bidirectional"}
    compare_fast(fast_model("RNN", (4, 2, 5, 20), **attributes), tmp_path)


def test_a_length_outside_the_sequence_of_a_fast_layer_raises(tmp_path: Path) -> None:
    """Before a row is read."""
    model = fast_model("GRU", ("steps", "batch", 6, 20), "xwrbl")
    main = runtime.load(packer.export_library(packer.from_onnx(model), tmp_path / "m.so"))["main"]
    given = fast_values(model, steps=5, batch=2)
    for length in (-1, 6):
        given["l"][1] = length
        message = f"a length of a sequence, expected 0 to 5, found {length}"
        with pytest.raises(IndexError, match=message):
            main(*given.values())
