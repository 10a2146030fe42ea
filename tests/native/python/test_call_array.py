"""Arrays read without a protocol: NumPy's by their struct, others by DLPack's C exchange API."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import sysconfig
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runtime._core import Function, Library

from ...support import needs
from ...support.paths import C_SOURCES

Probe = Callable[[str], Function]
SOURCE = "probe.c"


# ---- NumPy, by its struct


LOOK = """
import sys
import lookalike
from runtime._core import Library

sys.modules["numpy"] = lookalike
library = Library(sys.argv[1])
address, stride = (library.function(name, None) for name in ("address", "stride"))
array = lookalike.ndarray((2, 3), "f4")
with memoryview(array) as view:
    expected = [view.strides[i] // view.itemsize for i in range(2)]
address(array)
before = lookalike.buffers()
found = [stride(array, i) for i in range(2)]
print(found == expected, lookalike.buffers() - before)
"""


@pytest.mark.parametrize(
    ("wrong", "buffers"),
    [("0", 0), ("DATA", 2), ("ND", 2), ("DIMENSIONS", 2), ("STRIDES", 2), ("DESCR", 2),
     ("WRITEABLE", 2), ("WARN", 2)],
)  # fmt: skip
def test_struct_that_does_not_fit_is_detected(
    library: Library, tmp_path: Path, wrong: str, buffers: int
) -> None:
    """The struct is read only if it agrees with the buffer protocol, which else serves for good."""
    include, source = sysconfig.get_path("include"), C_SOURCES / "lookalike.c"
    command = ["cc", "-O1", "-fPIC", "-shared", f"-I{include}", f"-DWRONG={wrong}", str(source)]
    subprocess.run([*command, "-o", str(tmp_path / "lookalike.so")], check=True)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{LOOK}"
    ran = subprocess.run(
        [sys.executable, "-c", code, library.path],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ran.stderr, ran.stdout) == ("", f"True {buffers}\n")


SMALL = """
import array, sys, types
from runtime._core import Library

class ndarray(array.array):
    def __new__(cls, *args):
        return super().__new__(cls, "f", [1, 2, 3])

sys.modules["numpy"] = types.SimpleNamespace(ndarray=ndarray)
print(Library(sys.argv[1]).function("extent", None)(ndarray(), 0))
"""


def test_struct_that_is_too_small_is_detected(library: Library) -> None:
    """Nothing is read after the end of an object."""
    command = [sys.executable, "-c", SMALL, library.path]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.stderr, ran.stdout) == ("", "3\n")


def test_the_installed_numpy_fits(library: Library) -> None:
    """The struct has the array's values, so arrays take the short way."""
    code = (
        "import sys, numpy; from runtime._core import Library\n"
        "dtype = Library(sys.argv[1]).function('dtype', None)\n"
        "array = numpy.ones(3)\n"
        "before = sys.getrefcount(array.dtype); dtype(array)\n"
        "print(sys.getrefcount(array.dtype) - before)"
    )
    command = [sys.executable, "-c", code, library.path]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.stderr, ran.stdout) == ("", "1\n"), "the dtype is not kept"


def test_many_dtype_objects(probe: Probe) -> None:
    """Dtypes that share a cache slot are kept apart, however they are created and freed."""
    names = ["i1", "u2", "i4", "f4", "f8", "c8", "c16", "?", "f2", "u8"]
    codes = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
    for _ in range(20):
        made = [np.dtype(name, copy=True, metadata={"x": 1}) for name in names * 3]
        for dtype in made:
            expected = codes[dtype.kind] * 1000000 + dtype.itemsize * 8000 + 1
            assert probe("dtype")(np.zeros(2, dtype)) == expected
        del made


def test_subclass_uses_the_buffer_protocol(probe: Probe) -> None:
    """A matrix is not an ndarray to us, but still an array."""

    class Own(np.ndarray[Any, Any]):
        pass

    values = np.arange(6, dtype="f4").reshape(2, 3)
    assert probe("address")(values.view(Own)) == values.ctypes.data


def test_write_that_numpy_warns_of(probe: Probe) -> None:
    """An array that NumPy warns to write to gives that warning, where it is written."""
    source = np.ones(1, "f4")
    array = np.broadcast_arrays(source, np.ones(3))[0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert probe("first")(array) == 1.0
        assert caught == []
        try:
            probe("scale")(array, 1.0)
        except ValueError:  # newer ones refuse it
            assert not array.flags.writeable
            return
    assert len(caught) == 1


@pytest.mark.parametrize("ndim", [0, 1, 6, 7, 32])
def test_dimensions(probe: Probe, ndim: int) -> None:
    """Shape and strides are complete at any number of dimensions."""
    values = np.zeros((2,) * min(ndim, 7) + (1,) * max(0, ndim - 7), "i2")
    assert probe("ndim")(values) == ndim
    assert tuple(probe("extent")(values, i) for i in range(ndim)) == values.shape
    strides = tuple(2 * probe("stride")(values, i) for i in range(ndim))
    assert strides == values.strides


def test_shape_may_change_during_a_call(probe: Probe) -> None:
    """A call sees a copy: another thread may reshape the array meanwhile."""
    values = np.zeros((2, 3))
    stop = threading.Event()

    def reshape() -> None:
        while not stop.is_set():
            for shape in ((3, 2), (6,), (1, 2, 3)):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    values.shape = shape

    thread = threading.Thread(target=reshape)
    thread.start()
    try:
        assert {probe("ndim")(values) for _ in range(2000)} <= {1, 2, 3}
    finally:
        stop.set()
        thread.join()


def test_dtypes_of_ml_dtypes(probe: Probe) -> None:
    """Types that the buffer protocol cannot say go by their names; those below a byte do not."""
    import ml_dtypes

    assert probe("dtype")(np.zeros(2, ml_dtypes.bfloat16)) == 4016001
    assert probe("dtype")(np.zeros(2, ml_dtypes.float8_e4m3fn)) == 10008001
    for dtype in (ml_dtypes.int4, ml_dtypes.float4_e2m1fn):
        with pytest.raises(TypeError, match="expected an array with strides and a dtype"):
            probe("dtype")(np.zeros(2, dtype))


# ---- DLPack's C exchange API


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


_Describe = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_Tensor))


class _Api(ctypes.Structure):
    """DLPackExchangeAPI."""


_Api._fields_ = [
    ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.POINTER(_Api)),
    ("allocator", ctypes.c_void_p), ("from_object", ctypes.c_void_p),
    ("to_object", ctypes.c_void_p), ("describe", _Describe), ("stream", ctypes.c_void_p),
]  # fmt: skip

_alive: list[Any] = []


def _capsule(api: _Api, name: bytes = b"dlpack_exchange_api") -> Any:
    _alive.extend((api, name))
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        ("PyCapsule_New", ctypes.pythonapi)
    )
    return new(ctypes.addressof(api), name, None)


class _Exchanged:
    """An array that counts the ways by which it was passed."""

    def __init__(self, array: Any, device: int = 1, fails: bool = False) -> None:
        self.array, self.device, self.fails = array, device, fails
        self.asked = {"describe": 0, "dlpack": 0}

    def __dlpack__(self, **options: Any) -> Any:
        self.asked["dlpack"] += 1
        return self.array.__dlpack__(**options)


@_Describe
def _describe(tensor: _Exchanged, out: Any) -> int:
    tensor.asked["describe"] += 1
    array = tensor.array
    ndim = array.ndim
    tensor.shape = (ctypes.c_int64 * ndim)(*array.shape)
    tensor.strides = (ctypes.c_int64 * ndim)(*(s // array.itemsize for s in array.strides))
    out[0] = _Tensor(
        array.ctypes.data, tensor.device, 0, ndim, {"f": 2, "c": 5}[array.dtype.kind],
        array.itemsize * 8, 1, tensor.shape, tensor.strides, 0,
    )  # fmt: skip
    return -1 if tensor.fails else 0


def test_exchange_api_serves(probe: Probe) -> None:
    """A type that offers the API is asked by it, and its own subclass is not."""

    class Array(_Exchanged):
        __dlpack_c_exchange_api__ = _capsule(_Api(major=1, minor=3, describe=_describe))

    class Sub(Array):
        pass

    values = np.arange(24, dtype="f4").reshape(4, 6)[::2, ::3]
    for cls, described in ((Array, 5), (Array, 5), (Sub, 0)):
        array = cls(values)
        assert probe("address")(array) == values.ctypes.data
        found = [probe(name)(array, i) for name in ("extent", "stride") for i in range(2)]
        assert found == [2, 2, 12, 3]
        assert (array.asked["describe"], array.asked["dlpack"] > 0) == (described, described == 0)


@pytest.mark.parametrize(
    ("dtype", "options"), [("f4", {"device": 2}), ("f4", {"fails": True}), ("c8", {})]
)
def test_exchange_api_is_bypassed(probe: Probe, dtype: str, options: dict[str, Any]) -> None:
    """Devices need a stream, a refusal a reason, and complex numbers may be conjugate."""

    class Array(_Exchanged):
        __dlpack_c_exchange_api__ = _capsule(_Api(major=1, describe=_describe))

    array = Array(np.ones(3, dtype), **options)
    assert probe("device")(array) == 1
    assert array.asked["describe"] == 1
    assert array.asked["dlpack"] > 0


def _older() -> _Api:
    return _Api(major=2, previous=ctypes.pointer(_Api(major=1, describe=_describe)))


@pytest.mark.parametrize(
    ("make", "described"),
    [
        (lambda: _capsule(_Api(major=2, describe=_describe)), 0),
        (lambda: _capsule(_Api(major=0, describe=_describe)), 0),
        (lambda: _capsule(_Api(major=1)), 0),
        (lambda: _capsule(_Api(major=1, describe=_describe), b"another"), 0),
        (lambda: None, 0),
        (lambda: _capsule(_older()), 1),
    ],
    ids=["newer", "ancient", "without describe", "another capsule", "none", "newer and ours"],
)
def test_exchange_api_of_another_version(probe: Probe, make: Any, described: int) -> None:
    """Only major version 1 is read, be it the newest or one before."""
    array_type = type("Array", (_Exchanged,), {"__dlpack_c_exchange_api__": make()})
    array = array_type(np.ones(3, "f4"))
    assert probe("first")(array) == 1.0
    assert array.asked["describe"] == described


# ---- PyTorch, where it is installed


@pytest.fixture(scope="module")
def torch() -> Any:
    """The torch package."""
    return needs.module("torch", "torch")


def test_torch_tensor(probe: Probe, torch: Any) -> None:
    """A tensor is passed in place, with strides and dtype."""
    values = torch.arange(24, dtype=torch.bfloat16).reshape(4, 6)[:, ::2]
    assert probe("address")(values) == values.data_ptr()
    assert [probe("stride")(values, i) for i in range(2)] == [6, 2]
    assert probe("dtype")(values) == 4016001
    ones = torch.ones(4)
    probe("scale")(ones, 3.0)
    assert ones.tolist() == [3.0] * 4


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda t: t.ones(3, requires_grad=True), "require gradient"),
        (lambda t: t.ones(3, requires_grad=True) * 2, "require gradient"),
        (lambda t: t.nn.Parameter(t.ones(3)), "require gradient"),
        (lambda t: t.ones(3, dtype=t.complex64).conj(), "conjugate bit"),
        (lambda t: t.ones(3, 3).to_sparse(), "layout other than torch.strided"),
        (lambda t: t.ones(3, device="meta"), "Cannot pack tensors on meta"),
    ],
    ids=["grad", "not a leaf", "parameter", "conj", "sparse", "meta"],
)
def test_torch_tensor_that_is_refused(probe: Probe, torch: Any, make: Any, expected: str) -> None:
    """PyTorch's error is the cause."""
    with pytest.raises(ValueError, match="expected an array that can be shared") as caught:
        probe("first")(make(torch))
    assert expected in str(caught.value.__cause__)


@pytest.mark.parametrize("index", [slice(None), 0, slice(0, 1)])
def test_torch_tensor_with_the_negative_bit(probe: Probe, torch: Any, index: Any) -> None:
    """The negative bit of a tensor is not in its memory."""
    tensor = torch.ones(3, dtype=torch.complex64).conj().imag[index]
    with pytest.raises(ValueError, match=r"negative bit set; pass its resolve_neg\(\)"):
        probe("first")(tensor)
    assert probe("first")(tensor.resolve_neg()) == 0.0


# ---- last, since it leaves no room for other types in this process


def test_more_types_than_are_remembered(probe: Probe) -> None:
    """The API of any number of types may be met; `__dlpack__` serves those beyond a few."""
    for _ in range(20):
        capsule = _capsule(_Api(major=1, describe=_describe))
        array = type("Array", (_Exchanged,), {"__dlpack_c_exchange_api__": capsule})(np.ones(3))
        assert probe("ndim")(array) == 1
