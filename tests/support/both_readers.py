"""Python's reader of blobs and libdso's in one process: each describes what it accepts."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import runtime
from runtime.blob import Blob, Entry, parse, parse_symbol, structure_of

from .libdso import compile_shared
from .paths import C_SOURCES

PATH = "a/b.so"
FORMATS = ("tvm", "tvm-ffi", "symbol", "params")


class NativeReader:
    """libdso's reader, compiled from the sources."""

    def __init__(self, folder: Path) -> None:
        source, output = C_SOURCES / "blob_reader.c", folder / "blob_reader.so"
        self._library = ctypes.CDLL(str(compile_shared(source, output, "-fvisibility=default")))
        self._library.read_any.restype = ctypes.c_char_p
        self._library.fail_at.restype = ctypes.c_long

    def read(self, what: str, data: bytes, manifest: bytes | None = None) -> str:
        """Describe an input, or the error."""
        sizes = [ctypes.c_size_t(len(data)), ctypes.c_size_t(len(manifest or b""))]
        text = self._library.read_any(what.encode(), data, sizes[0], manifest, sizes[1])
        assert text is not None, "a reference to the bytes remains"
        return _without_fix(text.decode("utf-8", "surrogateescape"))

    def fail_at(self, n: int) -> int:
        """Make the n-th allocation from now on fail; return what remained of the one before."""
        left: int = self._library.fail_at(ctypes.c_long(n))
        return left


def read_in_python(what: str, data: bytes, manifest: bytes | None = None) -> str:
    """The same with Python's reader."""
    try:
        return _without_fix(_READ[what](data, manifest))
    except runtime.PackerError as error:
        text = f"{type(error).__name__}: {error}".encode("utf-8", "surrogateescape").split(b"\0")[0]
        return _without_fix(text.decode("utf-8", "surrogateescape"))


def is_refused(description: str) -> bool:
    """Return True for an error; one of an array that cannot be used follows its name."""
    return re.match(r"\w+Error: ", description) is not None


def _without_fix(text: str) -> str:
    """Without the fix: each reader says in its language how to register a loader, or read bytes."""
    return re.sub(r"(; known: |; read \.raw).*", "", text)


def _read_blob(dialect: str) -> Callable[[bytes, bytes | None], str]:
    def read(data: bytes, manifest: bytes | None) -> str:
        where = {"path": PATH, "where": "blob"}
        return _describe(parse(data, dialect, manifest_text=manifest, **where))

    return read


def _read_symbol(data: bytes, manifest: bytes | None) -> str:
    view = memoryview(data)
    return _describe(parse_symbol(view, path=PATH, where="blob", manifest_text=manifest))


def _describe(blob: Blob) -> str:
    lines = [_describe_entry(entry) for entry in blob.entries]
    text = "".join(f"{line}\n" for line in lines) + f"{crc32(structure_of(blob)):08x}"
    if blob.import_tree_row_ptr is None:
        return text
    for numbers in blob.csr:
        text += f"\n{len(numbers)}:" + "".join(f" {number}" for number in numbers)
    for parent, children in enumerate(blob.children()):
        text += "".join(f"\n{parent} imports {child}" for child in children)
    return text


def _describe_entry(entry: Entry) -> str:
    text = f"{entry.key} {entry.offset} {entry.nbytes}"
    if entry.module is None:
        return text
    names = [name.partition("\0")[0] for name in entry.module.function_names()]
    return f"{text} is {entry.module.type_key}:" + "".join(f" {name}" for name in names)


def _read_params(data: bytes, _manifest: bytes | None) -> str:
    def describe(name: str, tensor: runtime.Tensor) -> str:
        extents = "".join(f"{extent} " for extent in tensor.shape)
        try:
            tensor.__dlpack__(max_version=(1, 0))
            state = "complete"
        except ValueError as error:
            state = f"{type(error).__name__}: {error}"
        return f"{name} {tensor.dtype_code} [{extents}] {state}\n"

    arrays: dict[str, Any] = runtime.load_param_dict(data)
    text = "".join(describe(name, tensor) for name, tensor in arrays.items())
    return text.partition("\0")[0]


_READ = {
    "tvm": _read_blob("tvm"),
    "tvm-ffi": _read_blob("tvm-ffi"),
    "symbol": _read_symbol,
    "params": _read_params,
}
