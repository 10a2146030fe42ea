"""DeviceError raised by native code: its class and its attributes."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

import runtime
from runtime._core import Function

Probe = Callable[[str], Function]
SOURCE = "probe.c"


@pytest.mark.parametrize(
    ("text", "device", "code"),
    [
        ("opencl:1: out of memory (code -4)", "opencl:1", -4),
        ("cuda:0: no device", "cuda:0", None),
        ("device[42]:3: nothing (code 7)", "device[42]:3", 7),
        ("vulkan: no driver binding", None, None),
        ("opencl:x: text (code y)", None, None),
        ("", None, None),
    ],
)
def test_device_error_has_its_attributes(
    probe: Probe, text: str, device: str | None, code: int | None
) -> None:
    """Device and code are read back from the text."""
    with pytest.raises(runtime.DeviceError) as caught:
        probe("fail")("DeviceError", text)
    error = caught.value
    assert (str(error), error.device, error.code) == (text, device, code)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.device, copy.code) == (type(error), text, device, code)
