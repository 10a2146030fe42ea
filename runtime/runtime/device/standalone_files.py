"""Standalone files: device code and weights that are stored beside a program, not in a library.

    .ptx .cubin .fatbin     cuda          .cl .clbin   opencl      .hsaco   hip
    .spv                    opencl, or vulkan if its entry points are shaders
    .params                 const_loader  .safetensors safetensors

The names and parameters of kernels are read from a file beside the code (`device.kernel_meta`).
Without one they are read from the code, if its format contains them (`device.kernel_source`).
"""

from __future__ import annotations

import os

from ..error import BlobFormatError, ExportError, LibraryLoadError
from ..serial.mapped_file import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..module import Module
    from ..modules.device import DeviceModule, FunctionInfo

# suffix -> type key and format
DEVICE_CODE = {
    "ptx": ("cuda", "ptx"),
    "cubin": ("cuda", "cubin"),
    "fatbin": ("cuda", "fatbin"),
    "cl": ("opencl", "cl"),
    "clbin": ("opencl", "clbin"),
    "spv": ("opencl", "spirv"),
    "hsaco": ("hip", "hsaco"),
}


def load_file(path: str, data: memoryview | None = None) -> Module:
    """Load a standalone file, whose suffix is a key of `LOADERS`; it is mapped.

    `data` are its bytes, if they were verified; no other file is read then.

    Raises LibraryLoadError if it cannot be read, BlobFormatError if it is malformed.
    """
    return LOADERS[os.path.splitext(path)[1][1:]](path, data)


def _load_device_code(path: str, data: memoryview | None) -> DeviceModule:
    from ..modules.device import DeviceModule, Shader
    from .kernel_source import entry_model

    type_key, fmt = DEVICE_CODE[os.path.splitext(path)[1][1:]]
    is_alone = data is not None
    data = read_file(path) if data is None else data
    functions = kernels_of_file(path, fmt, data, is_alone=is_alone)
    if fmt == "spirv" and entry_model(data) == "vulkan":
        shaders = {info.name: Shader(0, data) for info in functions.values()}
        module = DeviceModule("vulkan", shaders, fmt, functions)
    else:
        module = DeviceModule(type_key, data, fmt, functions)
    module.path = path
    return module


def kernels_of_file(
    path: str, fmt: str, data: memoryview, *, is_alone: bool = False
) -> dict[str, FunctionInfo]:
    """Return the kernels of device code by name; none if neither a file beside it nor it has them.

    With `is_alone` a file beside it is not read. Raises BlobFormatError if it is malformed.
    """
    from ..modules.device import FunctionInfo
    from .kernel_meta import read_meta
    from .kernel_source import kernels_of

    functions = None if is_alone else read_meta(path, FunctionInfo)
    if functions is None:
        functions = {kernel[0]: FunctionInfo(*kernel) for kernel in kernels_of(fmt, data)}
    return functions


def _load_params(path: str, data: memoryview | None) -> Module:
    from ..modules.const_loader import ConstLoaderModule
    from ..tensors.params import load_param_dict

    return ConstLoaderModule(
        load_param_dict(read_file(path) if data is None else data, path=path), {}
    )


def _load_safetensors(path: str, data: memoryview | None) -> Module:
    from ..modules.safetensors import SafetensorsModule

    try:
        return SafetensorsModule(path if data is None else data)
    except ExportError as error:
        cause = error.__cause__
        if isinstance(cause, BlobFormatError):
            raise cause from None
        raise LibraryLoadError(error.message, path=path, reason="io") from error


LOADERS: dict[str, Callable[[str, memoryview | None], Module]] = {
    **dict.fromkeys(DEVICE_CODE, _load_device_code),
    "params": _load_params,
    "safetensors": _load_safetensors,
}
