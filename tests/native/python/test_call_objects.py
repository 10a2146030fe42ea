"""Modules as arguments and results; arrays as results of callbacks."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runtime
from runtime._core import Function

from ...support import needs

Probe = Callable[[str], Function]
SOURCE = "functions.c"
TENSOR, MODULE = 70, 73  # TVMFFITypeIndex


class Note(runtime.Module):
    """A module with a function, callable by its entry."""

    type_key = "note"

    def find_function(self, name: str) -> Callable[..., Any] | None:
        """The entry."""
        return (lambda: 42) if name == "main" else None


# ---- Modules


def test_module_is_an_argument_of_module_type(probe: Probe) -> None:
    """A module can be called, but is not a function."""
    assert probe("type_index")(Note()) == MODULE


def test_module_is_returned_as_itself(probe: Probe) -> None:
    """A module passes through C code, as argument and result of a callback."""
    module, seen = Note(), []
    result = probe("apply")(lambda given: seen.append(given) or given, module)
    assert seen == [module]
    assert result is module
    assert result() == 42


def test_module_is_kept_as_long_as_code_keeps_it(probe: Probe) -> None:
    """A reference that C code takes counts, and no more than that."""
    module = Note()
    gone = weakref.ref(module)
    probe("keep")(module)
    del module
    gc.collect()
    assert gone() is not None
    probe("drop_kept")()
    assert gone() is None


def test_module_of_someone_else_is_refused(probe: Probe) -> None:
    """A Module object that another runtime made cannot be used."""
    with pytest.raises(TypeError, match="argument 1: type index 73 is not supported"):
        probe("call_with")(lambda module: module, MODULE)


# ---- Arrays that callbacks return


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.arange(6, dtype="int16").reshape(2, 3),
        lambda: np.arange(12, dtype="float64")[::2].reshape(2, 3),
        lambda: np.zeros((0, 3), "int8"),
        lambda: np.array(7),
        lambda: np.ones((1, 1, 2, 1, 1, 1, 2, 1), "float32"),
        lambda: runtime.tensor(np.ones(4)),
    ],
    ids=["compact", "strided", "empty", "scalar", "eight-dims", "tensor"],
)
def test_callback_returns_an_array(probe: Probe, make: Callable[[], Any]) -> None:
    """The result is a Tensor over the same memory, with shape, type and values."""
    made: list[Any] = []

    def give() -> Any:
        made.append(make())
        return made[0]

    assert probe("result_type")(make) == TENSOR
    result = np.asarray(probe("apply")(give))
    expected = np.asarray(made[0])
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(result, expected)
    assert expected.size == 0 or np.shares_memory(result, expected)


def test_buffers_and_torch_tensors_are_arrays_too(probe: Probe) -> None:
    """Any array argument can also be a result."""
    torch = needs.module("torch", "torch")
    result = np.asarray(probe("apply")(lambda: torch.arange(4)))
    np.testing.assert_array_equal(result, np.arange(4))
    assert bytes(memoryview(probe("apply")(lambda: bytearray(b"abc")))) == b"abc"


def test_returned_array_lives_as_long_as_its_tensor(probe: Probe) -> None:
    """The tensor keeps the array, and frees it at its end."""

    class Array(np.ndarray):
        """An array that can be watched."""

    made: list[weakref.ref[Array]] = []

    def give() -> Array:
        array = np.ones(100).view(Array)
        made.append(weakref.ref(array))
        return array

    tensor = probe("apply")(give)
    gc.collect()
    view = np.asarray(tensor)
    del tensor
    assert view.sum() == 100
    assert made[0]() is not None
    del view
    assert made[0]() is None


def test_bytearray_can_grow_again_once_its_tensor_is_freed(probe: Probe) -> None:
    """The view of the result on the buffer ends with the result."""
    data = bytearray(16)
    tensor = probe("apply")(lambda: data)
    with pytest.raises(BufferError):
        data.extend(b"more")
    del tensor
    data.extend(b"more")
    assert len(data) == 20


def test_returned_array_is_released_in_any_thread(probe: Probe) -> None:
    """A thread without the GIL may hold the last reference: here, one that drops a Tensor."""
    tensors = [probe("apply")(lambda: np.ones(8)) for _ in range(20)]

    def drop() -> None:
        while tensors:
            tensors.pop()

    threads = [threading.Thread(target=drop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tensors == []


def test_borrowed_tensor_cannot_be_a_result(probe: Probe) -> None:
    """A tensor that was borrowed for the call is invalid when the call returns."""
    with pytest.raises(ValueError, match="^<lambda>: result: expected") as caught:
        probe("lend")(lambda tensor: tensor)
    assert "borrowed for a call that has ended" in str(caught.value.__cause__)


def test_array_that_cannot_be_passed_cannot_be_a_result(probe: Probe) -> None:
    """The message names the callable and its result."""

    def give() -> Any:
        return np.array(["text"])

    with pytest.raises(TypeError, match="^give: result: unsupported dtype"):
        probe("apply")(give)
