"""pack_imports_to_c and pack_imports_to_llvm: a tree's blob as separate host code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.blob import dump
from runtime.serial.serializer import serialize

from .dialect import Naming
from .embed.c import array_text
from .embed.llvm import constant_ir, registration_ir
from .files.chunks import with_header

if TYPE_CHECKING:
    from runtime.module import Module
    from runtime.serial.stream import Chunk

    from .modules.llvm import LLVMModule


def pack_imports_to_c(module: Module, system_lib: bool = False, c_symbol_prefix: str = "") -> str:
    """Write a tree's blob as C text (dev.cc), byte for byte as TVM does.

    Parameters
    ----------
    module : Module
        The root.
    system_lib : bool
        True if the text registers the blob at start-up, for static linking.
    c_symbol_prefix : str
        The beginning of the symbol's name; only with `system_lib`.

    Returns
    -------
    str
        Valid C and C++; with `system_lib` valid C++ only.

    Raises
    ------
    ExportError
        If a module cannot be exported, or if there is a prefix without `system_lib`.
    """
    naming, chunks = _packed(module, system_lib, c_symbol_prefix)
    return "".join(array_text(naming.blob, chunks, register=naming.register))


def pack_imports_to_llvm(
    module: Module, system_lib: bool = False, target: str | None = None, c_symbol_prefix: str = ""
) -> LLVMModule:
    """Make an LLVM module that contains a tree's blob (devc.o).

    Parameters
    ----------
    module : Module
        The root.
    system_lib : bool
        True if the module registers the blob at start-up, for static linking.
    target : str, optional
        The target triple; this machine's by default.
    c_symbol_prefix : str
        The beginning of the symbol's name; only with `system_lib`.

    Returns
    -------
    LLVMModule
        Save it with ``fmt="o"`` for the linker.

    Raises
    ------
    ExportError
        If a module cannot be exported, or if there is a prefix without `system_lib`.
    """
    from .embed.llvm_code import default_triple
    from .modules.llvm import LLVMModule

    naming, chunks = _packed(module, system_lib, c_symbol_prefix)
    triple = target or default_triple()
    ir = constant_ir(naming.blob, chunks, triple)
    if system_lib:
        ir += registration_ir([naming.blob], naming.register)
    return LLVMModule(ir, target=triple)


def _packed(module: Module, system_lib: bool, prefix: str) -> tuple[Naming, list[Chunk]]:
    naming = Naming("tvm", system_lib, prefix)
    return naming, with_header(dump(serialize(module, export_dso=True)))
