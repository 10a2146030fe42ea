"""Load a packed library without dso-packer: ``python loader.py model.so [function int...]``.

Behind the symbol __tvm_dev_mblob lie u64 nbytes and the blob: u64 count, then count entries, each
a key and a payload. ``_lib`` has no payload, it stands for the library itself. ``_import_tree`` is
two vectors: module 0 is the root, module i imports indices[row_ptr[i]:row_ptr[i + 1]]. Any other
key is a type key; its payload has no length, its reader must know the fields. The JSON behind
__packer_manifest helps with the rest: it tells where each entry begins, and how long it is.
"""

import ctypes
import io
import json
import os
import sys

from elftools.elf.elffile import ELFFile

Any = type("TVMFFIAny", (ctypes.Structure,), {"_fields_": [("type_index", ctypes.c_int64), ("value", ctypes.c_int64)]})


def read_symbol(path, name):
    """Return the bytes behind a symbol: pyelftools finds it, ctypes says where dlopen put it."""
    with open(path, "rb") as file:
        found = ELFFile(file).get_section_by_name(".dynsym").get_symbol_by_name(name)
    array = ctypes.c_ubyte * (found[0]["st_size"] if found else 0)
    return bytes(array.in_dll(ctypes.CDLL(os.path.abspath(path)), name)) if found else b""


def process_module_blob(data, ends):
    """Return (type_key, children) of each module; `ends` is {start: end} of the entries."""
    stream = io.BytesIO(data)

    def u64():
        return int.from_bytes(stream.read(8), "little")

    def string():
        return stream.read(u64())

    def vector(read):
        return [read() for _ in range(u64())]

    def function_info():
        return string(), string(), vector(dtype), vector(string)

    assert u64() == len(data) - 8
    keys, row_ptr, indices = [], [0, 0], []
    for _ in range(u64()):
        start, key = stream.tell() - 8, string().decode()
        if key == "_import_tree":
            row_ptr, indices = vector(u64), vector(u64)
            continue
        if key in ("cuda", "opencl"):
            fmt, functions, code = string(), vector(function_info), string()
        elif key != "_lib":
            stream.seek(ends[start] + 8)
        keys.append(key)
    rows = [indices[a:b] for a, b in zip(row_ptr, row_ptr[1:])]
    return list(zip(keys or ["_lib"], rows))
