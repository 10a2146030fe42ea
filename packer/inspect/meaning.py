"""What the symbols of a packed library are for, in a few words."""

from __future__ import annotations

from runtime.abi import (
    CHECKSUMS,
    CONTEXT_SYMBOLS,
    FACT_PREFIX,
    FUNCTION_PREFIX,
    LIBRARY_BIN,
    MAIN_NAME,
    MANIFEST,
    MODULE_BLOB,
)

_OWN = {
    MODULE_BLOB: "the blob: the imported modules",
    LIBRARY_BIN: "the blob: the imported modules, in dialect tvm-ffi",
    MANIFEST: "the manifest: where the blob's entries lie",
    CHECKSUMS: "the checksums: what the export wrote, and its CRC-32",
    MAIN_NAME: "the name of the entry",
    FUNCTION_PREFIX + "main": "the entry: what calling the library runs",
    "__tvm_module_ctx": "context: the library's module",
    "__tvm_ffi__library_ctx": "context: the library's module",
    "get_c_metadata": "what an AOT model says of itself: inputs, outputs",
}
# Functions of a TVM runtime. A library leaves them undefined, or has a pointer variable for each,
# two underscores before its name, which a load fills (docs/format.md).
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
    "TVMFFIHandleInitOnce": "makes a handle once",
}
# The longer prefix stands before the shorter one.
_PREFIXES = {
    "__tvm_ffi__metadata_": "metadata of {}: code that returns its types as JSON",
    "__tvm_ffi__doc_": "doc of {}: code that returns it",
    FUNCTION_PREFIX: "wrapper of {}: what a call by name runs",
    FACT_PREFIX: "facts of {}: declaration, ABI, doc",
    "__init_": "takes the constants of {}",
}
# A statically linked model has these with a prefix of its own before them.
_PREFIXED = (MODULE_BLOB, LIBRARY_BIN, MANIFEST, CHECKSUMS, MAIN_NAME, *CONTEXT_SYMBOLS)


def meaning_of(symbol: str) -> str:
    """Say what a symbol is for; empty for one that is not ours or TVM's."""
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
