"""Device: how it is written, compared and asked, as argument and result, and its errors."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest

import runtime
from runtime import Device
from runtime._core import Function

Probe = Callable[[str], Function]
SOURCE = "functions.c"


@pytest.mark.parametrize(
    ("arguments", "kind", "device_type", "index"),
    [
        (("cpu",), "cpu", 1, 0),
        (("opencl", 1), "opencl", 4, 1),
        (("opencl:1",), "opencl", 4, 1),
        ((4, 1), "opencl", 4, 1),
        ((2,), "cuda", 2, 0),
        ((Device("cuda:7"),), "cuda", 2, 7),
        ((99, 3), "device[99]", 99, 3),
    ],
)
def test_device_is_made(
    arguments: tuple[Any, ...], kind: str, device_type: int, index: int
) -> None:
    """A device is made by name, by name and index, by DLDeviceType, or of another device."""
    device = Device(*arguments)
    assert (device.kind, device.device_type, device.index) == (kind, device_type, index)
    assert str(device) == f"{kind}:{index}"
    assert eval(repr(device)) == device


def test_devices_are_equal_by_kind_and_index() -> None:
    """Devices compare equal in every spelling, and serve as keys."""
    same = {Device("opencl:1"), Device("opencl", 1), Device(4, index=1)}
    assert len(same) == 1
    assert Device("opencl") != Device("opencl:1")
    assert Device("opencl") != Device("cuda")
    assert Device("cpu") != ("cpu", 0)
    with pytest.raises(TypeError):
        Device("cpu") < Device("cuda")  # type: ignore[operator]  # noqa: B015


@pytest.mark.parametrize("device", [Device("cpu"), Device("cuda:3"), Device(99, 1)])
def test_device_is_copied_and_pickled(device: Device) -> None:
    """A device can be copied and pickled."""
    assert copy.deepcopy(device) == pickle.loads(pickle.dumps(device)) == device


@pytest.mark.parametrize(
    "text", ["", "gpu", "CPU", ":0", "cpu:", "cpu:x", "cpu:-1", "cpu:0:0", "cpu: 0", "cpu:1e3",
             "cpu:9999999999", "żółw", "cpu\0"],
)  # fmt: skip
def test_other_text_is_refused(text: str) -> None:
    """The message lists the kinds of devices."""
    with pytest.raises(
        ValueError, match=r"expected a kind and an index such as 'opencl:0'.*\bcuda\b"
    ):
        Device(text)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [((None,), TypeError), ((1.5,), TypeError), ((True,), TypeError), (("cpu:0", 0), TypeError),
     ((Device("cpu"), 0), TypeError), (("cpu", "0"), TypeError), ((1 << 40,), OverflowError),
     (("cpu", 1 << 40), OverflowError), ((), TypeError)],
)  # fmt: skip
def test_other_arguments_are_refused(arguments: tuple[Any, ...], error: type[Exception]) -> None:
    """Kind and index are given once each, and fit a DLDevice."""
    with pytest.raises(error):
        Device(*arguments)


def test_cpu_is_there() -> None:
    """The CPU has a name, and no pending work."""
    device = Device("cpu")
    assert device.exist
    assert device.name
    device.sync()


@pytest.mark.parametrize(
    ("device", "message"),
    [
        (Device("cpu:1"), r"^cpu:1: there is one CPU device, expected cpu:0$"),
        (Device("vulkan"), r"^vulkan: unsupported kind of device, expected one of cpu"),
        (Device(99), r"^device type 99: unknown kind of device \(DLDeviceType\), expected one of"),
    ],
)
def test_missing_device(device: Device, message: str) -> None:
    """A missing device raises DeviceError with its name."""
    assert not device.exist
    set_device = runtime.get_global_func("__tvm_set_device")
    uses: list[Callable[[], object]] = [
        lambda: device.name,
        device.sync,
        lambda: runtime.empty((2,), "float32", device),
        lambda: runtime.tensor(b"12", device),
        lambda: set_device(device.device_type, device.index),
    ]
    for use in uses:
        with pytest.raises(runtime.DeviceError, match=message):
            use()


def test_device_error_names_the_device() -> None:
    """The error has the device as an attribute."""
    with pytest.raises(runtime.DeviceError) as caught:
        Device("cpu:1").sync()
    assert (caught.value.device, caught.value.code) == ("cpu:1", None)


def test_set_device_is_a_global_function() -> None:
    """Host code for devices calls it first, with a device type and an index."""
    assert "__tvm_set_device" in runtime.list_global_func_names()
    assert runtime.get_global_func("__tvm_set_device")(1, 0) is None
    with pytest.raises(TypeError):
        runtime.get_global_func("__tvm_set_device")("cpu", 0)


def test_device_is_an_argument(probe: Probe) -> None:
    """A device is passed as TVM FFI's type 6, to functions and from callbacks."""
    assert probe("type_index")(Device("opencl:1")) == 6
    seen: list[object] = []
    back = probe("apply")(lambda device: seen.append(device) or device, Device("cuda:2"))
    assert seen == [Device("cuda:2")] == [back]


def test_devices_of_many_threads() -> None:
    """The errors of one thread do not reach another."""
    wrong: list[object] = []

    def ask(index: int) -> None:
        for _ in range(200):
            try:
                Device("cpu", index).sync()
            except runtime.DeviceError as error:
                if error.device != f"cpu:{index}":
                    wrong.append(error)

    threads = [threading.Thread(target=ask, args=(index,)) for index in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
