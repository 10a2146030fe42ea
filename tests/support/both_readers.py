"""Python's readers of blobs and libdso's in one process: each describes what it accepts."""

from __future__ import annotations

import ctypes
import functools
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import runtime
from runtime.blob import Blob, Entry, parse, parse_symbol, structure_of
from runtime.registry import find_loader
from runtime.serial.stream import Reader

from ..fuzz.edited_inputs import Seed, edit_binary
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

    def read(
        self, what: str, data: bytes, manifest: bytes | None = None, *, key: str = "", last: int = 0
    ) -> str:
        """Describe an input, or the payload of a key, or the error."""
        sizes = [ctypes.c_size_t(len(data)), ctypes.c_size_t(len(manifest or b""))]
        given = (what.encode(), data, sizes[0], manifest, sizes[1], key.encode() or None, last)
        text = self._library.read_any(*given)
        assert text is not None, "a reference to the bytes remains"
        return _without_fix(text.decode("utf-8", "surrogateescape"))

    def fail_at(self, n: int) -> int:
        """Make the n-th allocation from now on fail; return what remained of the one before."""
        left: int = self._library.fail_at(ctypes.c_long(n))
        return left


def read_in_python(what: str, data: bytes, manifest: bytes | None = None) -> str:
    """The same with Python's reader."""
    return _outcome(lambda: _READ[what](data, manifest))


def is_refused(description: str) -> bool:
    """Return True for an error; one of an array that cannot be used follows its name."""
    return re.match(r"\w+Error: ", description) is not None


def _outcome(read: Callable[[], str]) -> str:
    try:
        return _without_fix(read())
    except runtime.PackerError as error:
        return _without_fix(_cut(f"{type(error).__name__}: {error}"))


def _cut(text: str) -> str:
    """C's functions take a text up to its first NUL."""
    data = text.encode("utf-8", "surrogateescape").partition(b"\0")[0]
    return data.decode("utf-8", "surrogateescape")


def _without_fix(text: str) -> str:
    """Without the fix: each reader says in its language how to register a loader, or read bytes."""
    return re.sub(r"(; known: |; read \.raw).*", "", text)


# ---- Payloads


@functools.cache
def _native() -> NativeReader:
    return NativeReader(Path(tempfile.mkdtemp(prefix="payloads-")))


def assert_equal(
    key: str, payloads: Sequence[bytes], dialect: str = "tvm", is_last: bool = True
) -> list[str]:
    """Compare what both read of each payload, and return what they say."""
    said = []
    for payload in payloads:
        said.append(_outcome(functools.partial(_read_payload, key, payload, dialect, is_last)))
        assert _native().read(dialect, payload, key=key, last=is_last) == said[-1], payload
    return said


def mutants(payload: bytes, count: int, seed: int) -> list[bytes]:
    """Copies with one to three edits."""
    random, start = Random(seed), Seed(payload)
    made = []
    for _ in range(count):
        edited = start
        for _ in range(random.randint(1, 3)):
            edited = edit_binary(random, edited, [start])
        made.append(edited.data)
    return made


def _read_payload(key: str, payload: bytes, dialect: str, is_last: bool) -> str:
    reader = Reader(payload, where="payload", dialect=dialect)
    reader.last_entry = is_last
    module = find_loader(key)(reader)
    return f"{module.type_key} {reader.offset}{_describe_module(module)}"


def _describe_module(module: Any) -> str:
    names = module.function_names()
    parts = [f"|{_cut(name)}:{_cut(_signature(module, name))}" for name in names]
    for name, tensor in module.own_weights.items():
        parts.append(f"|{_cut(name)}={','.join(map(str, (*tensor.dtype_code, *tensor.shape)))}")
    return "".join(parts)


def _signature(module: Any, name: str) -> str:
    if isinstance(module, runtime.DeviceModule):
        info = module.functions[name]
        tags = [t for t in info.launch_param_tags if not t.startswith("paramWriteAccess:")]
        types = [f"{type_} arg{i}" for i, type_ in enumerate(info.arg_types)]
        return f"void({', '.join(types + tags)})"
    signature: Callable[[str], str] | None = getattr(module, "signature", None)
    return signature(name).removeprefix(name) if signature else ""


# ---- Blobs, symbols and parameters


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
    return (
        text
        if entry.module is None
        else f"{text} is {entry.module.type_key}{_describe_module(entry.module)}"
    )


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
