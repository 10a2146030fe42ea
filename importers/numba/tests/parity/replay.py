"""Run recorded calls of a library in a process without Numba, llvmlite and NumPy.

python -P replay.py LIBRARY CALLS RESULTS
"""

from __future__ import annotations

import ctypes
import pickle
import sys
from pathlib import Path
from typing import Any

for name in ("numba", "llvmlite", "numpy"):
    sys.modules[name] = None  # type: ignore[assignment]

sys.path.insert(0, str(Path(__file__).parent))

import runtime  # noqa: E402

_CODES = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    pass


_Managed._fields_ = [
    ("tensor", _Tensor),
    ("context", ctypes.c_void_p),
    ("deleter", ctypes.c_void_p),
]
_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Array:
    """An array with DLPack."""

    def __init__(self, plain: tuple[Any, ...]) -> None:
        _, self.code, self.bits, self.shape, self.strides, self.offset, data, _ = plain
        self.memory = ctypes.create_string_buffer(data, max(1, len(data)) + 64)
        # Aligned, as NumPy's memory is.
        address = ctypes.addressof(self.memory)
        self.place = -address % 64
        ctypes.memmove(address + self.place, data, len(data))
        self.nbytes = len(data)
        count = len(self.shape)
        self.extents = (ctypes.c_int64 * max(1, count))(*self.shape)
        steps = [stride * 8 // self.bits for stride in self.strides]
        self.steps = (ctypes.c_int64 * max(1, count))(*steps)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **_: Any) -> Any:
        managed = _Managed()
        data = ctypes.addressof(self.memory) + self.place + self.offset
        managed.tensor = _Tensor(
            data, 1, 0, len(self.shape), self.code, self.bits, 1, self.extents, self.steps, 0
        )
        self.managed = managed
        return _capsule(ctypes.addressof(managed), b"dltensor", None)

    def plain(self) -> tuple[Any, ...]:
        """Describe it as it is now."""
        data = ctypes.string_at(ctypes.addressof(self.memory) + self.place, self.nbytes)
        return ("array", self.code, self.bits, self.shape, self.strides, self.offset, data, True)


def value_of(plain: tuple[Any, ...]) -> Any:
    """Make a value."""
    if plain[0] == "array":
        return Array(plain)
    return tuple(map(value_of, plain[1])) if plain[0] == "tuple" else plain[1]


def plain_of(value: Any) -> tuple[Any, ...]:
    """Describe a result, or an argument after the call."""
    if isinstance(value, Array):
        return value.plain()
    if isinstance(value, tuple):
        return ("tuple", [plain_of(item) for item in value])
    if isinstance(value, runtime.Tensor):
        return _tensor(value)
    return ("py", value)


def _tensor(tensor: Any) -> tuple[Any, ...]:
    capsule = tensor.__dlpack__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    found = _Tensor.from_address(get(capsule, b"dltensor"))
    size, ndim = found.bits // 8, found.ndim
    shape = [found.shape[i] for i in range(ndim)]
    steps = (
        [found.strides[i] * size for i in range(ndim)] if found.strides else _compact(shape, size)
    )
    places = [0]
    for extent, step in zip(shape, steps, strict=True):
        places = [place + i * step for place in places for i in range(extent)]
    first = (found.data or 0) + found.byte_offset
    data = b"".join(ctypes.string_at(first + place, size) for place in places)
    return ("array", found.code, found.bits, shape, _compact(shape, size), 0, data, True)


def _compact(shape: list[int], size: int) -> list[int]:
    steps = []
    for extent in reversed(shape):
        steps.insert(0, size)
        size *= extent
    return steps


def main() -> None:
    """Run all calls."""
    library, calls, results = sys.argv[1:]
    module = runtime.load(library)
    answers = []
    for name, arguments in pickle.loads(Path(calls).read_bytes()):
        values: list[Any] = []
        for plain in arguments:
            values.append(values[plain[1]] if plain[0] == "again" else value_of(plain))
        try:
            result = ("value", plain_of(module[name](*values)))
        except Exception as error:
            result = ("raised", type(error).__name__, str(error))
        answers.append((result, [plain_of(value) for value in values]))
        Path(results).write_bytes(pickle.dumps(answers))


if __name__ == "__main__":
    main()
