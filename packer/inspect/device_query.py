"""Query the devices of a driver in a child process, since a driver may crash or hang.

    python device_query.py cuda      ->  {"version": "12.4", "devices": [{"name": ..., ...}, ...]}

The output is one line of JSON. Nothing runs on a device, and no context is created: therefore the
native core is not used, which opens a device to describe it, and refuses drivers that lack one of
the functions for launches.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

# The libraries of drivers by type key, and how to get them.
LIBRARIES = {"cuda": "libcuda.so.1", "opencl": "libOpenCL.so.1"}
REMEDIES = {
    "cuda": "install NVIDIA's driver",
    "opencl": "install an OpenCL loader and driver (Debian: ocl-icd-libopencl1, pocl-opencl-icd)",
}
_TIMEOUT = 20

# cuda.h: CUdevice_attribute. CL/cl.h: cl_device_type, cl_platform_info, cl_device_info.
_COMPUTE_CAPABILITY = (75, 76)
_CL_DEVICE_TYPE_ALL = 0xFFFFFFFF
_CL_PLATFORM_VERSION, _CL_PLATFORM_NAME = 0x0901, 0x0902
_CL_DEVICE_NAME, _CL_DEVICE_VERSION = 0x102B, 0x102F
_MAX_DEVICES = 64


def query_devices(type_key: str) -> dict[str, Any]:
    """Query the driver for ``"cuda"`` or ``"opencl"``.

    Return ``version`` and ``devices``, each with ``name`` and ``architecture``, or ``error``.
    """
    command = [sys.executable, "-I", __file__, type_key]
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT, check=False, errors="replace"
        )
        if run.returncode == 0:
            answer: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
            return answer
        lines = run.stderr.splitlines() or [f"the driver ended the query with {run.returncode}"]
        return {"error": lines[-1]}
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _query_cuda(library: ctypes.CDLL) -> dict[str, Any]:
    version, count = ctypes.c_int(), ctypes.c_int()
    _require(library.cuInit(0), "cuInit")
    _require(library.cuDriverGetVersion(ctypes.byref(version)), "cuDriverGetVersion")
    _require(library.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
    number = f"{version.value // 1000}.{version.value % 1000 // 10}"
    return {"version": number, "devices": [_cuda_device(library, i) for i in range(count.value)]}


def _cuda_device(library: ctypes.CDLL, ordinal: int) -> dict[str, str]:
    device, name, capability = ctypes.c_int(), ctypes.create_string_buffer(256), []
    _require(library.cuDeviceGet(ctypes.byref(device), ordinal), "cuDeviceGet")
    _require(library.cuDeviceGetName(name, 256, device), "cuDeviceGetName")
    for attribute in _COMPUTE_CAPABILITY:
        value = ctypes.c_int()
        status = library.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        _require(status, "cuDeviceGetAttribute")
        capability.append(str(value.value))
    return {
        "name": name.value.decode("utf-8", "replace"),
        "architecture": f"sm_{''.join(capability)}",
    }


def _query_opencl(library: ctypes.CDLL) -> dict[str, Any]:
    platforms = _opencl_list(library.clGetPlatformIDs)
    version = "; ".join(
        " ".join(
            _opencl_text(library.clGetPlatformInfo, platform, key)
            for key in (_CL_PLATFORM_NAME, _CL_PLATFORM_VERSION)
        )
        for platform in platforms
    )
    return {"version": version, "devices": list(_opencl_devices(library, platforms))}


def _opencl_devices(
    library: ctypes.CDLL, platforms: list[ctypes.c_void_p]
) -> Iterator[dict[str, str]]:
    device_type = ctypes.c_uint64(_CL_DEVICE_TYPE_ALL)
    for platform in platforms:
        for device in _opencl_list(library.clGetDeviceIDs, platform, device_type):
            yield {
                "name": _opencl_text(library.clGetDeviceInfo, device, _CL_DEVICE_NAME),
                "architecture": _opencl_text(library.clGetDeviceInfo, device, _CL_DEVICE_VERSION),
            }


def _opencl_list(function: Any, *arguments: Any) -> list[ctypes.c_void_p]:
    """Return the handles that a function lists; none if it fails, as it does if there are none."""
    count = ctypes.c_uint32()
    found = (ctypes.c_void_p * _MAX_DEVICES)()
    status = function(*arguments, ctypes.c_uint32(_MAX_DEVICES), found, ctypes.byref(count))
    shown = min(count.value, _MAX_DEVICES) if status == 0 else 0
    return [ctypes.c_void_p(found[index]) for index in range(shown)]


def _opencl_text(function: Any, handle: ctypes.c_void_p, key: int) -> str:
    text = ctypes.create_string_buffer(1024)
    if function(handle, ctypes.c_uint32(key), ctypes.c_size_t(1024), text, None):
        return "?"
    return text.value.decode("utf-8", "replace").strip()


def _require(status: int, name: str) -> None:
    if status:
        sys.exit(f"{name} returns {status}")


def _main(type_key: str) -> None:
    try:
        library = ctypes.CDLL(LIBRARIES[type_key])
    except OSError as error:
        sys.exit(str(error))
    print(json.dumps({"cuda": _query_cuda, "opencl": _query_opencl}[type_key](library)))


if __name__ == "__main__":
    _main(sys.argv[1])
