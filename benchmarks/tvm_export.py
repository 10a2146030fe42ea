"""Export weights with real TVM, and print the seconds of export_library alone.

python benchmarks/tvm_export.py WEIGHTS LIBRARY llvm|c

A separate file, because TVMScript reads its own source. The weights are the array of a
const_loader, as TVM packs constants. The peak memory includes them before the export begins.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from pathlib import Path

import tvm
import tvm_ffi
from tvm.runtime import _ffi_api
from tvm.script import ir as I  # noqa: N812
from tvm.script import tirx as T  # noqa: N812


@I.ir_module
class Host:  # noqa: D101
    @T.prim_func
    def add_one(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "float32")):  # noqa: N805
        T.func_attr({"global_symbol": "add_one"})
        for i in range(8):
            b[i] = a[i] + T.float32(1)


def const_loader(data: bytes) -> tvm_ffi.Module:
    """A module with one array, made from its payload."""

    def u64(*values: int) -> bytes:
        return struct.pack(f"<{len(values)}Q", *values)

    name = u64(1) + b"w"
    array = u64(0xDD5E40F096B4A13F, 0) + struct.pack("<iii", 1, 0, 1) + bytes([1, 8])
    array += struct.pack("<Hqq", 1, len(data), len(data))
    payload = b"".join([u64(1), name, u64(1), array, data, u64(1), name, u64(1, 1), name])
    return tvm_ffi.get_global_func("ffi.Module.load_from_bytes.const_loader")(payload)


def pack_to_c(module: tvm_ffi.Module, system_lib: bool, prefix: str, workspace: str) -> str:
    """Pack as TVM does without LLVM."""
    path = os.path.join(workspace, "devc.c")
    Path(path).write_text(_ffi_api.ModulePackImportsToC(module, system_lib, prefix))
    return path


def main() -> None:
    """Export, flush, and print the time."""
    weights, output, way = sys.argv[1:]
    library = tvm.compile(Host, target="llvm").mod
    library.import_module(const_loader(Path(weights).read_bytes()))
    options = {"fpack_imports": pack_to_c} if way == "c" else {}
    start = time.perf_counter()
    library.export_library(output, **options)
    with open(output, "rb") as file:
        os.fsync(file.fileno())
    print(time.perf_counter() - start)


main()
