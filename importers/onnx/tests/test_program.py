"""Programs over operators written by hand: checks, memory, weights, views, copies, a batch."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from dso_packer_onnx.record import KEY

from .support.hand_made import add, load_model, make_model, scale, value, variant, view, weight


def floats(*shape: int) -> np.ndarray:
    """Different numbers."""
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def residual():
    """``y = ((x + w) + w) + (x + w)`` for 2 x 8 floats."""
    x, y, w = value("x", 2, 8), value("y", 2, 8), weight("w", floats(2, 8))
    a, b = value("a", 2, 8), value("b", 2, 8)
    return variant([x], [y], add(x, w, a), add(a, w, b), add(b, a, y))


def test_operators_run_in_order_over_weights_and_memory(tmp_path: Path) -> None:
    """The result is that of NumPy, and later calls do not write to it."""
    model = load_model(tmp_path, residual())
    x, w = floats(2, 8), floats(2, 8)
    first = model["main"](x)
    second = model["main"](10 * x)
    assert first.numpy().tolist() == (2 * (x + w) + w).tolist()
    assert second.numpy().tolist() == (2 * (10 * x + w) + w).tolist()
    assert model.weights["w"].numpy().tolist() == w.tolist()


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (floats(2, 8).astype("f8"), "dtype, expected float32, found float64"),
        (floats(2, 8, 1), "3 dimensions, expected 2"),
        (floats(2, 9), "extent of axis 1, expected 8, found 9"),
        ("text", "expected a tensor, found str"),
    ],
)
def test_a_wrong_argument_is_refused_with_the_inputs_name(
    tmp_path: Path, argument: object, message: str
) -> None:
    """The message has the function, the input and its type."""
    model = load_model(tmp_path, residual())
    with pytest.raises((TypeError, ValueError)) as raised:
        model["main"](argument)
    assert str(raised.value) == f"main: input 'x' of float32[2, 8]: {message}"


@pytest.mark.parametrize("seed", range(4))
def test_random_graphs_keep_each_value_until_its_last_reader(tmp_path: Path, seed: int) -> None:
    """Forty additions of any earlier values, some of them views or outputs, as NumPy computes."""
    choose = random.Random(seed)
    values = [value("x", 16)]
    arrays = [floats(16)]
    calls = []
    for number in range(40):
        y = value(f"v{number}", 16)
        if choose.random() < 0.2:
            index = choose.randrange(len(values))
            calls.append(view(values[index], y))
            arrays.append(arrays[index])
        else:
            a, b = (max(0, len(values) - choose.choice([1, 1, 2, 5, 20])) for _ in range(2))
            calls.append(add(values[a], values[b], y))
            arrays.append(arrays[a] + arrays[b])
        values.append(y)
    kept = [*choose.sample(range(len(values)), 4), len(values) - 1]
    model = load_model(tmp_path, variant(values[:1], [values[i] for i in kept], *calls))
    for _ in range(2):
        results = model["main"](arrays[0])
        for index, result in zip(kept, results, strict=True):
            np.testing.assert_allclose(result, arrays[index], rtol=1e-5)


def test_a_wrong_number_of_arguments_is_refused(tmp_path: Path) -> None:
    """By the machine."""
    model = load_model(tmp_path, residual())
    with pytest.raises(TypeError, match="main: expected 1 arguments, found 2"):
        model["main"](floats(2, 8), floats(2, 8))


def test_outputs_that_are_inputs_weights_or_twice_are_copies(tmp_path: Path) -> None:
    """No two results share memory, and none is read-only."""
    x, y, w = value("x", 16), value("y", 16), weight("w", floats(16))
    model = load_model(tmp_path, variant([x], [y, x, w, y], add(x, w, y)))
    given = floats(16)
    results = [np.asarray(result) for result in model["main"](given)]
    for result, expected in zip(results, [2 * given, given, given, 2 * given], strict=True):
        assert result.tolist() == expected.tolist()
    for result in results:
        result += 1
    assert given.tolist() == floats(16).tolist()
    assert [r[0] for r in results] == [1, 1, 1, 1]
    assert np.asarray(model["main"](given)[2]).tolist() == given.tolist()


def test_views_share_memory_and_outputs_have_their_own_shape(tmp_path: Path) -> None:
    """A view of an input, of a value, and as an output; two views as outputs are apart."""
    x, w = value("x", 2, 8), weight("w", floats(16))
    flat, total = value("flat", 16), value("total", 16)
    y, z, again = value("y", 4, 4), value("z", 8, 2), value("again", 16, 1)
    graph = variant(
        [x], [y, z, again], view(x, flat), add(flat, w, total), view(total, y), view(y, z),
        view(x, again),
    )  # fmt: skip
    given = floats(2, 8)
    results = [np.asarray(result) for result in load_model(tmp_path, graph)["main"](given)]
    assert [r.shape for r in results] == [(4, 4), (8, 2), (16, 1)]
    assert (
        results[0].ravel().tolist() == results[1].ravel().tolist() == (2 * given).ravel().tolist()
    )
    results[0][:] = 0
    assert results[1].ravel().tolist() == (2 * given).ravel().tolist()
    assert results[2].ravel().tolist() == given.ravel().tolist()


def dynamic():
    """``y = x * 2 * 2`` and the value before, for any batch."""
    x, y, half = value("x", "batch", 3), value("y", "batch", 3), value("half", "batch", 3)
    a, b, factor = (
        value("a", "batch", 3),
        value("b", "batch", 3),
        weight("factor", floats(2)[1:] * 2),
    )
    calls = [scale(x, factor, a), scale(a, factor, b), scale(b, factor, half)]
    return variant([x], [y, half, x], *calls, scale(half, factor, y))


def test_a_symbolic_batch_takes_any_number(tmp_path: Path) -> None:
    """Also none; results have the batch of the call."""
    main = load_model(tmp_path, dynamic())["main"]
    for batch in (1, 5, 0, 1000, 2):
        x = floats(batch, 3)
        results = [np.asarray(result) for result in main(x)]
        for result, factor in zip(results, (16, 8, 1), strict=True):
            assert result.shape == (batch, 3)
            assert result.tolist() == (factor * x).tolist()


def test_a_symbolic_batch_is_the_same_for_all_inputs(tmp_path: Path) -> None:
    """The second input is compared with the first; other extents are checked too."""
    x, other, y = value("x", "batch", 3), value("other", "batch", 1), value("y", "batch", 3)
    factor = weight("factor", [2.0])
    main = load_model(tmp_path, variant([x, other], [y], scale(x, factor, y)))["main"]
    assert main(floats(2, 3), floats(2, 1)).shape == (2, 3)
    with pytest.raises(
        ValueError, match=r"main: input 'other' of float32\[batch, 1\]: extent of axis 0, "
    ):
        main(floats(2, 3), floats(4, 1))
    with pytest.raises(ValueError, match=r"'x' of float32\[batch, 3\]: extent of axis 1, exp"):
        main(floats(2, 4), floats(2, 1))


def sized(n: int, rows: int = 2):
    """``y = x + w`` for rows x n floats."""
    x, y, w = value("x", rows, n), value("y", rows, n), weight("w", floats(2, 8))
    fixed = value("fixed", 2)
    return variant([x, fixed], [y], add(x, w, y))


def test_main_chooses_the_set_of_shapes(tmp_path: Path) -> None:
    """Of three sets of shapes; the weights are stored once."""
    model = load_model(tmp_path, sized(8), sized(4), sized(4, 3))
    fixed = floats(2)
    for shape in ((2, 8), (2, 4), (3, 4)):
        x = floats(*shape)
        assert model["main"](x, fixed).numpy().tolist() == (2 * x).tolist()
    assert model.function_names()[:4] == ["main", "main_1", "main_2", "main_3"]
    assert model["main_2"](floats(2, 4), fixed).shape == (2, 4)
    assert list(model.weights) == ["w"]


def test_other_shapes_are_refused_with_those_there_are(tmp_path: Path) -> None:
    """In the form of --input-shape; inputs whose shape is always the same are named themselves."""
    model = load_model(tmp_path, sized(8), sized(4))
    with pytest.raises(ValueError, match="main: shapes") as raised:
        model["main"](floats(2, 5), floats(2))
    assert str(raised.value) == (
        "main: shapes of the inputs, expected x=2x8 or x=2x4, found x=2x5; "
        "export the model with this set of shapes too"
    )
    with pytest.raises(
        ValueError, match=r"main_2: input 'fixed' of float32\[2\]: extent of axis 0, expect"
    ):
        model["main"](floats(2, 4), floats(3))
    with pytest.raises(ValueError, match="main: input 'x' of float32: 1 dimensions, expected 2"):
        model["main"](floats(8), floats(2))


def test_the_record_describes_the_graph() -> None:
    """Names, types, operators in the order of the calls, and equal weights."""
    x, y = value("x", "batch", 3), value("y", "batch", 3)
    a, one, two = value("a", "batch", 3), weight("one", [2]), weight("two", [2])
    model = make_model(variant([x], [y], scale(x, one, a), scale(a, two, y)))
    (safetensors,) = (module for module in model.imported_modules if KEY in module.metadata)
    record = json.loads(safetensors.metadata[KEY])
    array = {"dtype": "float32", "shape": ["batch", 3]}
    assert record["inputs"] == [{"name": "x", **array}]
    assert record["outputs"] == [{"name": "y", **array}]
    assert record["nodes"][1] == {
        "name": "node of y",
        "op": "Scale",
        "function": "scale_3",
        "inputs": ["a", "one"],
        "outputs": ["y"],
        "flops": 0,
    }
    assert record["values"] == {
        "x": array,
        "a": array,
        "y": array,
        "one": {"dtype": "float32", "shape": [1]},
    }
    assert record["weights"] == {"two": {"form": "equal", "name": "one"}}
    assert {name: w.numpy().tolist() for name, w in safetensors.weights.items()} == {
        "one": [2],
        "two": [2],
    }


def test_equal_operators_share_a_function() -> None:
    """Modules of equal code are one, also for two models."""
    first, second = make_model(residual()), make_model(sized(8))
    codes = [m for m in first.imported_modules if "add_16" in m.function_names()]
    assert len(codes) == 1
    assert codes[0] in second.imported_modules
