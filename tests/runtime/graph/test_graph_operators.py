"""Operators of a graph: in Python, as packed C functions, side by side, missing."""

from __future__ import annotations

import gc
import json
import threading
import weakref
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
  for (int i = 0; i < 6; i++) c[i] = a[i] + b[i];
  return num_args == 3 && codes[0] == 7 && codes[2] == 7 ? 0 : -1;
}
"""


def test_packed_c_functions_are_operators(compile_library) -> None:
    """Operators that legacy TVM compiled are called in the legacy ABI."""
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
