"""The header of a safetensors file: JSON, checked against every rule of the format.

    {"__metadata__": {str: str, ...},            optional
     name: {"dtype": ..., "shape": [...], "data_offsets": [begin, end]}, ...}

It begins with "{"; spaces may follow it. Offsets count from the start of the data area; the tensors
cover that area without holes and overlaps. Like the reference reader, ours ignores unknown keys of
a tensor. (huggingface/safetensors, README)
"""

from __future__ import annotations

from json import JSONDecodeError

from ..error import BlobFormatError, shown
from ..serial.strict_json import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..serial.stream import Reader
    from .dtype import DTypeCode

    # begin, end, dtype, shape
    Layout = tuple[int, int, DTypeCode, tuple[int, ...]]

MAX_NDIM = 64
METADATA_KEY = "__metadata__"

# The format's data types as DLDataType. Both formats pack elements of less than a byte.
DTYPES: dict[str, DTypeCode] = {
    "BOOL": (6, 8, 1),
    "F4": (17, 4, 1),
    "F6_E2M3": (15, 6, 1),
    "F6_E3M2": (16, 6, 1),
    "U8": (1, 8, 1),
    "I8": (0, 8, 1),
    "F8_E5M2": (12, 8, 1),
    "F8_E4M3": (10, 8, 1),
    "F8_E8M0": (14, 8, 1),
    "F8_E4M3FNUZ": (11, 8, 1),
    "F8_E5M2FNUZ": (13, 8, 1),
    "I16": (0, 16, 1),
    "U16": (1, 16, 1),
    "F16": (2, 16, 1),
    "BF16": (4, 16, 1),
    "I32": (0, 32, 1),
    "U32": (1, 32, 1),
    "F32": (2, 32, 1),
    "C64": (5, 64, 1),
    "F64": (2, 64, 1),
    "I64": (0, 64, 1),
    "U64": (1, 64, 1),
}


def read_header(
    reader: Reader, header: memoryview, start: int
) -> tuple[dict[str, Layout], dict[str, str], int]:
    """Parse and check a header at offset `start`; the reader makes the errors.

    Returns the place of each tensor in the data area, the value of ``__metadata__``, and the size
    of the data area.
    """
    fields = _parse_json(reader, header, start)
    try:
        metadata = _checked_metadata(fields.pop(METADATA_KEY, {}))
        _check_text([*fields, *metadata, *metadata.values()])
        layouts = {name: _layout(name, info) for name, info in fields.items()}
        return layouts, metadata, _check_coverage(layouts)
    except ValueError as error:
        raise reader.error(str(error), start) from None


def _parse_json(reader: Reader, header: memoryview, start: int) -> dict[str, Any]:
    try:
        text = str(header, "utf-8")
        if not text.startswith("{"):
            raise reader.error(f"header {shown(text[:40])}, expected to begin with '{{'", start)
        fields = decode(text)
    except UnicodeDecodeError as error:
        raise reader.error("header is not UTF-8, expected JSON", start + error.start) from None
    except JSONDecodeError as error:
        at = start + len(text[: error.pos].encode())
        raise reader.error(
            f"header is not JSON: {error.msg[:1].lower()}{error.msg[1:]}", at
        ) from None
    except BlobFormatError:
        raise
    except ValueError as error:
        raise reader.error(f"header is not JSON of this format: {error}", start) from None
    assert isinstance(fields, dict)  # it begins with a brace
    return fields


def _checked_metadata(metadata: object) -> dict[str, str]:
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ValueError(f"{METADATA_KEY} {shown(metadata)}, expected text by name")
    return metadata


def _check_text(texts: list[str]) -> None:
    """Refuse half a surrogate pair, which JSON can encode."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        found = shown(error.object[error.start : error.end])
        raise ValueError(f"a lone surrogate {found} in a name, expected Unicode") from None


def _layout(name: str, info: object) -> Layout:
    if not isinstance(info, dict):
        raise _wrong(name, "entry", info, "an object")
    dtype = DTYPES.get(found) if isinstance(found := info.get("dtype"), str) else None
    if dtype is None:
        raise _wrong(name, "dtype", found, f"one of {', '.join(DTYPES)}")
    shape = info.get("shape")
    if not isinstance(shape, list) or len(shape) > MAX_NDIM or not _are_sizes(shape):
        raise _wrong(name, "shape", shape, f"at most {MAX_NDIM} sizes of at least 0")
    offsets = info.get("data_offsets")
    if not isinstance(offsets, list) or len(offsets) != 2 or not _are_offsets(offsets):
        raise _wrong(name, "data_offsets", offsets, "[begin, end]")
    begin, end = offsets
    nbytes, rest = divmod(_nbits(name, shape, dtype[1]), 8)
    if rest or begin + nbytes != end:
        expected = f"{nbytes} bytes of {info['dtype']} {shape}" if not rest else "whole bytes"
        raise _wrong(name, "data_offsets", offsets, expected)
    return begin, end, dtype, tuple(shape)


def _are_sizes(values: list[Any]) -> bool:
    # type() instead of isinstance: true and false are not sizes.
    return all(type(value) is int and value >= 0 for value in values)


def _are_offsets(values: list[Any]) -> bool:
    return _are_sizes(values) and max(values) < 1 << 63


def _nbits(name: str, shape: list[int], bits: int) -> int:
    """The size of a tensor in bits; the other extents are checked even if one extent is 0."""
    nbits = bits
    for extent in shape:
        nbits *= extent or 1
    if nbits >= 1 << 63:
        raise _wrong(name, "shape", shape, "a size that can be addressed")
    return 0 if 0 in shape else nbits


def _wrong(name: str, key: str, found: object, expected: str) -> ValueError:
    return ValueError(f"tensor {shown(name)}: {key}, expected {expected}, found {shown(found)}")


def _check_coverage(layouts: dict[str, Layout]) -> int:
    """Check that the tensors cover the data area; return the offset at which the last one ends."""
    offset = 0
    for name, (begin, end, *_) in sorted(layouts.items(), key=lambda item: item[1][:2]):
        if begin != offset:
            what = "a hole" if begin > offset else "an overlap"
            raise _wrong(name, "data_offsets", [begin, end], f"{offset} ({what})")
        offset = end
    return offset
