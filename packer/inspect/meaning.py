"""What the symbols of a packed library are for, in a few words."""

from __future__ import annotations

from runtime.abi import FACT_PREFIX, FUNCTION_PREFIX, LIBRARY_BIN, MAIN_NAME, MANIFEST, MODULE_BLOB

_MEANINGS = {
    MODULE_BLOB: "the blob: the imported modules",
    LIBRARY_BIN: "the blob: the imported modules, in dialect tvm-ffi",
    MANIFEST: "the manifest: where the blob's entries lie",
    MAIN_NAME: "the name of the entry",
    FUNCTION_PREFIX + "main": "the entry: what calling the library runs",
    # Pointer variables of the library (docs/format.md), by what a load writes into them.
    "__tvm_module_ctx": "context: the library's module",
    "__tvm_ffi__library_ctx": "context: the library's module",
    "__TVMFuncCall": "context: calls a packed function",
    "__TVMAPISetLastError": "context: sets the last error",
    "__TVMBackendGetFuncFromEnv": "context: looks up an imported function",
    "__TVMBackendAllocWorkspace": "context: allocates working memory",
    "__TVMBackendFreeWorkspace": "context: frees working memory",
    "__TVMBackendParallelLaunch": "context: runs a task on all threads",
    "__TVMBackendParallelBarrier": "context: waits for all threads of a task",
    "__TVMFFIFunctionCall": "context: calls a function object",
    "__TVMGetLastError": "context: the last error",
    "__TVMFFIErrorSetRaisedFromCStr": "context: raises an error",
    "__TVMFFIErrorSetRaisedFromCStrParts": "context: raises an error",
    "__TVMFFIEnvModLookupFromImports": "context: looks up an imported function",
    "__TVMFFIHandleInitOnce": "context: makes a handle once",
}
# The longer prefix stands before the shorter one.
_PREFIXES = {
    "__tvm_ffi__metadata_": "metadata of {}: its types as JSON",
    "__tvm_ffi__doc_": "doc of {}",
    FUNCTION_PREFIX: "wrapper of {}: what a call by name runs",
    FACT_PREFIX: "facts of {}: declaration, ABI, doc",
    "__init_": "takes the constants of {}",
}


def meaning_of(symbol: str) -> str:
    """Say what a symbol is for; empty for one that is not ours or TVM's."""
    if symbol in _MEANINGS:
        return _MEANINGS[symbol]
    for prefix, text in _PREFIXES.items():
        if symbol.startswith(prefix) and len(symbol) > len(prefix):
            return text.format(symbol[len(prefix) :])
    return ""
