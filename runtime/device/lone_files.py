"""Lone files: device code and weights that lie beside a program, not in a library.

    .ptx .cubin .fatbin     cuda          .cl .clbin   opencl      .hsaco   hip
    .spv                    opencl, or vulkan if its entry points are shaders
    .params                 const_loader  .safetensors safetensors

What the kernels of device code are called and take stands in a file beside it (`kernel_meta`);
without one it is read from the code itself, as far as that says it (`kernel_source`).
"""

from __future__ import annotations

import os
from stat import S_ISREG

from ..error import BlobFormatError, ExportError, LibraryLoadError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..module import Module
    from ..modules.device import DeviceModule

# suffix -> type key and format
_DEVICE_CODE = {
    "ptx": ("cuda", "ptx"),
    "cubin": ("cuda", "cubin"),
    "fatbin": ("cuda", "fatbin"),
    "cl": ("opencl", "cl"),
    "clbin": ("opencl", "clbin"),
    "spv": ("opencl", "spirv"),
    "hsaco": ("hip", "hsaco"),
}


def load_file(path: str) -> Module:
    """Load a lone file; its suffix is one of `loaders`.

    Parameters
    ----------
    path : str
        The file. It is mapped: one that is overwritten in place meanwhile breaks its users.

    Raises
    ------
    LibraryLoadError
        It cannot be read, or is no regular file.
    BlobFormatError
        Its content is not what its suffix says.
    """
    return LOADERS[os.path.splitext(path)[1][1:]](path)


def _load_device_code(path: str) -> DeviceModule:
    from ..modules.device import DeviceModule, Shader
    from .kernel_meta import read_meta
    from .kernel_source import entry_model, kernels_of

    type_key, fmt = _DEVICE_CODE[os.path.splitext(path)[1][1:]]
    data = read_file(path)
    functions = read_meta(path)
    kernels = kernels_of(fmt, data) if functions is None else list(functions.values())
    if fmt == "spirv" and entry_model(data) == "vulkan":
        shaders = {info.name: Shader(0, data) for info in kernels}
        module = DeviceModule("vulkan", shaders, fmt, functions or kernels)
    else:
        module = DeviceModule(type_key, data, fmt, functions or kernels)
    module.path = path
    return module


def _load_params(path: str) -> Module:
    from ..modules.const_loader import ConstLoaderModule
    from ..tensors.ndarray import parse_params

    return ConstLoaderModule(parse_params(read_file(path), path=path), {})


def _load_safetensors(path: str) -> Module:
    from ..modules.safetensors import SafetensorsModule

    try:
        return SafetensorsModule(path)
    except ExportError as error:
        cause = error.__cause__
        if isinstance(cause, BlobFormatError):
            raise cause from None
        raise LibraryLoadError(error.message, path=path, reason="io") from error


def read_file(path: str) -> memoryview:
    """Map a regular file.

    Raises
    ------
    LibraryLoadError
        It cannot be read, or is no regular file.
    """
    from mmap import ACCESS_READ, mmap

    try:
        # A pipe is opened without waiting for its writer, and then refused.
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = os.fstat(number)
            if not S_ISREG(found.st_mode):
                raise LibraryLoadError(f"{path}: not a regular file", path=path, reason="io")
            if not found.st_size:
                return memoryview(b"")
            return memoryview(mmap(number, found.st_size, access=ACCESS_READ))
        finally:
            os.close(number)
    except LibraryLoadError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LibraryLoadError(f"{path}: {reason}", path=path, reason="io") from error


LOADERS: dict[str, Callable[[str], Module]] = {
    **dict.fromkeys(_DEVICE_CODE, _load_device_code),
    "params": _load_params,
    "safetensors": _load_safetensors,
}


def without_kernels(path: str) -> str:
    """What to do where device code does not say what its kernels take."""
    from .kernel_meta import meta_path

    return (
        f"{path} does not say what its kernels are called and take: write {meta_path(path)} "
        f"beside it, as DeviceModule.save does, or make a runtime.DeviceModule with FunctionInfo"
    )
