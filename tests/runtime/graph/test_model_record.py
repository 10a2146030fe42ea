"""The record of a model: its inputs, outputs and weights under the model's names."""

from __future__ import annotations

import copy
import inspect
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime
from packer.operators import pack_matmul

from ...support import models
from ...support.process import run_python
from ...support.vm_assembler import Code, Program, packed, reg, ret
from ...support.vm_assembler import call as vm_call
from ...support.vm_programs import make


@pytest.fixture(scope="module")
def path(tmp_path_factory: Any) -> Path:
    """The library of the model."""
    return packer.export_library(models.model(), tmp_path_factory.mktemp("model") / "m.so")


@pytest.fixture(scope="module")
def model(path: Path) -> Any:
    """The model, loaded."""
    return runtime.load(path)


def test_a_model_runs_and_says_what_it_takes(model: Any) -> None:
    """Names, data types and shapes; a symbolic extent is its name."""
    x = np.random.default_rng(2).normal(size=(3, 40)).astype("f4")
    for found, expected in zip(model["main"](x), models.expected(x), strict=True):
        assert np.allclose(found.numpy(), expected, atol=1e-5)
    assert model.inputs == (("x.1", "float32", ("batch", 40), "", ()),)
    assert [str(info) for info in model.outputs] == [
        "scores: float32[batch, 48]",
        "hidden: float32[batch, 48]",
    ]
    assert isinstance(model.inputs[0], runtime.TensorInfo)


def test_a_tree_without_a_record_has_no_inputs() -> None:
    """Neither a plain executable nor weights of another origin."""
    assert make(Program([Code("main", ["x"], [ret(0)], 1)])).inputs == ()
    plain = runtime.SafetensorsModule(models.safetensors({"w": models.BIAS}))
    assert (plain.inputs, plain.outputs, plain.model_record) == ((), (), None)


def test_a_signature_has_the_names_and_types(model: Any) -> None:
    """`help` and editors show them; without a record the names alone."""
    expected = "(x_1: 'float32[batch, 40]') -> '(float32[batch, 48], float32[batch, 48])'"
    assert str(inspect.signature(model["main"])) == expected
    plain = make(Program([Code("main", ["x", "class"], [ret(0)], 2)]))["main"]
    assert str(inspect.signature(plain)) == "(x, class_)"


def test_repr_has_the_types_of_the_record(model: Any) -> None:
    """So have the doc and the errors; without a record, or with a malformed one, the names."""
    types = (
        "main(x.1: float32[batch, 40]) -> (scores: float32[batch, 48], hidden: float32[batch, 48])"
    )
    main = model["main"]
    assert repr(main) == f"<Function main: {types}>"
    assert (main.signature, main.__doc__) == (types, types)
    with pytest.raises(TypeError, match=re.escape(f"; declared as {types}")):
        main(object())
    plain = make(Program([Code("main", ["x"], [ret(0)], 1)]))["main"]
    assert repr(plain) == "<Function main: main(x)>"
    malformed = models.model({"version": 3})
    assert malformed.signature("main") == "main(x.1)"


def test_an_error_of_a_shape_says_which_axis(model: Any) -> None:
    """The check is in the bytecode, so libdso says the same."""
    text = "main: input 'x.1' of float32[batch, 40]: extent of axis 1, expected 40, found 12"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        model["main"](np.ones((2, 12), "f4"))


def test_arguments_are_passed_by_name() -> None:
    """By the name in the model, also one that is not an identifier, or that in Python."""
    code = [vm_call(3, 1, reg(0), reg(1), reg(2)), ret(3)]
    names = ["a", "b.1", "class"]
    main = make(Program([Code("main", names, code, 4), packed("vm.builtin.make_tuple")]))["main"]
    assert main(1, **{"class": 3, "b.1": 2}) == (1, 2, 3)
    assert main(class_=3, a=1, b_1=2) == (1, 2, 3)
    refused: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((1, 2), {"clas": 3}, "main: unexpected keyword argument 'clas'; near names: 'class'"),
        ((1, 2), {"a": 3}, "main: argument 'a' given twice"),
        ((1,), {"class_": 3}, "main: missing argument 'b.1', expected 'a', 'b.1', 'class'"),
        ((1, 2, 3, 4), {"a": 3}, "main: argument 'a' given twice"),
    ]
    for given, named, message in refused:
        with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
            main(*given, **named)
    with pytest.raises(TypeError, match="expected 3 arguments, found 4"):
        main(1, 2, 3, 4)


# ---- Weights


def test_weights_have_the_names_and_shapes_of_the_model(model: Any) -> None:
    """A packed one is unpacked, another is a view, and one may equal another."""
    weights = model.weights
    assert list(weights) == ["dense.weight", "dense.bias", "scale", "tied.scale"]
    assert len(weights) == 4
    assert np.array_equal(weights["dense.weight"].numpy(), models.WEIGHT)
    assert np.array_equal(weights["dense.bias"].numpy(), models.BIAS)
    assert not weights["dense.bias"].numpy().flags.writeable
    assert np.array_equal(weights["tied.scale"].numpy(), models.SCALE)
    assert {name: tensor.shape for name, tensor in weights.items()}["dense.weight"] == (40, 48)


def test_a_folded_weight_says_where_it_is(model: Any) -> None:
    """It is listed apart; its look-up is an error with the reason, a wrong name one with others."""
    why = "a part of dense.weight and dense.bias (batch normalization)"
    assert model.weights.folded == {"norm.mean": why}
    assert repr(model.weights) == "<Weights of 4 tensors, 1 folded>"
    assert "norm.mean" not in model.weights
    expected = f"weight 'norm.mean' is not stored: {why}"
    with pytest.raises(runtime.WeightNotFoundError, match=re.escape(expected)) as raised:
        model.weights["norm.mean"]
    assert (raised.value.name, str(raised.value)) == ("norm.mean", expected)
    with pytest.raises(KeyError, match="no weight 'dense.wieght' in the tree; near names: 'dense"):
        model.weights["dense.wieght"]
    assert model.weights.get("nothing") is None


def test_a_weight_with_other_values_is_listed_as_folded() -> None:
    """A scale that is a part of it: the stored values are found, and the reason too."""
    folded = {"scale": "scaled by the batch normalization 'bn'"}
    weights = models.weights(models.record(folded=folded)).weights
    assert weights.folded == folded
    assert np.array_equal(weights["scale"].numpy(), models.SCALE)


def test_code_gets_weights_as_they_are_stored(path: Path) -> None:
    """Host code and the machine read the packed form: the pages of the file."""
    code = """
    #include "dso_packer.h"
    double first(void) {
      DLTensor w;
      return dso_weight("dense.weight", &w) ? -1 : w.ndim;
    }
    """
    host = packer.CSourceModule(code, functions={"first": "double(void)"})
    host.import_module(models.weights())
    loaded = runtime.load(packer.export_library(host, path.with_name("host.so")))
    assert loaded["first"]() == 3
    assert loaded.weights["dense.weight"].shape == (40, 48)


def test_unpacking_without_numpy_says_what_is_needed(path: Path) -> None:
    """Other weights, inputs and a call need no NumPy."""
    script = (
        "import json, runtime, sys\n"
        f"model = runtime.load({str(path)!r})\n"
        "model['main'](runtime.empty((2, 40), 'float32'))\n"
        "shape = model.weights['dense.bias'].shape\n"
        "try:\n    model.weights['dense.weight']\n"
        "except ImportError as error:\n    print(json.dumps([shape, str(error)]))"
    )
    shape, text = run_python(script, blocked=("numpy",))
    assert shape == [48]
    assert text.startswith("weight 'dense.weight' is stored as its operator reads it")
    assert text.endswith("needs NumPy: pip install numpy")


def test_types_that_safetensors_lacks_are_restored() -> None:
    """Their bytes are stored; the record has the data type and the shape."""
    data = np.arange(6, dtype="u1")
    record = models.record(weights={})
    record["values"]["dense.bias"] = {"dtype": "int4", "shape": [3, 4]}
    file = models.safetensors({"dense.bias": data}, {"dso.graph": json.dumps(record)})
    weight = runtime.SafetensorsModule(file).weights["dense.bias"]
    assert (weight.dtype, weight.shape, bytes(weight.raw)) == ("int4", (3, 4), data.tobytes())


def test_another_form_of_a_weight_is_not_a_weight() -> None:
    """A weight that two operators read in two layouts is stored twice, and listed once."""
    record = models.record()
    form = {"form": "packed", "kernel": "matmul", "transposed": True, "shape": [48, 40]}
    record["weights"]["dense.weight#2"] = {**form, "of": "dense.weight"}
    arrays = {"dense.weight": pack_matmul(models.WEIGHT), "dense.weight#2": models.BIAS}
    file = models.safetensors(arrays, {"dso.graph": json.dumps(record)})
    assert list(runtime.SafetensorsModule(file).weights) == ["dense.weight"]


# ---- Malformed records


def changed(**fields: Any) -> runtime.SafetensorsModule:
    """The weights with a changed record."""
    return models.weights({**copy.deepcopy(models.RECORD), **fields})


INFO = {"name": "x", "dtype": "float32", "shape": [1]}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"version": 2}, "version 2, expected 1"),
    ({"version": True}, "version True, expected 1"),
    ({"inputs": {}}, "inputs, expected a list, found {}"),
    ({"inputs": [7]}, "inputs, expected a table, found 7"),
    ({"inputs": [{**INFO, "name": 1}]}, "name, expected text, found 1"),
    ({"inputs": [{**INFO, "shape": [-1]}]}, "extent of 'x', expected a number of at least 0"),
    ({"inputs": [{**INFO, "shape": [1.5]}]}, "extent of 'x', expected a number of at least 0"),
    ({"inputs": [{**INFO, "shape": [2**62]}]}, "extent of 'x', expected a number of at least 0"),
    ({"outputs": [{"name": "x", "shape": []}]}, "dtype, expected text, found None"),
    ({"nodes": [{"flops": -1}]}, "flops, expected a number of at least 0, found -1"),
    ({"nodes": [{"inputs": [1]}]}, "inputs, expected text, found 1"),
    ({"values": {"x": 1}}, "value 'x', expected a table, found 1"),
    ({"weights": {"x": "packed"}}, "weights: 'x', expected a table, found 'packed'"),
    ({"folded": {"x": 1}}, "folded: 'x', expected text, found 1"),
    ({"variants": [{"inputs": [], "outputs": []}]}, "function, expected text, found None"),
]


@pytest.mark.parametrize(("fields", "message"), WRONG)
def test_a_malformed_record_is_refused(fields: dict[str, Any], message: str) -> None:
    """The error names the record; the model still runs, for nothing that runs reads it."""
    module = changed(**fields)
    with pytest.raises(runtime.BlobFormatError, match=f"dso.graph: {re.escape(message)}") as raised:
        _ = module.inputs
    assert str(raised.value).endswith("; export the model again")
    with pytest.raises(runtime.BlobFormatError):
        _ = module.weights
    x = np.ones((1, 40), "f4")
    executable = models.program().executable()
    executable.import_module(changed(**fields))
    functions = {"dense_relu": lambda *args: None, "scaled": lambda *args: None}
    from ...support.vm_programs import Operators

    executable.import_module(Operators(**functions))
    executable["main"](x)


def test_a_record_that_is_no_json_is_refused() -> None:
    """With the place in the text."""
    for text, message in (("{", "not JSON"), ("[]", "the record, expected a table"), ("1", "the")):
        module = runtime.SafetensorsModule(models.safetensors({}, {"dso.graph": text}))
        with pytest.raises(runtime.BlobFormatError, match=f"dso.graph: {message}"):
            _ = module.outputs


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"kernel": "fft"}, "kernel 'fft', expected one of"),
        ({"shape": [41, 48]}, "2560 elements, expected"),
        ({"shape": [2**40, 2**40]}, "shape"),
        ({"shape": "big"}, "shape 'big', expected a list"),
        ({"shape": [48]}, "shape .48., expected at least 2 extents"),
        ({"kernel": "conv2d", "shape": [8, 8, 1, 1], "groups": 0}, "groups 0, expected a number"),
        ({"kernel": "conv2d", "shape": [8, 8, 1, 1], "groups": 3}, "with 3 groups"),
        ({"kernel": "conv2d", "shape": [40, 48]}, "expected 4 extents"),
        ({"kernel": "conv2d", "shape": [8, 8, 3, 3]}, "2560 elements, expected"),
    ],
)
def test_a_form_that_does_not_fit_is_refused(form: dict[str, Any], message: str) -> None:
    """The error names the weight."""
    entry = {**models.RECORD["weights"]["dense.weight"], **form}
    module = changed(weights={"dense.weight": entry})
    expected = f"dso.graph: weight 'dense.weight': .*{message}"
    with pytest.raises(runtime.BlobFormatError, match=expected):
        module.weights["dense.weight"]
