"""The purpose of the symbols of a packed library, in a few words."""

from __future__ import annotations

from runtime import abi

from ..dialect import DATA_SYMBOLS

_OWN = {
    abi.MODULE_BLOB: "the blob: the imported modules",
    abi.LIBRARY_BIN: "the blob: the imported modules, in dialect tvm-ffi",
    abi.MANIFEST: "the manifest: the places of the blob's entries",
    abi.LIBRARY_METADATA: "the metadata of the library: version, license, ...",
    abi.CHECKSUMS: "the checksums: the exported symbols and their CRC-32",
    abi.CPU_LEVELS: "the CPU levels that the code was compiled for",
    abi.STRUCTS: "the layouts of structs and unions, whose members are read in place",
    abi.CONSTANTS: "the constants and variables of the code",
    abi.LEFT_OUT: "the functions that the export left out, with the reasons",
    abi.BUNDLE: "the room for the bundle with the file's signature",
    abi.SBOM: "the bill of materials, CycloneDX",
    abi.MAIN_NAME: "the name of the entry",
    abi.FUNCTION_PREFIX + "main": "the entry: what a call of the library runs",
    "__tvm_module_ctx": "context: the library's module",
    "__tvm_ffi__library_ctx": "context: the library's module",
    "get_c_metadata": "the metadata of an AOT model: inputs, outputs",
}
# Functions of a TVM runtime. A library leaves them undefined, or defines a pointer variable for
# each, named with two leading underscores, which a load fills (docs/format.md).
_RUNTIME = {
    "TVMFuncCall": "calls a packed function",
    "TVMAPISetLastError": "sets the last error",
    "TVMGetLastError": "the last error",
    "TVMBackendGetFuncFromEnv": "looks up an imported function",
    "TVMBackendAllocWorkspace": "allocates working memory",
    "TVMBackendFreeWorkspace": "frees working memory",
    "TVMBackendParallelLaunch": "runs a task on all threads",
    "TVMBackendParallelBarrier": "waits for all threads of a task",
    "TVMBackendRegisterSystemLibSymbol": "registers a symbol of a system library",
    "TVMFFIFunctionCall": "calls a function object",
    "TVMFFIErrorSetRaisedFromCStr": "raises an error",
    "TVMFFIErrorSetRaisedFromCStrParts": "raises an error",
    "TVMFFIEnvModLookupFromImports": "looks up an imported function",
    "TVMFFIEnvModRegisterSystemLibSymbol": "registers a symbol of a system library",
    "TVMFFIHandleInitOnce": "creates a handle once",
    "TVMFFIEnvSetStream": "sets the current stream of a device",
    "TVMFFIEnvGetStream": "the current stream of a device",
    "DSOFindWeight": "finds a weight",
}
# The longer prefix precedes the shorter one.
_PREFIXES = {
    "__tvm_ffi__metadata_": "metadata of {}: code that returns its types as JSON",
    "__tvm_ffi__doc_": "doc of {}: code that returns it",
    abi.FUNCTION_PREFIX: "wrapper of {}: what a call by name runs",
    abi.FACT_PREFIX: "facts of {}: declaration, ABI, doc",
    "__init_": "receives the constants of {}",
}
# A statically linked model defines these with its prefix.
_PREFIXED = (*DATA_SYMBOLS, *abi.CONTEXT_SYMBOLS)


def meaning_of(symbol: str) -> str:
    """Return the purpose of a symbol; empty if it is neither packer's nor TVM's."""
    if symbol in _OWN:
        return _OWN[symbol]
    if symbol in _RUNTIME:
        return f"of the runtime: {_RUNTIME[symbol]}"
    if symbol.startswith("__") and symbol[2:] in _RUNTIME:
        return f"context: {_RUNTIME[symbol[2:]]}"
    for prefix, text in _PREFIXES.items():
        if symbol.startswith(prefix) and len(symbol) > len(prefix):
            return text.format(symbol[len(prefix) :])
    for name in _PREFIXED:
        if symbol.endswith(name):
            return f"{meaning_of(name)}; of system library {symbol.removesuffix(name)!r}"
    return ""
