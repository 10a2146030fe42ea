"""Parameters of a graph: from weights, dicts and legacy files."""

from __future__ import annotations

import numpy as np
import pytest

import packer
import runtime

from ...support.graph_arrays import W, X
from ...support.graphs import factory, graph, host, null, op, sum_graph


def test_parameters_of_a_safetensors_module(tmp_path) -> None:
    """Parameters in separate parts of the tree are found by name, and used in place."""
    header = b'{"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}'
    weights = runtime.SafetensorsModule(len(header).to_bytes(8, "little") + header + W.tobytes())
    packer.export_library(factory(sum_graph(), {}, host(), weights), tmp_path / "deploy.so")
    module = runtime.load(tmp_path / "deploy.so")
    executor = module["default"]()
    executor.set_input(x=X)
    executor.run()
    assert np.array_equal(executor.get_output(0).numpy(), X + 2 * W)
    assert np.shares_memory(executor.get_input("w").numpy(), module.weights["w"].numpy())


def test_a_params_dict(create) -> None:
    """load_params takes the bytes of a params dict file."""
    executor = create(sum_graph())
    executor.load_params(runtime.save_param_dict({"w": W}))
    assert executor.get_input_info() == ({"x": (2, 3)}, {"x": "float32"})
    executor.set_input(x=X)
    executor.run()
    assert np.array_equal(executor.get_output(0).numpy(), X + 2 * W)


def test_a_bool_parameter_of_legacy_tvm(create) -> None:
    """A bool parameter was written as uint1."""
    fields = graph([null("x"), op("y", "__copy", [0])], [1])
    fields["attrs"]["dltype"] = ["list_str", ["bool", "bool"]]
    executor = create(fields)
    executor.set_params({"x": runtime.Tensor(bytes([1, 0, 1, 1, 0, 0]), (2, 3), "uint1")})
    executor.run()
    assert executor.get_output(0).numpy().tolist() == [[True, False, True], [True, False, False]]


def test_parameters_that_the_graph_does_not_have(create) -> None:
    """Extra names are listed, and nothing is set."""
    executor = create(sum_graph())
    with pytest.raises(runtime.BlobFormatError, match="params: 'u', 'v' are not inputs"):
        executor.set_params({"w": runtime.tensor(W), "u": W, "v": W})
    executor.set_input(x=X)
    with pytest.raises(runtime.PackerError, match="that are not set: 'w'"):
        executor.run()


def test_a_factory_whose_parameters_do_not_fit() -> None:
    """Shape, data type and name are compared with the graph when the executor is made."""
    made = factory(sum_graph(), {"w": np.zeros(3, "float32")}, host())
    with pytest.raises(runtime.BlobFormatError, match=r"'w': expected float32\[2, 3\]"):
        made["default"]()


def test_not_a_number_is_a_parameter(create) -> None:
    """NaN and infinity are weights like others."""
    executor = create(sum_graph())
    weights = np.full((2, 3), np.nan, "float32")
    weights[0] = np.inf
    executor.load_params(runtime.save_param_dict({"w": weights}))
    executor.set_input(x=X)
    executor.run()
    assert np.array_equal(executor.get_output(0).numpy(), X + 2 * weights, equal_nan=True)
