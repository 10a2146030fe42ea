"""The safetensors file: its header read and checked, its tensors viewed where they lie.

    u64 N                 at most 100,000,000
    N bytes of JSON       begins with "{"; spaces may follow it
        {"__metadata__": {str: str, ...},            may be left out
         name: {"dtype": ..., "shape": [...], "data_offsets": [begin, end]}, ...}
    the data area         offsets count from its start; the tensors cover it without a hole or
                          an overlap, and the file ends where it ends

The format has no length of its own: the largest end of a tensor tells it. As the reference reader
does, ours passes over further keys of a tensor. (huggingface/safetensors, README)
"""

from __future__ import annotations

import os
from _collections_abc import Mapping
from stat import S_ISREG

from ._core import weights_data_nbytes
from .error import BlobFormatError, ExportError
from .stream import Reader
from .tensors import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

    from .dtype import DTypeCode
    from .stream import Writer

    # begin, end, dtype, shape
    Layout = tuple[int, int, DTypeCode, tuple[int, ...]]
    FileState = tuple[int, int, int, int]

MAX_HEADER_NBYTES = 100_000_000
MAX_NDIM = 64
METADATA_KEY = "__metadata__"

# The format's data types as DLDataType. Those of less than a byte are packed: they can be carried
# and read as raw bytes; DLPack has no such array.
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


class SafetensorsFile:
    """A safetensors file.

    A load steps over it by a native scan of its header, and what it says is parsed and checked
    at the first use of its tensors: 10,000 of them take 30 ms, a load must not.
    """

    def __init__(self, header: memoryview, data: memoryview, reader: Reader, start: int) -> None:
        self._header = header
        self._data = data
        self._origin: tuple[str, FileState] | None = None
        self._parsed: tuple[SafetensorsTensors, dict[str, str]] | None = None
        self._reader, self._start = reader, start

    @property
    def tensors(self) -> SafetensorsTensors:
        """Its tensors by name, in the header's order. Raises BlobFormatError, see `check`."""
        return self.check()[0]

    @property
    def metadata(self) -> dict[str, str]:
        """What stands under ``__metadata__``. Raises BlobFormatError, see `check`."""
        return self.check()[1]

    def check(self) -> tuple[SafetensorsTensors, dict[str, str]]:
        """Parse the header, once, and check all that the format demands.

        Raises
        ------
        BlobFormatError
            The header breaks the format.
        """
        if self._parsed is None:
            layouts, metadata, nbytes = _read_header(self._reader, self._header, self._start)
            if nbytes != len(self._data):
                what = f"tensors of {nbytes} bytes, expected {len(self._data)}"
                raise self._reader.error(what, self._start)
            self._parsed = SafetensorsTensors(self._data, layouts), metadata
        return self._parsed

    @property
    def data_offset(self) -> int:
        """Where the data area begins, in bytes from the start of the file."""
        return 8 + len(self._header)

    @property
    def nbytes(self) -> int:
        """The whole file's size."""
        return self.data_offset + len(self._data)

    def write(self, writer: Writer) -> None:
        """Write the file verbatim; one that lies on disk as a range of it, never read.

        Raises
        ------
        ExportError
            The file on disk is not what it was when it was opened.
        """
        if self._origin is not None:
            path, state = self._origin
            if _state_of(path) != state:
                text = f"{path}: was changed after it was opened; open it again, and export then"
                raise ExportError(text, module="safetensors", path=path)
            writer.write_file(path, 0, self.nbytes)
            return
        writer.write_u64(len(self._header))
        writer.write_raw(self._header)
        writer.write_raw(self._data)


class SafetensorsTensors(Mapping[str, Tensor]):
    """The tensors of a file by name; each is made when it is first asked for."""

    def __init__(self, data: memoryview, layouts: dict[str, Layout]) -> None:
        self._data = data
        self._layouts = layouts
        self._made: dict[str, Tensor] = {}

    def __getitem__(self, name: str) -> Tensor:
        found = self._made.get(name)
        return self._made.setdefault(name, self._make(name)) if found is None else found

    def _make(self, name: str) -> Tensor:
        begin, end, dtype, shape = self._layouts[name]
        packed = dtype[1] < 8 and begin < end
        return Tensor(self._data[begin:end], shape, dtype, incomplete=packed)

    def __contains__(self, name: object) -> bool:
        return name in self._layouts

    def __iter__(self) -> Iterator[str]:
        return iter(self._layouts)

    def __len__(self) -> int:
        return len(self._layouts)


def open_safetensors(path: str | os.PathLike[str]) -> SafetensorsFile:
    """Map a file on disk, and check it; only its header is read.

    Raises
    ------
    ExportError
        It cannot be read, or is no safetensors file; names it.
    """
    name = os.fspath(path)
    try:
        view, state = _map(name)
        file = parse_safetensors(view, path=name)
    except BlobFormatError as error:
        raise ExportError(error.message, module="safetensors", path=name) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        text = f"{name}: cannot be read: {reason}"
        raise ExportError(text, module="safetensors", path=name) from error
    file._origin = os.path.abspath(name), state
    return file


def parse_safetensors(
    data: bytes | bytearray | memoryview, *, path: str | None = None
) -> SafetensorsFile:
    """Check the bytes of a whole file.

    Parameters
    ----------
    data : buffer
        Kept alive, not copied.
    path : str, optional
        The file, for messages.

    Raises
    ------
    BlobFormatError
        They break the format.
    """
    reader = Reader(data, path=path, where="safetensors")
    file = read_safetensors(reader)
    file.check()
    if reader.remaining:
        raise reader.error(f"{reader.remaining} bytes behind the last tensor, expected none")
    return file


def read_safetensors(reader: Reader) -> SafetensorsFile:
    """Read a file that lies among other bytes; it ends where its last tensor does.

    Raises
    ------
    BlobFormatError
        It breaks the format.
    """
    start = reader.offset
    nbytes = reader.read_u64()
    if nbytes > MAX_HEADER_NBYTES:
        what = f"a safetensors header of {nbytes} bytes, expected at most {MAX_HEADER_NBYTES}"
        raise reader.error(what, start)
    start = reader.offset
    header = reader.read_raw(nbytes, "a safetensors header")
    data_nbytes = weights_data_nbytes(header)
    if not 0 <= data_nbytes <= reader.remaining:  # not plain, or wrong: parsing says what
        data_nbytes = _read_header(reader, header, start)[2]
    return SafetensorsFile(header, reader.read_raw(data_nbytes, "tensor data"), reader, start)


def _read_header(
    reader: Reader, header: memoryview, start: int
) -> tuple[dict[str, Layout], dict[str, str], int]:
    fields = _parse_json(reader, header, start)
    try:
        metadata = _checked_metadata(fields.pop(METADATA_KEY, {}))
        _check_text([*fields, *metadata, *metadata.values()])
        layouts = {name: _layout(name, info) for name, info in fields.items()}
        return layouts, metadata, _check_coverage(layouts)
    except ValueError as error:
        raise reader.error(str(error), start) from None


def _map(path: str) -> tuple[memoryview, FileState]:
    # A pipe is opened without waiting for its writer, and then refused.
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(number)
        if not S_ISREG(found.st_mode):
            raise ValueError("not a regular file")
        if not found.st_size:
            return memoryview(b""), _state(found)
        from mmap import ACCESS_READ, mmap

        return memoryview(mmap(number, found.st_size, access=ACCESS_READ)), _state(found)
    finally:
        os.close(number)


def _state(found: os.stat_result) -> FileState:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _state_of(path: str) -> FileState | None:
    try:
        return _state(os.stat(path))
    except OSError:
        return None


def _parse_json(reader: Reader, header: memoryview, start: int) -> dict[str, Any]:
    from json import JSONDecodeError, loads

    try:
        text = str(header, "utf-8")
        if not text.startswith("{"):
            raise reader.error(f"header {_shown(text[:40])}, expected to begin with '{{'", start)
        fields = loads(text, object_pairs_hook=_distinct, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise reader.error("header is not UTF-8, expected JSON", start + error.start) from None
    except JSONDecodeError as error:
        at = start + len(text[: error.pos].encode())
        raise reader.error(
            f"header is no JSON: {error.msg[:1].lower()}{error.msg[1:]}", at
        ) from None
    except BlobFormatError:
        raise
    except (ValueError, RecursionError) as error:  # an int beyond sys.get_int_max_str_digits()
        raise reader.error(f"header is no JSON of this format: {error}", start) from None
    assert isinstance(fields, dict)  # it begins with a brace
    return fields


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in fields if keys.count(key) > 1)
        raise ValueError(f"key {_shown(twice)} stands there twice, expected once")
    return fields


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text}, expected a finite number")


def _checked_metadata(metadata: object) -> dict[str, str]:
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ValueError(f"{METADATA_KEY} {_shown(metadata)}, expected text by name")
    return metadata


def _check_text(texts: list[str]) -> None:
    """JSON can spell half a surrogate pair, which is no text."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        found = _shown(error.object[error.start : error.end])
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
    if not isinstance(offsets, list) or len(offsets) != 2 or not _are_sizes(offsets):
        raise _wrong(name, "data_offsets", offsets, "[begin, end]")
    begin, end = offsets
    nbytes, rest = divmod(_nbits(name, shape, dtype[1]), 8)
    if rest or begin + nbytes != end:
        expected = f"{nbytes} bytes of {info['dtype']} {shape}" if not rest else "whole bytes"
        raise _wrong(name, "data_offsets", offsets, expected)
    return begin, end, dtype, tuple(shape)


def _are_sizes(values: list[Any]) -> bool:
    # type() and not isinstance: true and false are no sizes.
    return all(type(value) is int and value >= 0 for value in values)


def _nbits(name: str, shape: list[int], bits: int) -> int:
    """The size of a tensor in bits; an extent of 0 does not hide that the others overflow."""
    nbits = bits
    for extent in shape:
        nbits *= extent or 1
    if nbits >= 1 << 63:
        raise _wrong(name, "shape", shape, "a size that can be addressed")
    return 0 if 0 in shape else nbits


def _wrong(name: str, key: str, found: object, expected: str) -> ValueError:
    return ValueError(f"tensor {_shown(name)}: {key}, expected {expected}, found {_shown(found)}")


def _check_coverage(layouts: dict[str, Layout]) -> int:
    """Whether the tensors lie one behind the other; return where the last one ends."""
    offset = 0
    for name, (begin, end, *_) in sorted(layouts.items(), key=lambda item: item[1][:2]):
        if begin != offset:
            what = "a hole" if begin > offset else "an overlap"
            raise _wrong(name, "data_offsets", [begin, end], f"{offset} ({what})")
        offset = end
    return offset


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
