"""Arrays by DLPack: producers, capsules, and the guards for them."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np
import pytest

from .dlpack_producers import OnlyDLPack, OnlyOldDLPack, Probe

SOURCE = "probe.c"


class _GivesCapsule:
    """Hands out one ready capsule, whatever it is."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule


@pytest.mark.parametrize("wrapper", [OnlyDLPack, OnlyOldDLPack])
def test_dlpack_tensor(probe: Probe, wrapper: type) -> None:
    """Both generations of the protocol are read, in place."""
    values = np.arange(6, dtype="f4").reshape(2, 3)
    wrapped = wrapper(values)
    assert probe("address")(wrapped) == values.ctypes.data
    assert [probe("stride")(wrapped, i) for i in range(2)] == [3, 1]
    assert probe("dtype")(wrapped) == 2032001


def test_dlpack_producer_is_released(probe: Probe) -> None:
    """The deleter runs once, after good and bad calls."""
    values = np.ones(4, "f4")
    before = sys.getrefcount(values)
    for wrapper in (OnlyDLPack, OnlyOldDLPack):
        probe("first")(wrapper(values))
        with pytest.raises(RuntimeError):
            probe("fail_silently")(wrapper(values))
        with pytest.raises(TypeError):
            probe("add")(wrapper(values), object())
    assert sys.getrefcount(values) == before


def test_dlpack_that_the_producer_refuses(probe: Probe) -> None:
    """A BufferError of the producer is the cause of a ValueError that names the argument."""

    class Refuses:
        def __dlpack__(self, **_: object) -> object:
            raise BufferError("requires grad")

    with pytest.raises(ValueError, match=r"^first: argument 1 .*cannot; declared") as caught:
        probe("first")(Refuses())
    assert str(caught.value.__cause__) == "requires grad"


@pytest.mark.parametrize("capsule", [None, 3, "used"])
def test_dlpack_without_capsule_is_refused(probe: Probe, capsule: Any) -> None:
    """An object that is not an unused capsule is not a tensor."""
    if capsule == "used":
        capsule = np.ones(4).__dlpack__()
        probe("ndim")(_GivesCapsule(capsule))
    with pytest.raises(
        TypeError, match="expected an unused 'dltensor' capsule from __dlpack__, found"
    ):
        probe("ndim")(_GivesCapsule(capsule))


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    """DLManagedTensorVersioned, field by field (dlpack.h)."""

    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager_ctx", ctypes.c_void_p),
        ("deleter", _Deleter), ("flags", ctypes.c_uint64), ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


def _capsule(managed: _Managed) -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    return new(ctypes.addressof(managed), b"dltensor_versioned", None)


def test_dlpack_device_tensor_without_strides(probe: Probe) -> None:
    """Any device is passed unchanged, and NULL strides become compact ones."""
    shape = (ctypes.c_int64 * 3)(4, 5, 6)
    managed = _Managed(major=1, ndim=3, bits=32, code=2, lanes=1, device_type=2, shape=shape)
    assert probe("device")(_GivesCapsule(_capsule(managed))) == 2
    found = [probe("stride")(_GivesCapsule(_capsule(managed)), i) for i in range(3)]
    assert found == [30, 6, 1]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"major": 2}, r"expected DLPack version 1, found 2\.0"),
        ({"major": 1, "ndim": 65}, "expected at most 64 dimensions, found 65"),
        ({"major": 1, "ndim": -1}, "expected at most 64 dimensions, found -1"),
    ],
)
def test_dlpack_guards_release_the_tensor(probe: Probe, fields: Any, expected: str) -> None:
    """A tensor that is refused is handed back through its deleter."""
    deleted: list[int] = []
    managed = _Managed(deleter=_Deleter(deleted.append), **fields)
    with pytest.raises(ValueError, match=expected):
        probe("ndim")(_GivesCapsule(_capsule(managed)))
    assert deleted == [ctypes.addressof(managed)]
