"""Weights as files and blobs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import runtime

PackBlob = Callable[..., Path]
ONE = '{"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}'


def file_of(header: str | bytes, data: bytes = b"") -> bytes:
    """A file with this header, word for word."""
    text = header.encode() if isinstance(header, str) else header
    return len(text).to_bytes(8, "little") + text + data


def blob_of(*modules: runtime.Module) -> bytes:
    """The bytes of a tree whose root, without a payload, imports these modules."""
    root = runtime.MetadataModule()
    for module in modules:
        root.import_module(module)
    return runtime.serialize_module_to_bytes(root)


def address_of(data: Any) -> int:
    """Return the address of the bytes."""
    return int(np.frombuffer(data, "u1").ctypes.data)


TWO = (
    '{"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}, '
    '"b": {"dtype": "U8", "shape": [2], "data_offsets": [2, 4]}}'
)
