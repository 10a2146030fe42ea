"""Dialects of blobs, and the names of the symbols that an export defines."""

from __future__ import annotations

from typing import Literal

from runtime import abi
from runtime.blob import check_dialect
from runtime.error import ExportError
from runtime.module import Module, preorder

Dialect = Literal["tvm", "tvm-ffi"]

# The function of each TVM with which a constructor registers a symbol of a system library.
_REGISTER = {
    "tvm": "TVMBackendRegisterSystemLibSymbol",
    "tvm-ffi": "TVMFFIEnvModRegisterSystemLibSymbol",
}


def unread_by_tvm(root: Module, dialect: Dialect) -> list[str]:
    """Return a note if TVM will load the library without the functions of a re-exported module."""
    loaded = [m for m in preorder(root) if m._carries_imports or m._loaded_from is not None]
    if dialect != "tvm" or not loaded:
        return []
    if carried := [module for module in loaded if module._carries_imports]:
        why = "TVM has no entry for a library within a library"
        what = "copy that file, or export the tree from its sources with --format tvm-ffi"
    else:
        why = "TVM since mid-2025 reads no tree of format 'tvm'"
        what = "add --format tvm-ffi"
    text = (
        f"TVM loads this library without the functions of {(carried or loaded)[0]!r}, since {why}"
    )
    return [f"{text}; if TVM must load it, {what} (in Python: format='tvm-ffi')"]


# Symbols of data that an export defines, with its prefix.
DATA_SYMBOLS = (
    *(*abi.BLOB_SYMBOLS, abi.MANIFEST, abi.LIBRARY_METADATA, abi.CHECKSUMS),
    *(abi.CPU_LEVELS, abi.LEFT_OUT, abi.STRUCTS, abi.CONSTANTS, abi.MAIN_NAME),
)
# Symbols in objects: a packed C function that gets the plain name of a C function, and that C
# function (`elf.plain_names`).
PACKED_PREFIX = "__packer_packed_"
RAW_PREFIX = "__packer_raw_"


class Naming:
    """The names of the symbols of one export.

    If `system_lib`, the function `register` of TVM is called by a constructor for each symbol, for
    static linking; then every name may begin with `prefix`, so that one program can contain several
    models. If `legacy_calls`, plain names are packed C functions, for TVM to 2025. The symbol
    `entry` contains the name of the entry function. Raises ExportError if `prefix` is given without
    `system_lib`, or if no C name can begin with it; ValueError if `dialect` is unknown.
    """

    def __init__(
        self,
        dialect: Dialect = "tvm",
        system_lib: bool = False,
        prefix: str = "",
        legacy_calls: bool = False,
    ) -> None:
        check_dialect(dialect)
        if prefix and not system_lib:
            text = f"c_symbol_prefix {prefix!r} without system_lib: only static linking needs one"
            raise ExportError(f"{text}; drop it, or set system_lib")
        if prefix and not (prefix.isascii() and prefix.isidentifier()):
            text = f"c_symbol_prefix {prefix!r}, expected the beginning of a C name, as 'net1_'"
            raise ExportError(text)
        self.dialect = dialect
        self.system_lib = system_lib
        self.register = _REGISTER[dialect] if system_lib else ""
        self.prefix = prefix
        self.legacy_calls = legacy_calls
        self.blob = prefix + next(name for name, own in abi.BLOB_SYMBOLS.items() if own == dialect)
        self.manifest = prefix + abi.MANIFEST
        self.metadata = prefix + abi.LIBRARY_METADATA
        self.sbom = prefix + abi.SBOM
        self.checksums = prefix + abi.CHECKSUMS
        self.cpu_levels = prefix + abi.CPU_LEVELS
        self.left_out = prefix + abi.LEFT_OUT
        self.structs = prefix + abi.STRUCTS
        self.constants = prefix + abi.CONSTANTS
        self.entry = prefix + abi.MAIN_NAME

    def fact(self, function: str) -> str:
        """Return the symbol of a function's facts."""
        return abi.FACT_PREFIX + self.prefix + function

    def wrapper(self, function: str) -> str:
        """Return the symbol of a function's wrapper, which callers look up."""
        return abi.FUNCTION_PREFIX + self.prefix + function

    def description(self, tag: str, function: str) -> str:
        """Return the symbol of a function's metadata or doc: tvm_ffi puts the prefix first here."""
        return self.prefix + abi.FUNCTION_PREFIX + tag + function

    def isolated(self, symbol: str, is_defined: bool) -> str:
        """Return a symbol's name in an object that is linked with other models.

        Defined symbols get the prefix, also symbols that C++ defines in every object, so that no
        model runs another model's copy. Of undefined symbols only context symbols get it.
        """
        start = len(abi.FUNCTION_PREFIX)
        own = (self.prefix + "__", abi.FUNCTION_PREFIX + self.prefix, abi.FACT_PREFIX + self.prefix)
        is_renamed = is_defined or symbol in abi.CONTEXT_SYMBOLS
        if not is_renamed or symbol.startswith(own):
            return symbol
        if symbol.startswith(abi.FUNCTION_PREFIX) and symbol[start:][:1] not in ("", "_"):
            return self.wrapper(symbol[start:])  # a function of other compilers
        return self.prefix + symbol
