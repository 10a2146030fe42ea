"""The byte stream of a blob: Reader (bounds-checked, zero-copy) and Writer (chunks, no copy).

Primitive encodings, all little-endian, nothing padded (TVM, dmlc::Stream):

    string, bytes   u64 length, then the raw bytes
    vector<T>       u64 count, then the elements
    map<K, V>       u64 count, then (key, value) pairs in the writer's order
"""

from __future__ import annotations

import os
from struct import Struct

from .abi import HEADER_NBYTES
from .error import BlobFormatError, ExportError, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeVar

    T = TypeVar("T")

_U64, _U32, _I64, _I32 = Struct("<Q"), Struct("<I"), Struct("<q"), Struct("<i")

MAX_COUNT = (1 << 64) - 1

# A buffer shorter than this is copied into the running chunk: a chunk of its own costs more.
_SMALL_NBYTES = 4096


class FileRange:
    """A chunk whose bytes lie in a file, and are copied from there when the library is written.

    Parameters
    ----------
    path : str
        The file; it must keep its bytes until the export has ended.
    offset, nbytes : int
        The range, in bytes.
    """

    __slots__ = ("nbytes", "offset", "path")

    def __init__(self, path: str, offset: int, nbytes: int) -> None:
        self.path = path
        self.offset = offset
        self.nbytes = nbytes

    def read(self) -> bytes:
        """Return the range's bytes, read into memory.

        Raises
        ------
        ExportError
            The file has become shorter.
        """
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            data = file.read(self.nbytes)
        if len(data) != self.nbytes:
            found = f"{len(data)} bytes at {self.offset:#x}, expected {self.nbytes}"
            raise ExportError(f"{self.path}: {found}; it changed while it was read", path=self.path)
        return data


Chunk = bytes | memoryview | FileRange


def read_chunk(chunk: Chunk) -> bytes | memoryview:
    """The bytes of a chunk. Raises ExportError as `FileRange.read` does."""
    return chunk.read() if isinstance(chunk, FileRange) else chunk


class Reader:
    """Read primitives from a view, each checked against what is left before it is used.

    Parameters
    ----------
    data : buffer
        The bytes of a blob, without its nbytes header.
    path : str, optional
        The library they lie in, for messages.
    where : str
        What they are, for messages: the blob's symbol, as a rule.
    dialect : {"tvm", "tvm-ffi"}
        The format, for payloads that differ.

    Attributes
    ----------
    offset : int
        Position in bytes from the start of the blob.
    last_entry : bool
        Whether the payload that is read belongs to the last entry; `blob.parse` keeps it.

    Notes
    -----
    Views that a Reader gives out are slices of `data`: nothing is copied, and they keep the
    memory of `data` alive.
    """

    __slots__ = ("_end", "_view", "dialect", "last_entry", "offset", "path", "where")

    def __init__(
        self,
        data: bytes | bytearray | memoryview,
        *,
        path: str | None = None,
        where: str = "blob",
        dialect: str = "tvm",
    ) -> None:
        self._view = memoryview(data).cast("B").toreadonly()
        self._end = len(self._view)
        self.last_entry = True
        self.offset = 0
        self.path = path
        self.where = where
        self.dialect = dialect

    @property
    def remaining(self) -> int:
        """The number of bytes that are left."""
        return self._end - self.offset

    def error(self, what: str, offset: int | None = None) -> BlobFormatError:
        """Make the error that says where in which file the bytes are wrong.

        Parameters
        ----------
        what : str
            ``"<what>, expected <x>, found <y>"``.
        offset : int, optional
            Where; the present position by default.

        Returns
        -------
        BlobFormatError
            For the caller to raise.
        """
        at = self.offset if offset is None else offset
        prefix = f"{self.path}: " if self.path else ""
        return BlobFormatError(
            f"{prefix}{self.where} at {at:#x}: {what}", path=self.path, offset=at
        )

    def read_raw(self, nbytes: int, what: str = "bytes") -> memoryview:
        """Read a read-only view of so many bytes.

        Raises
        ------
        BlobFormatError
            Fewer are left.
        """
        start = self.offset
        end = start + nbytes
        if end > self._end:
            raise self.error(f"{what} of {nbytes} bytes, expected at most {self.remaining} left")
        self.offset = end
        return self._view[start:end]

    def _read_number(self, layout: Struct) -> int:
        start = self.offset
        end = start + layout.size
        if end > self._end:
            raise self.error(
                f"an integer of {layout.size} bytes, expected at most {self.remaining} left"
            )
        self.offset = end
        value: int = layout.unpack_from(self._view, start)[0]
        return value

    def read_u64(self) -> int:
        """Read a u64. Raises BlobFormatError when it is cut short."""
        return self._read_number(_U64)

    def read_u32(self) -> int:
        """Read a u32. Raises BlobFormatError when it is cut short."""
        return self._read_number(_U32)

    def read_i64(self) -> int:
        """Read an i64. Raises BlobFormatError when it is cut short."""
        return self._read_number(_I64)

    def read_i32(self) -> int:
        """Read an i32. Raises BlobFormatError when it is cut short."""
        return self._read_number(_I32)

    def read_dtype(self) -> tuple[int, int, int]:
        """Read a DLDataType as (code, bits, lanes). Raises BlobFormatError when it is cut short."""
        code, bits, low, high = self.read_raw(4, "a data type")
        return code, bits, low | high << 8

    def read_bytes(self) -> memoryview:
        """Read a length-prefixed byte string as a read-only view.

        Raises
        ------
        BlobFormatError
            The length is more than what is left.
        """
        start = self.offset
        nbytes = self.read_u64()
        if nbytes > self.remaining:
            raise self.error(
                f"a length of {nbytes} bytes, expected at most {self.remaining} left", start
            )
        return self.read_raw(nbytes)

    def read_sized(self) -> Reader:
        """Read a length, and give a reader of so many bytes, which counts its offsets on.

        Raises
        ------
        BlobFormatError
            The length is more than what is left.
        """
        inner = Reader(self._view, path=self.path, where=self.where, dialect=self.dialect)
        nbytes = self.read_bytes().nbytes
        inner.offset, inner._end = self.offset - nbytes, self.offset
        return inner

    def read_string(self) -> str:
        """Read a length-prefixed UTF-8 string.

        Raises
        ------
        BlobFormatError
            The length is more than what is left, or the bytes are not UTF-8.
        """
        start = self.offset
        data = self.read_bytes()
        try:
            return str(data, "utf-8")
        except UnicodeDecodeError:
            raise self.error(f"text {shown(bytes(data[:81]))}, expected UTF-8", start) from None

    def read_count(self, min_nbytes: int, most: int = MAX_COUNT) -> int:
        """Read the count of elements that take at least `min_nbytes` each.

        Raises
        ------
        BlobFormatError
            There are more than `most`, or more than what is left can contain; nothing is
            allocated for them.
        """
        start = self.offset
        count = self.read_u64()
        if count > (limit := min(most, self.remaining // min_nbytes)):
            raise self.error(f"a count of {count} elements, expected at most {limit}", start)
        return count

    def read_vector(
        self, read_element: Callable[[], T], min_nbytes: int = 1, most: int = MAX_COUNT
    ) -> list[T]:
        """Read a vector: a count, then the elements.

        Parameters
        ----------
        read_element : callable
            Reads one element; a bound method of this reader, as a rule.
        min_nbytes : int
            The fewest bytes that an element takes: bounds the count before anything is read.
        most : int
            The most elements that a valid vector has.

        Raises
        ------
        BlobFormatError
            The vector does not fit into what is left, or an element is malformed.
        """
        return [read_element() for _ in range(self.read_count(min_nbytes, most))]

    def read_u64_vector(self, most: int = MAX_COUNT) -> tuple[int, ...]:
        """Read a vector<u64> of at most `most`. Raises BlobFormatError when it does not fit."""
        count = self.read_count(8, most)
        return Struct(f"<{count}Q").unpack(self.read_raw(8 * count))

    def read_map(self, read_value: Callable[[], T], min_nbytes: int = 1) -> dict[str, T]:
        """Read a map from strings; of duplicate keys the first is kept, as TVM does.

        Raises
        ------
        BlobFormatError
            The map does not fit into what is left, or an entry is malformed.
        """
        result: dict[str, T] = {}
        for _ in range(self.read_count(8 + min_nbytes)):
            key = self.read_string()
            result.setdefault(key, read_value())
        return result

    def ends_entry(self) -> bool:
        """Whether a payload may end here: at the blob's end, or right before another key.

        Type keys that stand for two layouts are told apart by this (formats.md section 2).
        """
        if self.last_entry or not self.remaining:
            return not self.remaining
        if self.remaining < 9:
            return False
        (nbytes,) = _U64.unpack_from(self._view, self.offset)
        start = self.offset + 8
        return 0 < nbytes <= min(255, self._end - start) and is_type_key(
            bytes(self._view[start : start + nbytes])
        )


class Writer:
    """Collect the bytes of a blob as chunks; buffers and file ranges are not copied.

    Attributes
    ----------
    chunks : list of bytes, memoryview or FileRange
        What was written; complete after `finish`.
    offset : int
        Position in bytes from the start of the blob.

    dialect : {"tvm", "tvm-ffi"}
        The format, for payloads that differ.

    Notes
    -----
    Buffers must keep their bytes until the export has ended.
    """

    __slots__ = ("_running", "chunks", "dialect", "offset")

    def __init__(self, *, dialect: str = "tvm") -> None:
        self.chunks: list[Chunk] = []
        self.dialect = dialect
        self.offset = 0
        self._running = bytearray()

    def write_raw(self, data: bytes | bytearray | memoryview) -> None:
        """Write bytes as they are, without a length."""
        view = memoryview(data).cast("B")
        self.offset += len(view)
        if len(view) < _SMALL_NBYTES:
            self._running += view
        else:
            self._append(view.toreadonly())

    def _append(self, chunk: Chunk) -> None:
        self.finish()
        self.chunks.append(chunk)

    def finish(self) -> list[Chunk]:
        """Close the running chunk, and return all of them."""
        if self._running:
            self.chunks.append(bytes(self._running))
            self._running.clear()
        return self.chunks

    def write_u64(self, value: int) -> None:
        """Write a u64."""
        self.write_raw(_U64.pack(value))

    def write_u32(self, value: int) -> None:
        """Write a u32."""
        self.write_raw(_U32.pack(value))

    def write_i64(self, value: int) -> None:
        """Write an i64."""
        self.write_raw(_I64.pack(value))

    def write_i32(self, value: int) -> None:
        """Write an i32."""
        self.write_raw(_I32.pack(value))

    def write_dtype(self, dtype: tuple[int, int, int]) -> None:
        """Write a DLDataType given as (code, bits, lanes)."""
        code, bits, lanes = dtype
        self.write_raw(bytes((code, bits, lanes & 0xFF, lanes >> 8)))

    def write_bytes(self, data: bytes | bytearray | memoryview) -> None:
        """Write a length, then the bytes."""
        self.write_u64(memoryview(data).nbytes)
        self.write_raw(data)

    def write_string(self, text: str) -> None:
        """Write a length, then the text as UTF-8."""
        self.write_bytes(text.encode())

    def write_sized(self, write: Callable[[Writer], None]) -> None:
        """Write a length, then what `write` writes, which counts its offsets on."""
        inner = Writer(dialect=self.dialect)
        start = inner.offset = self.offset + 8
        write(inner)
        self.write_u64(inner.offset - start)
        self.finish()
        self.chunks += inner.finish()
        self.offset = inner.offset

    def write_vector(self, values: Iterable[T], write_element: Callable[[T], None]) -> None:
        """Write a count, then each value through `write_element`."""
        elements = list(values)
        self.write_u64(len(elements))
        for element in elements:
            write_element(element)

    def write_map(self, mapping: Mapping[str, T], write_value: Callable[[T], None]) -> None:
        """Write a count, then (key, value) pairs in the mapping's own order."""
        self.write_u64(len(mapping))
        for key, value in mapping.items():
            self.write_string(key)
            write_value(value)

    def write_file(self, path: str | os.PathLike[str], offset: int, nbytes: int) -> None:
        """Write a range of a file; its bytes are copied only when the library is made."""
        self._append(FileRange(os.fspath(path), offset, nbytes))
        self.offset += nbytes

    def align(self, alignment: int) -> int:
        """Write zeros up to a multiple of `alignment` from the start of the blob's *symbol*.

        Returns
        -------
        int
            How many zeros were written. (The symbol begins HEADER_NBYTES before the blob.)
        """
        padding = -(self.offset + HEADER_NBYTES) % alignment
        self.write_raw(bytes(padding))
        return padding


def is_type_key(key: bytes) -> bool:
    """Whether the bytes may stand as an entry's key: 1 to 255 ASCII letters, digits, ``_ . -``."""
    return 0 < len(key) <= 255 and key.translate(None, b"_.-").isalnum() and key.isascii()
