"""OpenCL through ctypes: the driver calls that tests need and the runtime does not make."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p, sizeof

_DEVICE_TYPE_ALL = 0xFFFFFFFF
_PROGRAM_BINARY_SIZES, _PROGRAM_BINARIES = 0x1165, 0x1166


def build_binary(source: str) -> bytes:
    """Compile OpenCL C for the first platform's first device: the driver's own binary."""
    library = ctypes.CDLL("libOpenCL.so.1")
    for function in (library.clCreateContext, library.clCreateProgramWithSource):
        function.restype = c_void_p
    platform, device, code = c_void_p(), c_void_p(), c_int()
    assert library.clGetPlatformIDs(1, byref(platform), None) == 0
    assert library.clGetDeviceIDs(platform, c_uint64(_DEVICE_TYPE_ALL), 1, byref(device), None) == 0
    context = c_void_p(library.clCreateContext(None, 1, byref(device), None, None, byref(code)))
    text = ctypes.c_char_p(source.encode())
    program = c_void_p(
        library.clCreateProgramWithSource(context, 1, byref(text), None, byref(code))
    )
    assert library.clBuildProgram(program, 1, byref(device), None, None, None) == 0
    binary = _program_binary(library, program)
    library.clReleaseProgram(program)
    library.clReleaseContext(context)
    return binary


def _program_binary(library: ctypes.CDLL, program: c_void_p) -> bytes:
    size = c_size_t()
    sizes = (program, _PROGRAM_BINARY_SIZES, c_size_t(sizeof(size)), byref(size), None)
    assert library.clGetProgramInfo(*sizes) == 0
    room = ctypes.create_string_buffer(size.value)
    pointer = c_void_p(ctypes.addressof(room))
    binaries = (program, _PROGRAM_BINARIES, c_size_t(sizeof(pointer)), byref(pointer), None)
    assert library.clGetProgramInfo(*binaries) == 0
    return room.raw
