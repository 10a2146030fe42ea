"""The dialects of blobs, which tell who can read the tree of a library."""

from __future__ import annotations

from typing import Literal

from runtime.abi import BLOB_SYMBOLS

Dialect = Literal["tvm", "tvm-ffi"]


def blob_symbol(dialect: Dialect) -> str:
    """The symbol that a blob of this dialect lies behind."""
    return next(symbol for symbol, own in BLOB_SYMBOLS.items() if own == dialect)
