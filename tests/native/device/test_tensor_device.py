"""Tensors on a device, an OpenCL one."""

from __future__ import annotations

import gc
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import runtime
from runtime import Device, DeviceError, empty, from_dlpack, tensor

from ...support import needs

pytestmark = pytest.mark.usefixtures("opencl_device")

DEVICE = Device("opencl", 0)
CPU = (1, 0)
NUMBERS = np.arange(12, dtype="f4").reshape(3, 4)


def test_device_is_there() -> None:
    """The device has the name of its driver, and can be waited for."""
    assert DEVICE.exist
    assert DEVICE.name
    DEVICE.sync()
    runtime.get_global_func("__tvm_set_device")(DEVICE.device_type, DEVICE.index)


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u8", "f2", "f4", "f8", "?", "c8"])
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (5, 7), (1 << 18,)])
def test_there_and_back(dtype: str, shape: tuple[int, ...]) -> None:
    """A copy to the device and from it keeps every byte."""
    source = np.random.default_rng(1).integers(0, 2, shape).astype(dtype)
    made = tensor(source, DEVICE)
    assert (made.device, made.shape) == (DEVICE, shape)
    assert np.array_equal(made.numpy(), source)
    assert np.array_equal(np.asarray(made), source)
    assert np.array_equal(made.to("cpu").numpy(), source)


def test_other_data_types() -> None:
    """bfloat16, by ml_dtypes."""
    source = np.arange(5).astype(ml_dtypes.bfloat16)
    back = tensor(source, DEVICE).numpy()
    assert (back.dtype, back.tolist()) == (source.dtype, source.tolist())


def test_copies_of_every_direction() -> None:
    """Source and target may be on the device; shapes and data types are checked as on the CPU."""
    there, other = empty((3, 4), "float32", DEVICE), empty((3, 4), "float32", DEVICE)
    assert there.copy_from(NUMBERS) is there
    other.copy_from(there)
    assert np.array_equal(empty((3, 4)).copy_from(other).numpy(), NUMBERS)
    with pytest.raises(ValueError, match=r"expected shape \(3, 4\), found \(4, 3\)"):
        there.copy_from(NUMBERS.T)
    with pytest.raises(TypeError, match="expected float32, found float64"):
        there.copy_from(NUMBERS.astype("f8"))


@pytest.mark.parametrize("view", [NUMBERS.T, NUMBERS[:, ::-2], np.broadcast_to(NUMBERS[0], (2, 4))])
def test_strides_on_the_cpu(view: Any) -> None:
    """Strides are packed on the way to the device, and restored on the way to the CPU."""
    there = empty(view.shape, "float32", DEVICE).copy_from(view)
    assert np.array_equal(there.numpy(), view)
    around = np.zeros((8, 9), "f4")
    part = around[1 : 1 + view.shape[0], 2 : 2 + view.shape[1]]
    from_dlpack(part).copy_from(there)
    assert np.array_equal(part, view)
    part[...] = 0
    assert not around.any()


def test_pytorch_both_ways() -> None:
    """PyTorch's tensors are copied to the device, and returned through NumPy or DLPack."""
    torch = needs.module("torch", "torch")
    source = torch.arange(6.0).reshape(2, 3)
    there = tensor(source.T, DEVICE)
    assert there.numpy().tolist() == source.T.tolist()
    assert torch.from_dlpack(there.to("cpu")).tolist() == source.T.tolist()
    with pytest.raises(BufferError, match="require"):
        tensor(source.requires_grad_(), DEVICE)


def test_view_on_the_cpu_is_refused() -> None:
    """Memory on the device has no buffer on the CPU."""
    made = tensor(NUMBERS, DEVICE)
    for view in (memoryview, lambda t: t.raw, lambda t: np.asarray(t, copy=False)):
        with pytest.raises((BufferError, ValueError)):
            view(made)  # type: ignore[operator]


@pytest.mark.parametrize("stream", [None, -1, 1])
def test_dlpack(stream: int | None) -> None:
    """The capsule names the device; a consumer on the CPU may ask for a copy."""
    made = tensor(NUMBERS, DEVICE)
    assert made.__dlpack_device__() == (4, 0)
    again = from_dlpack(made.__dlpack__(stream=stream, max_version=(1, 0)))
    assert (again.device, again.numpy().tolist()) == (DEVICE, NUMBERS.tolist())
    again.copy_from(NUMBERS + 1)
    assert made.numpy().tolist() == (NUMBERS + 1).tolist()
    assert np.from_dlpack(made, device="cpu").tolist() == (NUMBERS + 1).tolist()
    with pytest.raises(BufferError, match="is on another device"):
        made.__dlpack__(dl_device=CPU, copy=False)
    own = from_dlpack(made.__dlpack__(copy=True))
    own.copy_from(NUMBERS)
    assert made.numpy().tolist() == (NUMBERS + 1).tolist()


def test_more_than_it_has_is_refused() -> None:
    """The driver's code is in a DeviceError, and the device still works."""
    with pytest.raises(DeviceError, match="^opencl:0: ") as caught:
        empty(1 << 50, "int8", DEVICE)
    assert (caught.value.device, caught.value.code) == ("opencl:0", -61)
    assert np.array_equal(tensor(NUMBERS, DEVICE).numpy(), NUMBERS)


def test_index_beyond_those_there_is_refused() -> None:
    """The message lists the known devices."""
    assert not Device("opencl", 99).exist
    with pytest.raises(
        DeviceError, match=r"^opencl:99: no such device, found .*opencl:0"
    ) as caught:
        empty(1, "int8", "opencl:99")
    assert caught.value.device == "opencl:99"


def test_memory_is_released() -> None:
    """Allocations that are freed do not add up, one after another and in many threads."""
    wrong: list[object] = []

    def work() -> None:
        for number in range(8):
            made = tensor(np.full(48 << 20, number, "i1"), DEVICE)
            if made.numpy()[-1] != number:
                wrong.append(number)

    threads = [threading.Thread(target=work) for _ in range(2)]
    before = resident()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert wrong == []
    assert resident() - before < 200 << 20


def resident() -> int:
    """Return the bytes of memory of this process: PoCL's devices share it."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
