"""Payloads and blobs: Python reads all that the core accepts, and writes it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import runtime
from runtime._core import parse_blob
from runtime.blob import Blob, dump, parse, parse_symbol
from runtime.registry import decode
from runtime.serial.stream import Reader, Writer, read_chunk

PATH = "a/b.so"
FORMATS = ("tvm", "tvm-ffi", "symbol", "params")


def described(
    key: str, payloads: Sequence[bytes], dialect: str = "tvm", is_last: bool = True
) -> list[str]:
    """Describe what each payload is, or why the core refuses it."""
    return [_described(key, payload, dialect, is_last) for payload in payloads]


def _described(key: str, payload: bytes, dialect: str, is_last: bool) -> str:
    reader = Reader(payload, where="payload", dialect=dialect)
    reader.last_entry = is_last
    try:
        part = reader.accepted(key)
    except runtime.PackerError as error:
        return f"{type(error).__name__}: {error}"
    module = decode(part, key)
    assert part.remaining == 0
    written = _written(module, dialect)
    if written != payload[: reader.offset]:  # of equal names the first is kept
        assert len(written) < reader.offset
        assert _written(decode(Reader(written, dialect=dialect), key), dialect) == written
    return f"{module.type_key} {reader.offset}{_describe_module(module)}"


def _written(module: runtime.Module, dialect: str) -> bytes:
    writer = Writer(dialect=dialect)
    module.save_to_binary(writer)
    return b"".join(map(read_chunk, writer.finish()))


def _describe_module(module: Any) -> str:
    parts = [f"|{name}" for name in module.function_names()]
    for name, tensor in module.own_weights.items():
        parts.append(f"|{name}={','.join(map(str, (*tensor.dtype_code, *tensor.shape)))}")
    return "".join(parts)


def refusal(what: str, data: bytes, manifest: bytes | None = None) -> str:
    """Return the error of an input, or "" for one that is read, and written again."""
    try:
        _accept(what, data, manifest)
    except runtime.PackerError as error:
        return f"{type(error).__name__}: {error}"
    if what == "params":
        assert runtime.save_param_dict(runtime.load_param_dict(data)) == data
    elif what == "symbol":
        _check(parse_symbol(memoryview(data), path=PATH, manifest_text=manifest), data[8:])
    else:
        _check(parse(data, what, path=PATH, manifest_text=manifest), data)
    return ""


def _accept(what: str, data: bytes, manifest: bytes | None) -> None:
    dialect = what if what == "tvm-ffi" else "tvm"
    reader = Reader(data, path=PATH, where=what, dialect=dialect)
    if what == "params":
        reader.accepted(what)
        return
    parse_blob(reader, manifest, None, what == "symbol")


def _check(blob: Blob, data: bytes) -> None:
    written = b"".join(map(read_chunk, dump(blob)))
    assert written == data or len(written) < len(data)
