"""Tensors that callbacks borrow: views that end with the call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runtime

from .callables import Probe

SOURCE = "functions.c"
CPU, CUDA = 1, 2


def test_borrowed_array_is_the_callers(probe: Probe) -> None:
    """A callback sees and fills the array itself."""
    array = np.zeros((4, 6), "f4")

    def fill(tensor: runtime.Tensor) -> None:
        assert (tensor.shape, tensor.dtype, tensor.device) == (
            (2, 3),
            "float32",
            runtime.Device("cpu"),
        )
        tensor.numpy()[:] = [[1, 2, 3], [4, 5, 6]]

    probe("apply")(fill, array[::2, ::2])
    assert array[::2, ::2].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert array.sum() == 21


def test_borrowed_tensor_with_strides_and_offset(probe: Probe) -> None:
    """Host code sets shape, strides and offset."""
    seen: list[object] = []

    def look(tensor: runtime.Tensor) -> None:
        view = tensor.numpy()
        seen.append(view.tolist())
        view[0, 0] = 70

    assert probe("lend")(look, CPU) == 70
    assert seen == [[[1, 3, 5], [7, 9, 11]]]


def test_borrowed_tensor_is_invalid_after_the_call(probe: Probe) -> None:
    """A tensor that is kept after the call raises an error instead of showing freed memory."""
    kept: list[runtime.Tensor] = []
    probe("lend")(kept.append, CPU)
    (tensor,) = kept
    for use in (tensor.numpy, tensor.__dlpack__, lambda: tensor.raw, lambda: memoryview(tensor)):
        with pytest.raises(
            ValueError, match="^the tensor was borrowed for a call that has ended; copy"
        ):
            use()
    with pytest.raises(ValueError, match="expected a complete tensor") as caught:
        probe("type_index")(tensor)
    assert "borrowed for a call that has ended" in str(caught.value.__cause__)


@pytest.mark.parametrize("view", [np.asarray, np.from_dlpack, memoryview])
def test_view_that_outlives_the_call_is_an_error(probe: Probe, view: Any) -> None:
    """Nothing can be done for the view, so the call that made it fails."""
    kept: list[Any] = []
    with pytest.raises(BufferError, match="argument 1: a view of it outlives the call"):
        probe("lend")(lambda tensor: kept.append(view(tensor)), CPU)
    kept.clear()


def test_borrowed_device_tensor_is_not_read(probe: Probe) -> None:
    """A tensor on a device can be passed to a function, but not viewed."""

    def look(tensor: runtime.Tensor) -> None:
        assert (tensor.device, tensor.__dlpack_device__()) == (runtime.Device("cuda"), (CUDA, 0))
        assert repr(tensor) == "<Tensor float32[2, 3] on cuda:0>"
        with pytest.raises(
            BufferError, match="^the tensor is in a device's memory; copy it to the CPU$"
        ):
            memoryview(tensor)

    probe("lend")(look, CUDA)
