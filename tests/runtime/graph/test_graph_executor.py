"""The graph executor: from a factory in a library to its outputs."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import packer
import runtime
from runtime._core import Graph

from ...support.graph_arrays import W, X, aligned
from ...support.graphs import factory, graph, host, null, op, sum_graph


def test_a_model_is_one_file(tmp_path) -> None:
    """Factory, parameters and code go into one library, and run from it."""
    packer.export_library(factory(sum_graph(), {"w": W}, host()), tmp_path / "deploy.so")
    executor = runtime.load(tmp_path / "deploy.so")["default"]()
    executor.set_input("x", X)
    executor.run()
    assert np.array_equal(executor.get_output(0).numpy(), X + W + W)


def test_the_factory_is_the_root_and_its_model_the_entry(tmp_path) -> None:
    """The library is below the factory; calling the module makes an executor."""
    packer.export_library(factory(sum_graph(), {"w": W}, host()), tmp_path / "deploy.so")
    module = runtime.load(tmp_path / "deploy.so")
    assert [m.type_key for m in module.imported_modules] == ["library"]
    assert module.entry_name == "default"
    assert isinstance(module(), runtime.GraphExecutor)


def test_device_modules_hang_under_the_library(tmp_path) -> None:
    """Factory, host code, device modules: the tree is restored."""
    code = host()
    code.import_module(runtime.DeviceModule("cuda", b"payload", "cubin", []))
    packer.export_library(factory(sum_graph(), {"w": W}, code), tmp_path / "deploy.so")
    library = runtime.load(tmp_path / "deploy.so").imported_modules[0]
    assert [m.type_key for m in library.imported_modules] == ["cuda"]


def test_inputs_by_keyword_and_index(create) -> None:
    """All ways to set an input reach the same array."""
    executor = create(sum_graph())
    executor.set_input(x=X, w=W)
    assert np.array_equal(executor.get_input(1).numpy(), W)
    executor.set_input(0, X + 1)
    assert np.array_equal(executor.get_input("x").numpy(), X + 1)
    assert executor.get_input_index("w") == 1
    assert executor.get_input_index("nothing") == -1
    assert executor.get_output_index("total") == 0


def test_an_input_with_strides(create) -> None:
    """A copy is made in order, without the bytes between the elements."""
    executor = create(sum_graph())
    executor.run(x=np.asfortranarray(X), w=np.repeat(W, 2, axis=1)[:, ::2])
    assert np.array_equal(executor.get_output(0).numpy(), X + 2 * W)


def test_an_input_that_is_not_copied(create) -> None:
    """A zero-copy input is read in place, at every run."""
    executor, mine = create(sum_graph()), aligned(X)
    executor.set_input(w=W)
    executor.set_input_zero_copy("x", mine)
    mine += 1
    executor.run()
    assert np.array_equal(executor.get_output(0).numpy(), X + 1 + W + W)


def test_a_copy_after_zero_copy_leaves_the_callers_array(create) -> None:
    """set_input then uses memory of the executor again."""
    executor, mine = create(sum_graph()), aligned(X)
    executor.set_input_zero_copy("x", mine)
    executor.set_input(x=W, w=W)
    executor.run()
    assert np.array_equal(mine, X)
    assert np.array_equal(executor.get_output(0).numpy(), 3 * W)


def test_a_read_only_array_that_an_operator_writes_is_copied(create) -> None:
    """``increase`` writes to its input, which must not be a parameter of the file."""
    executor, mine = create(graph([null("x"), op("y", "increase", [0])], [1])), aligned(X)
    mine.flags.writeable = False
    with pytest.raises(ValueError, match="writable where one writes"):
        executor.set_input_zero_copy("x", mine)
    executor.set_params({"x": runtime.tensor(mine)})
    executor.run()
    assert np.array_equal(executor.get_output(0).numpy(), X + 1)
    assert np.array_equal(mine, X)


@pytest.mark.parametrize(
    ("array", "found"),
    [(np.zeros((3, 2), "float32"), "float32[3, 2]"), (X.astype("float64"), "float64[2, 3]")],
)
def test_an_array_of_another_kind(create, array, found) -> None:
    """Shape and data type are compared, and both are named."""
    expected = re.escape(f"set_input 'x': expected float32[2, 3], found {found}")
    with pytest.raises(ValueError, match=f"^{expected}$"):
        create(sum_graph()).set_input("x", array)


def test_unknown_inputs(create) -> None:
    """Missing names and indices are refused; similar names are listed."""
    executor = create(sum_graph())
    with pytest.raises(KeyError, match="no input 'ww'; near names: 'w'"):
        executor.set_input("ww", X)
    with pytest.raises(IndexError, match="input 2, expected 0 to 1"):
        executor.set_input(2, X)
    with pytest.raises(IndexError, match="output 1, expected 0 to 0"):
        executor.get_output(1)


def test_a_reshape_is_not_a_call(create) -> None:
    """``__nop`` gives its input another shape, also when that was bound without a copy."""
    nodes = [null("x"), op("r", "__nop", [0]), op("y", "rank", [1])]
    executor = create(graph(nodes, [2, 1], [[2, 3], [6], [2, 3]], [0, 0, 1]))
    executor.set_input_zero_copy("x", mine := aligned(X))
    executor.run()
    assert executor.get_output(0).numpy()[0, 0] == 1
    assert np.shares_memory(executor.get_output(1).numpy(), mine)
    executor.set_input(x=W)
    assert np.array_equal(executor.get_output(1).numpy(), W.reshape(6))
    assert len(executor.profile(1)) == 1


def test_a_reshape_to_another_data_type(create) -> None:
    """The same bytes are read as another type, at any offset."""
    fields = graph([null("x"), op("y", "__nop", [0])], [1], [[2, 3], [12]], [0, 0])
    fields["attrs"]["dltype"] = ["list_str", ["float32", "uint16"]]
    executor = create(fields)
    executor.set_input_zero_copy("x", X)
    executor.run()
    assert np.array_equal(executor.get_output(0).numpy(), X.reshape(6).view("uint16"))


def test_flattened_arrays(create) -> None:
    """``flatten_data`` shows an operator arrays of one dimension."""
    for flag, ndim in (("0", 2), ("1", 1)):
        executor = create(graph([null("x"), op("y", "rank", [0], flatten_data=flag)], [1]))
        executor.set_input_zero_copy("x", aligned(X))
        executor.run()
        assert executor.get_output(0).numpy()[0, 0] == ndim


def test_a_copy_between_devices(create) -> None:
    """``__copy`` moves the bytes."""
    executor = create(graph([null("x"), op("y", "__copy", [0])], [1]))
    executor.set_input(x=X)
    executor.run()
    assert np.array_equal(executor.get_output(0).numpy(), X)


def test_storage_is_shared(create) -> None:
    """Entries of one storage_id are one memory, as large as the largest, aligned to 64 bytes."""
    nodes = [null("x"), null("w"), op("a", "add", [0, 1]), op("b", "add", [2, 1])]
    nodes.append(op("c", "add", [3, 1]))
    executor = create(graph(nodes, [2, 3, 4], None, [0, 1, 2, 3, 2]))
    executor.set_input(x=X, w=W)
    executor.run()
    a, b, c = (executor.get_output(i).numpy() for i in range(3))
    assert np.shares_memory(a, c)
    assert not np.shares_memory(a, b)
    assert np.array_equal(c, X + 3 * W)
    assert all(array.ctypes.data % 64 == 0 for array in (a, b, c))
    assert np.array_equal(executor.debug_get_output("a").numpy(), X + W)
    assert np.array_equal(executor.debug_get_output(3).numpy(), X + 2 * W)


def test_arrays_beyond_the_address_space_are_refused(operators) -> None:
    """The error is ours, and also a MemoryError."""
    nodes = [null("x"), op("y", "add", [0, 0])]
    fields = graph(nodes, [1], shapes=[[1], [1 << 57]])
    message = f"the graph's arrays take {64 + (4 << 57)} bytes: .*; use smaller shapes"
    with pytest.raises(runtime.OutOfMemoryError, match=message) as caught:
        runtime.graph_executor.create(json.dumps(fields), operators)
    assert isinstance(caught.value, runtime.PackerError)
    assert isinstance(caught.value, MemoryError)


def test_an_executor_keeps_its_library(tmp_path) -> None:
    """The executor keeps all it needs; outputs outlive the executor."""
    packer.export_library(factory(sum_graph(), {"w": W}, host()), tmp_path / "deploy.so")
    executor = runtime.load(tmp_path / "deploy.so")["default"]()
    executor.set_input(x=X)
    executor.run()
    output = executor.get_output(0)
    del executor
    assert np.array_equal(output.numpy(), X + 2 * W)


def test_a_device_that_is_not_here(create) -> None:
    """A graph for a device without a driver binding is refused before anything is allocated."""
    fields = sum_graph()
    fields["attrs"]["device_index"] = ["list_int", [1, 1, 12, 1]]
    with pytest.raises(runtime.DeviceError):
        create(fields)


def test_time_and_profile(create) -> None:
    """The whole by time_evaluator, each operator by profile."""
    executor = create(sum_graph())
    executor.set_input(x=X, w=W)
    assert executor.time_evaluator("run", number=10)().mean > 0
    profile = executor.profile(number=10)
    assert [(row.name, row.function) for row in profile] == [("first", "add"), ("total", "add")]
    assert "together" in str(profile)


def test_an_executor_cannot_be_exported(create, tmp_path: Path) -> None:
    """It is made at load time, from a factory; a pickle has no form for it either."""
    with pytest.raises(runtime.ExportError):
        packer.export_library(create(sum_graph()), tmp_path / "executor.so")
    with pytest.raises(runtime.PackerError, match="GraphExecutor"):
        pickle.dumps(create(sum_graph()))


@pytest.mark.parametrize(
    ("use", "error", "match"),
    [
        (lambda g: g.call("run"), RuntimeError, "the graph is not bound"),
        (lambda g: g.time(1), RuntimeError, "the graph is not bound"),
        (lambda g: g.bind(nothing, ["cpu"] * 65), ValueError, "at most 64 devices, found 65"),
        (lambda g: g.bind(nothing, ["paper"]), ValueError, "expected a kind and an index"),
        (lambda g: g.set_params({1: runtime.tensor(X)}, "p"), TypeError, "names of type str"),
        (lambda g: g.set_params({"x": X}, "p"), TypeError, "expected Tensors"),
        (lambda g: bound(g).bind(nothing, []), RuntimeError, "the graph is bound"),
        (lambda g: bound(g).call("walk"), TypeError, "expected a function's name"),
        (lambda g: bound(g).call("get_output", 1.5), TypeError, "float"),
        (lambda g: bound(g).time(0), ValueError, "expected at least 1 round, found 0"),
    ],
)
def test_the_graph_of_the_core(use, error, match) -> None:
    """Each misuse is refused: `GraphExecutor` makes none of these calls."""
    with pytest.raises(error, match=match):
        use(Graph(json.dumps(sum_graph())))


def nothing(_name: str) -> None:
    """Has no operators."""


def bound(graph: Graph) -> Graph:
    """The graph with operators that do nothing."""
    graph.bind(lambda name: None if name.startswith("_") else lambda *_: None, [])
    return graph
