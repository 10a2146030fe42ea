"""Names and numbers of the ABI that build time and load time share (docs/format.md)."""

from __future__ import annotations

# Of all distributions.
__version__ = "0.2.0"

# For ElfFile: check a file for the machine that it names (e_machine EM_NONE).
ANY_MACHINE = 0

# Symbols of a packed library.
MODULE_BLOB = "__tvm_dev_mblob"
LIBRARY_BIN = "__tvm_ffi__library_bin"
MANIFEST = "__packer_manifest"
CHECKSUMS = "__packer_checksums"
LIBRARY_METADATA = "__packer_library"
CPU_LEVELS = "__packer_cpu_levels"
LEFT_OUT = "__packer_left_out"
STRUCTS = "__packer_structs"
CONSTANTS = "__packer_constants"
BUNDLE = "__packer_signature"
SBOM = "__packer_sbom"
MAIN_NAME = "__tvm_main__"
FUNCTION_PREFIX = "__tvm_ffi_"
FACT_PREFIX = "__packer_fn_"

# Pointer variables of a library, which its loader sets.
CONTEXT_SYMBOLS = (
    *("__tvm_module_ctx", "__TVMFuncCall", "__TVMBackendGetFuncFromEnv"),
    *("__TVMAPISetLastError", "__TVMGetLastError"),
    *("__TVMBackendAllocWorkspace", "__TVMBackendFreeWorkspace"),
    *("__TVMBackendParallelLaunch", "__TVMBackendParallelBarrier"),
    *("__tvm_ffi__library_ctx", "__TVMFFIFunctionCall"),
    *("__TVMFFIErrorSetRaisedFromCStr", "__TVMFFIErrorSetRaisedFromCStrParts"),
    *("__TVMFFIEnvModLookupFromImports", "__TVMFFIHandleInitOnce", "__DSOFindWeight"),
)

# The symbol of a blob -> its dialect.
BLOB_SYMBOLS = {MODULE_BLOB: "tvm", LIBRARY_BIN: "tvm-ffi"}

# Keys of blob entries that are not type keys.
LIB_KEY = "_lib"
IMPORT_TREE_KEY = "_import_tree"

# The size in bytes of the nbytes header before each blob.
HEADER_NBYTES = 8

# ModuleProperty masks (TVM runtime/module.h).
BINARY_SERIALIZABLE = 1
RUNNABLE = 2
DSO_EXPORTABLE = 4

# DLDeviceType (DLPack).
DEVICE_CPU = 1

# The key in the metadata of a safetensors file of the record of a model (docs/format.md).
MODEL_RECORD = "dso.graph"
