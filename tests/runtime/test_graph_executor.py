"""The graph executor: from a factory in a library to its outputs."""

from __future__ import annotations

import gc
import json
import pickle
import re
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime

from ..graphs import factory, graph, host, null, op, sum_graph

X = np.arange(6, dtype="float32").reshape(2, 3)
W = np.full((2, 3), 10, "float32")


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy that begins at a multiple of 64 bytes."""
    room = np.empty(array.nbytes + 64, "uint8")
    start = -room.ctypes.data % 64
    view = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


@pytest.fixture(scope="module")
def operators(tmp_path_factory) -> runtime.Module:
    """A library with the operators alone."""
    path = tmp_path_factory.mktemp("operators") / "operators.so"
    packer.export_library(host(), path)
    return runtime.load(path)


@pytest.fixture
def create(operators) -> Callable[..., runtime.GraphExecutor]:
    """``create(fields)``: an executor of a graph over these operators."""
    return lambda fields: runtime.graph_executor.create(json.dumps(fields), operators)


def test_a_model_is_one_file(tmp_path) -> None:
    """Factory, parameters and code go into one library, and run from it."""
    packer.export_library(factory(sum_graph(), {"w": W}, host()), tmp_path / "deploy.so")
    executor = runtime.load(tmp_path / "deploy.so")["default"]()
    executor.set_input("x", X)
    executor.run()
    assert np.array_equal(executor.get_output(0).numpy(), X + W + W)


def test_the_factory_is_the_root_and_its_model_the_entry(tmp_path) -> None:
    """The library hangs under the factory; calling the module makes an executor."""
    packer.export_library(factory(sum_graph(), {"w": W}, host()), tmp_path / "deploy.so")
    module = runtime.load(tmp_path / "deploy.so")
    assert [m.type_key for m in module.imported_modules] == ["library"]
    assert module.entry_name == "default"
    assert isinstance(module(), runtime.GraphExecutor)


def test_device_modules_hang_under_the_library(tmp_path) -> None:
    """Factory, host code, device modules: the tree comes back."""
    code = host()
    code.import_module(runtime.DeviceModule("cuda", b"payload", "cubin", []))
    packer.export_library(factory(sum_graph(), {"w": W}, code), tmp_path / "deploy.so")
    library = runtime.load(tmp_path / "deploy.so").imported_modules[0]
    assert [m.type_key for m in library.imported_modules] == ["cuda"]


def test_methods_are_functions(create) -> None:
    """``m["run"]()`` is TVM's way to say it."""
    executor = create(sum_graph())
    executor["set_input"]("x", X)
    executor["set_input"](1, W)
    executor["run"]()
    assert np.array_equal(executor["get_output"](0).numpy(), X + W + W)
    assert set(executor.function_names()) >= {"share_params", "debug_get_output"}
    assert executor["get_num_inputs"]() == 2
    assert executor["get_num_outputs"]() == 1


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
    """A copy is made in order, whatever lies between the elements."""
    executor = create(sum_graph())
    executor.run(x=np.asfortranarray(X), w=np.repeat(W, 2, axis=1)[:, ::2])
    assert np.array_equal(executor.get_output(0).numpy(), X + 2 * W)


def test_an_input_that_is_not_copied(create) -> None:
    """A zero-copy input is read where it lies, at every run."""
    executor, mine = create(sum_graph()), aligned(X)
    executor.set_input(w=W)
    executor.set_input_zero_copy("x", mine)
    mine += 1
    executor.run()
    assert np.array_equal(executor.get_output(0).numpy(), X + 1 + W + W)


def test_a_copy_after_zero_copy_leaves_the_callers_array(create) -> None:
    """set_input goes back to memory of the executor's own."""
    executor, mine = create(sum_graph()), aligned(X)
    executor.set_input_zero_copy("x", mine)
    executor.set_input(x=W, w=W)
    executor.run()
    assert np.array_equal(mine, X)
    assert np.array_equal(executor.get_output(0).numpy(), 3 * W)


def test_a_read_only_array_that_an_operator_writes_is_copied(create) -> None:
    """``increase`` writes to its input: a parameter of the file's must not be what it gets."""
    executor, mine = create(graph([null("x"), op("y", "increase", [0])], [1])), aligned(X)
    mine.flags.writeable = False
    with pytest.raises(ValueError, match="writable where one writes"):
        executor.set_input_zero_copy("x", mine)
    executor.set_params({"x": runtime.tensor(mine)})
    executor.run()
    assert np.array_equal(executor.get_output(0).numpy(), X + 1)
    assert np.array_equal(mine, X)


def test_an_output_that_is_not_copied(create) -> None:
    """The last operator writes into the caller's array."""
    executor, mine = create(sum_graph()), aligned(np.zeros((2, 3), "float32"))
    executor.set_output_zero_copy(0, mine)
    executor.set_input(x=X, w=W)
    executor.run()
    assert np.array_equal(mine, X + W + W)


def test_output_into_an_array(create) -> None:
    """``get_output(i, out)`` copies."""
    executor, out = create(sum_graph()), np.zeros((2, 3), "float32")
    executor.set_input(x=X, w=W)
    executor.run()
    executor.get_output(0, out)
    executor.set_input(x=W)
    executor.run()
    assert np.array_equal(out, X + W + W)


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
    """Names and indices that are not there; near names are listed."""
    executor = create(sum_graph())
    with pytest.raises(KeyError, match="no input 'ww'; near names: 'w'"):
        executor.set_input("ww", X)
    with pytest.raises(IndexError, match="input 2, expected 0 to 1"):
        executor.set_input(2, X)
    with pytest.raises(IndexError, match="output 1, expected 0 to 0"):
        executor.get_output(1)


def test_running_without_an_input(create) -> None:
    """Row D15: inputs that nobody set are listed, before anything runs."""
    executor = create(sum_graph())
    executor.set_input("x", X)
    with pytest.raises(runtime.PackerError, match="never set: 'w'"):
        executor.run()


def test_a_reshape_is_no_call(create) -> None:
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
    """The same bytes, read as something else, wherever they lie."""
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


def test_python_operators() -> None:
    """Any module of the tree can have the operators; what they raise arrives as itself."""

    class Operators(runtime.Module):
        def find_function(self, name: str) -> Any:
            return {"double": double, "fail": fail}.get(name)

    def double(a: runtime.Tensor, b: runtime.Tensor) -> None:
        b.numpy()[:] = 2 * a.numpy()

    def fail(*_: Any) -> None:
        raise KeyError("mine")

    nodes = [null("x"), op("y", "double", [0])]
    executor = factory(graph(nodes, [1]), {}, Operators())["default"]()
    executor.set_input(x=X)
    executor.run()
    assert np.array_equal(executor.get_output(0).numpy(), 2 * X)
    failing = factory(graph([null("x"), op("y", "fail", [0])], [1]), {}, Operators())["default"]()
    failing.set_input(x=X)
    with pytest.raises(KeyError, match="mine"):
        failing.run()
    with pytest.raises(KeyError, match="mine"):
        failing.profile()


def test_an_operator_that_runs_its_own_executor() -> None:
    """Memory is the executor's own, so it runs once at a time."""

    class Operators(runtime.Module):
        def find_function(self, name: str) -> Any:
            return (lambda *_: executor.run()) if name == "again" else None

    executor = factory(graph([null("x"), op("y", "again", [0])], [1]), {}, Operators())["default"]()
    executor.set_input(x=X)
    with pytest.raises(RuntimeError, match="is running"):
        executor.run()


def test_an_executor_in_a_circle_is_collected() -> None:
    """An operator in Python that holds its executor does not keep it for ever."""

    class Operators(runtime.Module):
        def find_function(self, name: str) -> Any:
            return (lambda *_: self.executor) if name == "hold" else None

    operators = Operators()
    made = factory(graph([null("x"), op("y", "hold", [0])], [1]), {}, operators)
    operators.executor = made["default"]()
    gone = weakref.ref(operators.executor)
    del operators, made
    gc.collect()
    assert gone() is None


def test_executors_run_side_by_side(operators) -> None:
    """Each thread has an executor of its own, over one library."""
    text, wrong = json.dumps(sum_graph()), []

    def work(number: int) -> None:
        executor = runtime.graph_executor.create(text, operators)
        executor.set_input(w=W)
        for _ in range(200):
            executor.set_input(x=X * number)
            executor.run()
            if not np.array_equal(executor.get_output(0).numpy(), X * number + 2 * W):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_missing_operators_are_listed(operators) -> None:
    """All that the library lacks, by name."""
    nodes = [null("x"), op("y", "lost", [0]), op("z", "gone", [1])]
    with pytest.raises(runtime.FunctionNotFoundError, match="'lost', 'gone'"):
        runtime.graph_executor.create(json.dumps(graph(nodes, [2])), operators)


def test_arrays_beyond_the_address_space_are_refused(operators) -> None:
    """The error is ours, and MemoryError, too."""
    nodes = [null("x"), op("y", "add", [0, 0])]
    fields = graph(nodes, [1], shapes=[[1], [1 << 57]])
    message = f"the graph's arrays take {64 + (4 << 57)} bytes: .*; use smaller shapes"
    with pytest.raises(runtime.OutOfMemoryError, match=message) as caught:
        runtime.graph_executor.create(json.dumps(fields), operators)
    assert isinstance(caught.value, runtime.PackerError)
    assert isinstance(caught.value, MemoryError)


def test_an_executor_keeps_its_library(tmp_path) -> None:
    """Nothing else needs to be held; outputs outlive the executor."""
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


def test_parameters_of_a_safetensors_module(tmp_path) -> None:
    """Parameters that lie apart in the tree are found by name, and used where they lie."""
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
    executor.load_params(b"".join(map(bytes, runtime.dump_params({"w": W}))))
    assert executor.get_input_info() == ({"x": (2, 3)}, {"x": "float32"})
    executor.set_input(x=X)
    executor.run()
    assert np.array_equal(executor.get_output(0).numpy(), X + 2 * W)


def test_a_bool_parameter_of_legacy_tvm(create) -> None:
    """It was written as uint1."""
    fields = graph([null("x"), op("y", "__copy", [0])], [1])
    fields["attrs"]["dltype"] = ["list_str", ["bool", "bool"]]
    executor = create(fields)
    executor.set_params({"x": runtime.Tensor(bytes([1, 0, 1, 1, 0, 0]), (2, 3), "uint1")})
    executor.run()
    assert executor.get_output(0).numpy().tolist() == [[True, False, True], [True, False, False]]


def test_shared_parameters(create) -> None:
    """share_params takes another executor's arrays."""
    first, second = create(sum_graph()), create(sum_graph())
    params = b"".join(map(bytes, runtime.dump_params({"w": W})))
    first.load_params(params)
    second.share_params(first, params)
    assert np.shares_memory(first.get_input("w").numpy(), second.get_input("w").numpy())
    second.set_input(x=X)
    second.run()
    assert np.array_equal(second.get_output(0).numpy(), X + 2 * W)


def test_parameters_that_the_graph_does_not_have(create) -> None:
    """Row D15: extra names are listed, and nothing is set."""
    executor = create(sum_graph())
    with pytest.raises(runtime.BlobFormatError, match="params: 'u', 'v' are no inputs"):
        executor.set_params({"w": runtime.tensor(W), "u": W, "v": W})
    executor.set_input(x=X)
    with pytest.raises(runtime.PackerError, match="never set: 'w'"):
        executor.run()


def test_a_factory_whose_parameters_do_not_fit() -> None:
    """Row D15: shape, data type and name are compared with the graph when the executor is made."""
    made = factory(sum_graph(), {"w": np.zeros(3, "float32")}, host())
    with pytest.raises(runtime.BlobFormatError, match=r"'w': expected float32\[2, 3\]"):
        made["default"]()


def test_not_a_number_is_a_parameter(create) -> None:
    """Row D7: NaN and infinity are weights like others."""
    executor = create(sum_graph())
    weights = np.full((2, 3), np.nan, "float32")
    weights[0] = np.inf
    executor.load_params(b"".join(map(bytes, runtime.dump_params({"w": weights}))))
    executor.set_input(x=X)
    executor.run()
    assert np.array_equal(executor.get_output(0).numpy(), X + 2 * weights, equal_nan=True)


def test_an_executor_cannot_be_exported(create, tmp_path: Path) -> None:
    """It is made at load time, from a factory; a pickle has no form for it either."""
    with pytest.raises(runtime.ExportError):
        packer.export_library(create(sum_graph()), tmp_path / "executor.so")
    with pytest.raises(runtime.PackerError, match="GraphExecutor"):
        pickle.dumps(create(sum_graph()))


def unaligned(array: np.ndarray) -> np.ndarray:
    """A copy that is aligned to its elements alone."""
    view = aligned(np.zeros(array.size + 1, array.dtype))[1:].reshape(array.shape)
    view[...] = array
    return view


PACKED = """
#include <stdint.h>
#include <dso_packer.h>
typedef union { int64_t v_int64; double v_float64; void *v_handle; } TVMValue;
DSO_EXPORT int add(TVMValue *args, int *codes, int num_args, TVMValue *ret, int *ret_code,
                   void *h) {
  const float *a = ((DLTensor *)args[0].v_handle)->data, *b = ((DLTensor *)args[1].v_handle)->data;
  float *c = ((DLTensor *)args[2].v_handle)->data;
  (void)ret, (void)ret_code, (void)h;
  for (int i = 0; i < 6; i++) c[i] = a[i] + b[i];
  return num_args == 3 && codes[0] == 7 && codes[2] == 7 ? 0 : -1;
}
"""


def test_packed_c_functions_are_operators(compile_library) -> None:
    """What legacy TVM compiled is called in its own ABI."""
    library = runtime.load(compile_library(PACKED))
    executor = runtime.graph_executor.create(json.dumps(sum_graph()), library)
    executor.run(x=X, w=W)
    assert np.array_equal(executor.get_output(0).numpy(), X + 2 * W)


def test_alignment_is_for_operators_of_tvm(compile_library, create) -> None:
    """They are compiled for 64 bytes, so other parameters are copied; declared ones take any."""
    library, weights = runtime.load(compile_library(PACKED)), unaligned(W)
    executor = runtime.graph_executor.create(json.dumps(sum_graph()), library)
    with pytest.raises(ValueError, match="'w': expected memory aligned to 64 .*set_input copies"):
        executor.set_input_zero_copy("w", weights)
    executor.set_params({"w": runtime.tensor(weights)})
    assert not np.shares_memory(executor.get_input("w").numpy(), weights)
    declared = create(sum_graph())
    declared.set_params({"w": runtime.tensor(weights)})
    assert np.shares_memory(declared.get_input("w").numpy(), weights)
    for made in (executor, declared):
        made.run(x=X)
        assert np.array_equal(made.get_output(0).numpy(), X + 2 * W)
