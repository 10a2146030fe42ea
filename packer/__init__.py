"""Make one shared library of a tree of modules.

>>> import packer, runtime
>>> code = "long add(long a, long b) { return a + b; }"
>>> module = packer.CSourceModule(code, functions={"add": "long(long a, long b)"})
>>> path = packer.export_library(module, "add.so")
>>> runtime.load(path)["add"](40, 2)
42
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from runtime.error import (
    BlobFormatError,
    ExportError,
    LibraryLoadError,
    LoaderNotFoundError,
    OutOfMemoryError,
    PackerError,
    ToolchainError,
)

if TYPE_CHECKING:
    from .declare.declaration import FunctionDeclaration
    from .export import export_library
    from .fatbin import create_fatbin
    from .imports import pack_imports_to_c, pack_imports_to_llvm
    from .inspect import inspect_library
    from .link_library import link_library
    from .modules.c_source import CSourceModule
    from .modules.llvm import LLVMModule
    from .modules.static_library import StaticLibraryModule
    from .toolchain.create import create_object, create_shared
    from .toolchain.cross_toolchain import cross_compiler
    from .toolchain.formats import create_archive, tar

__all__ = [
    "BlobFormatError",
    "CSourceModule",
    "ExportError",
    "FunctionDeclaration",
    "LLVMModule",
    "LibraryLoadError",
    "LoaderNotFoundError",
    "OutOfMemoryError",
    "PackerError",
    "StaticLibraryModule",
    "ToolchainError",
    "create_archive",
    "create_fatbin",
    "create_object",
    "create_shared",
    "cross_compiler",
    "export_library",
    "inspect_library",
    "link_library",
    "pack_imports_to_c",
    "pack_imports_to_llvm",
    "tar",
]

# Imported on first use: --help and an export of C alone need neither llvmlite nor the rest.
_HOME = {
    "CSourceModule": "modules.c_source",
    "FunctionDeclaration": "declare.declaration",
    "LLVMModule": "modules.llvm",
    "StaticLibraryModule": "modules.static_library",
    "create_archive": "toolchain.formats",
    "create_fatbin": "fatbin",
    "create_object": "toolchain.create",
    "create_shared": "toolchain.create",
    "cross_compiler": "toolchain.cross_toolchain",
    "export_library": "export",
    "inspect_library": "inspect",
    "link_library": "link_library",
    "pack_imports_to_c": "imports",
    "pack_imports_to_llvm": "imports",
    "tar": "toolchain.formats",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value
