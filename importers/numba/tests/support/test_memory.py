"""nrt.c and array.c: memory with a count of references, and the arrays made of it."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import pytest

from .both import compile_support, ours

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def nrt(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Our functions."""
    return compile_support(tmp_path_factory.mktemp("nrt"), "nrt.c", "calls.c")


class MemInfo(ctypes.Structure):
    """The layout that compiled code reads."""

    _fields_ = (
        ("refct", ctypes.c_size_t),
        ("destroy", ctypes.c_void_p),
        ("info", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("allocator", ctypes.c_void_p),
    )


@pytest.mark.parametrize("align", [1, 8, 32, 64, 4096, 24])
def test_data_is_aligned(nrt: ctypes.CDLL, align: int) -> None:
    """Also to numbers that are not a power of two."""
    allocate = ours(
        nrt, "NRT_MemInfo_alloc_aligned", ctypes.POINTER(MemInfo), ctypes.c_size_t, ctypes.c_uint
    )
    made = allocate(100, align)
    assert made[0].refct == 1
    assert made[0].data % align == 0
    assert made[0].size == 100
    ctypes.memset(made[0].data, 1, 100)
    ours(nrt, "NRT_MemInfo_release", None, ctypes.c_void_p)(ctypes.cast(made, ctypes.c_void_p))


def test_sizes_beyond_the_address_space_give_no_memory(nrt: ctypes.CDLL) -> None:
    """Compiled code raises MemoryError of NULL; the size must not wrap."""
    for name in ("NRT_MemInfo_alloc", "NRT_MemInfo_new_varsize", "NRT_Allocate"):
        assert ours(nrt, name, ctypes.c_void_p, ctypes.c_size_t)(2**64 - 8) is None
    aligned = ours(
        nrt, "NRT_MemInfo_alloc_aligned", ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint
    )
    assert aligned(2**64 - 8, 32) is None


def test_the_last_reference_destroys_once(nrt: ctypes.CDLL) -> None:
    """Acquire and release count; the destructor gets the data, its size and what belongs to it."""
    seen: list[tuple[int, int, int]] = []
    destroy = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)(
        lambda *values: seen.append(values)
    )
    new = ours(
        nrt, "NRT_MemInfo_new", ctypes.c_void_p, *[ctypes.c_void_p, ctypes.c_size_t, type(destroy)],
        ctypes.c_void_p,
    )  # fmt: skip
    made = new(0x1000, 24, destroy, 0x2000)
    acquire = ours(nrt, "NRT_MemInfo_acquire", None, ctypes.c_void_p)
    release = ours(nrt, "NRT_MemInfo_release", None, ctypes.c_void_p)
    acquire(made)
    release(made)
    assert seen == []
    release(made)
    assert seen == [(0x1000, 24, 0x2000)]


def test_data_that_grows_keeps_its_content(nrt: ctypes.CDLL) -> None:
    """A list grows in place of its MemInfo."""
    made = ours(nrt, "NRT_MemInfo_new_varsize", ctypes.POINTER(MemInfo), ctypes.c_size_t)(16)
    ctypes.memmove(made[0].data, b"0123456789abcdef", 16)
    grow = ours(
        nrt, "NRT_MemInfo_varsize_realloc", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t
    )
    pointer = ctypes.cast(made, ctypes.c_void_p)
    assert grow(pointer, 1 << 20) == made[0].data
    assert ctypes.string_at(made[0].data, 16) == b"0123456789abcdef"
    assert grow(pointer, 2**64 - 8) is None
    assert ctypes.string_at(made[0].data, 16) == b"0123456789abcdef"
    ours(nrt, "NRT_MemInfo_release", None, ctypes.c_void_p)(pointer)


@pytest.mark.parametrize(
    "name", ["owned_memory", "memory_of_an_argument", "strides_between_elements", "errors"]
)
def test_arrays_that_functions_return(name: str, tmp_path: Path) -> None:
    """The checks are in C, which reads the objects as a loader does."""
    shutil.copy(HERE / "array_probe.c", tmp_path)
    library = compile_support(tmp_path, "nrt.c", "calls.c", "array.c", "array_probe.c")
    assert getattr(library, name)() == 0
