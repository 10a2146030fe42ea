"""Load a packed library without dso-packer: ``python loader.py model.so [function int...]``.

Symbol __tvm_dev_mblob: u64 nbytes, u64 count, then count entries of a key (u64 length, text) and a
payload. The JSON of symbol __packer_manifest has the lengths of payloads. Key ``_lib`` means the
library itself; key ``_import_tree`` contains two vectors (u64 count, u64...).
"""

import ctypes
import io
import json
import os
import sys

from elftools.elf.elffile import ELFFile


def symbol(path, name):
    """Return a symbol's bytes: their number is read from the file, their address from dlopen."""
    with ELFFile.load_from_path(path) as elf:
        found = elf.get_section_by_name(".dynsym").get_symbol_by_name(name)
    array = ctypes.c_ubyte * (found[0]["st_size"] if found else 0)
    return bytes(array.in_dll(ctypes.CDLL(os.path.abspath(path)), name)) if found else b""


def process_module_blob(blob, ends):
    """Return (type_key, children) of each module; `ends` maps the start of an entry to its end."""
    stream, keys = io.BytesIO(blob), []

    def u64():
        return int.from_bytes(stream.read(8), "little")

    assert u64() == len(blob) - 8
    for start in (stream.tell() - 8 for _ in range(u64())):  # offsets count from after nbytes
        keys.append(stream.read(u64()).decode())
        if keys[-1] == "_import_tree":
            row_ptr, indices = ([u64() for _ in range(u64())] for _ in range(2))
        stream.seek(8 + ends[start])
    keys.remove("_import_tree")  # all other entries are modules; 0 is the root
    return [(key, indices[row_ptr[i] : row_ptr[i + 1]]) for i, key in enumerate(keys)]


def load_tree(path):
    """Return (type_key, children) of each module of a library; children are indices."""
    entries = json.loads(symbol(path, "__packer_manifest") or "{}").get("entries", [])
    ends = {entry["offset"]: entry["offset"] + entry["nbytes"] for entry in entries}
    return process_module_blob(symbol(path, "__tvm_dev_mblob"), ends) if ends else [("_lib", [])]


def call(path, name, *ints):
    """Call a safe-call function with ints: each TVMFFIAny is two words, type index 1 and value."""
    args, result = (ctypes.c_int64 * (2 * len(ints)))(), (ctypes.c_int64 * 2)()
    args[::2], args[1::2] = [1] * len(ints), ints
    if ctypes.CDLL(os.path.abspath(path))[f"__tvm_ffi_{name}"](None, args, len(ints), result):
        raise RuntimeError(f"{name} raised an error")
    return result[1]


if __name__ == "__main__":
    path, *function = sys.argv[1:] or sys.exit(__doc__)
    print(call(path, function[0], *map(int, function[1:])) if function else load_tree(path))
