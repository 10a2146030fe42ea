"""Workspaces: alignment, reuse, refusals, and the ends of threads."""

from __future__ import annotations

import ctypes
import threading
import time
from pathlib import Path

import pytest

CPU = (1, 0)


@pytest.fixture(scope="module")
def core(launch_library: Path) -> ctypes.CDLL:
    """The library in this process."""
    library = ctypes.CDLL(str(launch_library))
    library.take_error.restype = ctypes.c_char_p
    library.alloc.restype = ctypes.c_void_p
    library.alloc.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_uint64]
    library.release.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
    return library


@pytest.mark.parametrize("nbytes", [0, 1, 63, 64, 4096, 4097, 1 << 20])
def test_memory_is_aligned_and_writable(core: ctypes.CDLL, nbytes: int) -> None:
    """Every size has a separate address, a multiple of 64."""
    address = core.alloc(*CPU, nbytes)
    assert address
    assert address % 64 == 0
    ctypes.memset(address, 0xAB, nbytes)
    assert core.release(*CPU, address) == 0


def test_freed_memory_is_reused(core: ctypes.CDLL) -> None:
    """The same nest of workspaces gets the same memory, call after call."""
    sizes = (1 << 16, 1 << 12, 1 << 14)
    rounds = []
    for _ in range(5):
        addresses = [core.alloc(*CPU, nbytes) for nbytes in sizes]
        assert len(set(addresses)) == len(sizes)
        rounds.append(sorted(addresses))
        for address in reversed(addresses):
            assert core.release(*CPU, address) == 0
    assert all(addresses == rounds[1] for addresses in rounds[1:])


def test_any_order_of_giving_back(core: ctypes.CDLL) -> None:
    """Host code frees in reverse order, but need not."""
    addresses = [core.alloc(*CPU, 100) for _ in range(4)]
    for index in (2, 0, 3, 1):
        assert core.release(*CPU, addresses[index]) == 0


def test_growing_workspace_leaks_nothing(core: ctypes.CDLL) -> None:
    """Each larger one replaces the one before."""

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    before = resident()
    for mib in range(1, 65):
        address = core.alloc(*CPU, mib << 20)
        ctypes.memset(address, 1, mib << 20)
        assert core.release(*CPU, address) == 0
    assert resident() - before < 200 << 20


@pytest.mark.parametrize("nbytes", [(1 << 64) - 1, 1 << 63, (1 << 63) - 1, 1 << 60])
def test_size_that_cannot_be_is_refused(core: ctypes.CDLL, nbytes: int) -> None:
    """NULL, and the error has the requested size."""
    assert core.alloc(*CPU, nbytes) is None
    error = core.take_error()
    assert error.startswith(b"DeviceError: cpu:0: no memory for ")
    assert core.alloc(*CPU, 64)


@pytest.mark.parametrize(
    ("device", "text"),
    [
        ((1, 1), b"DeviceError: cpu:1: there is one CPU device, expected cpu:0"),
        ((99, 0), b"DeviceError: device type 99: unknown kind of device (DLDeviceType), expected"),
        ((7, 0), b"DeviceError: vulkan: unsupported kind of device, expected"),
    ],
)
def test_missing_device_is_refused(core: ctypes.CDLL, device: tuple[int, int], text: bytes) -> None:
    """NULL, and the error names the device."""
    assert core.alloc(*device, 64) is None
    assert core.take_error().startswith(text)


def test_foreign_pointer_is_refused(core: ctypes.CDLL) -> None:
    """A pointer of another thread, or one that was already returned, is not freed."""
    address = core.alloc(*CPU, 64)
    assert core.release(*CPU, address + 64) == -1
    assert core.release(*CPU, None) == -1
    results: list[int] = []
    thread = threading.Thread(target=lambda: results.append(core.release(*CPU, address)))
    thread.start()
    thread.join()
    assert results == [-1]
    assert core.release(*CPU, address) == 0
    assert core.release(*CPU, address) == -1
    assert b"is not a workspace of this thread" in core.take_error()


def test_thread_that_ends_frees_its_pools(core: ctypes.CDLL) -> None:
    """The memory is freed, returned or not."""

    def work() -> None:
        for keep in (False, True):
            address = core.alloc(*CPU, 64 << 20)
            ctypes.memset(address, 1, 64 << 20)
            assert keep or core.release(*CPU, address) == 0

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    before = resident()
    for _ in range(4):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    deadline = time.monotonic() + 30  # join does not wait for the system's part of the end
    while resident() - before > 32 << 20 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert resident() - before < 32 << 20
