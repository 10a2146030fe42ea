"""Load packed libraries, and build and serialise module trees. Needs no other package.

>>> import runtime
>>> runtime.load("model.so")["add"](40, 2)  # doctest: +SKIP
42
"""

from __future__ import annotations

from .error import (
    BlobFormatError,
    DeviceError,
    ExportError,
    FunctionNotFoundError,
    LibraryLoadError,
    LoaderNotFoundError,
    OutOfMemoryError,
    PackerError,
    ToolchainError,
)
from .load import load, load_from_bytes
from .module import Module
from .registry import get_global_func, list_global_func_names, register_func, register_loader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from . import blob
    from ._core import Device
    from .graph import executor as graph_executor
    from .graph.executor import GraphExecutor
    from .library import LibraryModule
    from .modules.const_loader import ConstLoaderModule
    from .modules.device import DeviceModule, FunctionInfo, Shader
    from .modules.graph_executor import AotExecutorFactory, GraphExecutorFactory
    from .modules.json_runtime import JSONRuntimeModule
    from .modules.metadata import MetadataModule
    from .modules.opaque import OpaqueModule
    from .modules.safetensors import SafetensorsModule
    from .modules.shared_library import CarriedSharedLibraryModule
    from .modules.source import CarriedSourceModule, CarriedStaticLibraryModule
    from .property import ModuleProperty
    from .relax import vm as relax_vm
    from .serial.interchange import (
        export_module_to_base64,
        import_module_from_base64,
        load_json,
        save_json,
    )
    from .serial.serializer import deserialize_module_from_bytes, serialize_module_to_bytes
    from .stream import Reader, Writer
    from .system_library import system_lib
    from .tensors.ndarray import dump_params, parse_params
    from .tensors.params import (
        load_param_dict,
        load_param_dict_from_file,
        save_param_dict,
        save_param_dict_to_file,
    )
    from .tensors.tensor import Tensor, empty, from_dlpack, tensor

__version__ = "0.1.0"

# Names that a call does not need are imported on first use: a fresh process loads a library in
# milliseconds. One place for each: file -> names.
_LAZY = {
    "_core": ("Device",),
    "graph.executor": ("GraphExecutor",),
    "serial.interchange": (
        *("export_module_to_base64", "import_module_from_base64"),
        *("load_json", "save_json"),
    ),
    "library": ("LibraryModule",),
    "modules.const_loader": ("ConstLoaderModule",),
    "modules.device": ("DeviceModule", "FunctionInfo", "Shader"),
    "modules.graph_executor": ("AotExecutorFactory", "GraphExecutorFactory"),
    "modules.json_runtime": ("JSONRuntimeModule",),
    "modules.metadata": ("MetadataModule",),
    "modules.opaque": ("OpaqueModule",),
    "modules.safetensors": ("SafetensorsModule",),
    "modules.shared_library": ("CarriedSharedLibraryModule",),
    "modules.source": ("CarriedSourceModule", "CarriedStaticLibraryModule"),
    "tensors.ndarray": ("dump_params", "parse_params"),
    "tensors.params": (
        *("load_param_dict", "load_param_dict_from_file"),
        *("save_param_dict", "save_param_dict_to_file"),
    ),
    "property": ("ModuleProperty",),
    "serial.serializer": ("deserialize_module_from_bytes", "serialize_module_to_bytes"),
    "stream": ("Reader", "Writer"),
    "system_library": ("system_lib",),
    "tensors.tensor": ("Tensor", "empty", "from_dlpack", "tensor"),
}
_MODULES = {
    "blob": "blob",
    "graph_executor": "graph.executor",
    "relax_vm": "relax.vm",
    "torch": "torch",
}
_HOME = {name: file for file, names in _LAZY.items() for name in names}

__all__ = [
    "AotExecutorFactory",
    "BlobFormatError",
    "CarriedSharedLibraryModule",
    "CarriedSourceModule",
    "CarriedStaticLibraryModule",
    "ConstLoaderModule",
    "Device",
    "DeviceError",
    "DeviceModule",
    "ExportError",
    "FunctionInfo",
    "FunctionNotFoundError",
    "GraphExecutor",
    "GraphExecutorFactory",
    "JSONRuntimeModule",
    "LibraryLoadError",
    "LibraryModule",
    "LoaderNotFoundError",
    "MetadataModule",
    "Module",
    "ModuleProperty",
    "OpaqueModule",
    "OutOfMemoryError",
    "PackerError",
    "Reader",
    "SafetensorsModule",
    "Shader",
    "Tensor",
    "ToolchainError",
    "Writer",
    "blob",
    "deserialize_module_from_bytes",
    "dump_params",
    "empty",
    "export_module_to_base64",
    "from_dlpack",
    "get_global_func",
    "graph_executor",
    "import_module_from_base64",
    "list_global_func_names",
    "load",
    "load_from_bytes",
    "load_json",
    "load_param_dict",
    "load_param_dict_from_file",
    "parse_params",
    "register_func",
    "register_loader",
    "relax_vm",
    "save_json",
    "save_param_dict",
    "save_param_dict_to_file",
    "serialize_module_to_bytes",
    "system_lib",
    "tensor",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f".{_MODULES[name]}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def _needs_packer(name: str) -> Callable[..., Any]:
    """Return a function of packer: the one arrow back, behind the methods that compile.

    Raises
    ------
    PackerError
        packer cannot be imported; says what to install.
    """
    from importlib import import_module

    try:
        function: Callable[..., Any] = getattr(import_module("packer"), name)
    except ImportError as error:
        text = (
            f"{name} compiles, which needs the packages of packer: pip install dso-packer ({error})"
        )
        raise PackerError(text) from error
    return function
