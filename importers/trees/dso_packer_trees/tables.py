"""The bytes of a weight of this distribution: a header with a checksum, then aligned tables."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from struct import Struct
from typing import Any

from numpy.typing import NDArray


def joined(
    header: Struct, kind: tuple[bytes, int], fields: Sequence[Any], tables: Sequence[NDArray[Any]]
) -> bytes:
    """Return the header, `kind` (magic and version), checksum, `fields` and offsets, and tables."""
    size = (header.size + 63) // 64 * 64
    offsets, parts = [], [b"\0" * (size - header.size)]
    for table in tables:
        offsets.append(size)
        data = table.tobytes()
        parts += [data, b"\0" * (-len(data) % 64)]
        size += (len(data) + 63) // 64 * 64
    body = b"".join(parts)
    return header.pack(*kind, zlib.crc32(body), *fields, *offsets) + body
