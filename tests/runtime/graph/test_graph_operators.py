"""Operators of a graph: in Python, as packed C functions, side by side, missing, at random."""

from __future__ import annotations

import gc
import json
import random
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import runtime

from ...support.graph_arrays import W, X, aligned
from ...support.graphs import factory, graph, null, op, sum_graph


def test_python_operators() -> None:
    """Any module of the tree can have the operators; their errors arrive unchanged."""

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
    """The executor owns its memory, so it runs one call at a time."""

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
    """Each thread has a separate executor, over one library."""
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
    """The error lists all missing operators."""
    nodes = [null("x"), op("y", "lost", [0]), op("z", "gone", [1])]
    with pytest.raises(runtime.FunctionNotFoundError, match="'lost', 'gone'"):
        runtime.graph_executor.create(json.dumps(graph(nodes, [2])), operators)


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
  if (a[0] < 0) return -1;
  for (int i = 0; i < 6; i++) c[i] = a[i] + b[i];
  return num_args == 3 && codes[0] == 7 && codes[2] == 7 ? 0 : -1;
}
"""


def test_packed_c_functions_are_operators(compile_library) -> None:
    """Operators that legacy TVM compiled are called in the legacy ABI; one fails without a text."""
    library = runtime.load(compile_library(PACKED))
    executor = runtime.graph_executor.create(json.dumps(sum_graph()), library)
    executor.run(x=X, w=W)
    assert np.array_equal(executor.get_output(0).numpy(), X + 2 * W)
    with pytest.raises(RuntimeError, match="first: returned -1 without raising"):
        executor.run(x=X - 1)


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
    declared.set_input_zero_copy("w", weights)
    for made in (executor, declared):
        made.run(x=X)
        assert np.array_equal(made.get_output(0).numpy(), X + 2 * W)


def random_graph(rng: random.Random) -> dict[str, Any]:
    """A graph of additions, increments, reshapes and copies, on shared storage or not."""
    nodes: list[dict[str, Any]] = [null("a"), null("b"), null("c")]
    storage_ids = [0, 1, 2]
    for i in range(rng.randint(1, 12)):
        source, other = rng.randrange(len(nodes)), rng.randrange(len(nodes))
        kind = rng.choice(["add", "add", "increase", "__nop", "__copy"])
        inputs = [source, other] if kind == "add" else [source]
        flat = {"flatten_data": "1"} if kind == "add" and rng.random() < 0.3 else {}
        nodes.append(op(f"n{i}", kind, inputs, **flat))
        storage_ids.append(storage_ids[source] if kind == "__nop" else len(storage_ids))
    heads = [rng.randrange(3, len(nodes)) for _ in range(rng.randint(1, 3))]
    return graph(nodes, heads, None, storage_ids)


def by_numpy(fields: dict[str, Any], values: dict[str, np.ndarray]) -> Iterator[np.ndarray]:
    """Yield the outputs of two runs; arrays of one storage are one array."""
    places, nodes = fields["attrs"]["storage_id"][1], fields["nodes"]
    memory = {places[i]: values[name].copy() for i, name in enumerate("abc")}
    for _ in range(2):
        for place, node in list(zip(places, nodes, strict=True))[3:]:
            source, *others = (memory[places[i]] for i, _, _ in node["inputs"])
            kind = node["attrs"]["func_name"]
            if kind == "increase":
                source += 1
            if kind != "__nop":
                memory[place] = source + others[0] if others else source.copy()
        for head, _, _ in fields["heads"]:
            yield memory[places[head]].copy()


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs(create, seed) -> None:
    """NumPy's outputs, twice, since operators may write to their inputs."""
    fields, arrays = random_graph(random.Random(seed)), np.random.default_rng(seed)
    values = {name: arrays.random((2, 3), "float32") for name in "abc"}
    executor, expected = create(fields), list(by_numpy(fields, values))
    if seed % 2:
        executor.load_params(runtime.save_param_dict({"c": values.pop("c")}))
    executor.set_input(**values)
    found = []
    for _ in range(2):
        executor.run()
        found += [executor.get_output(i).numpy().copy() for i in range(len(fields["heads"]))]
    assert np.array_equal(found, expected)
