"""Writer: collects the bytes of a blob as chunks, without a copy; `Reader` reads them.

All are little-endian and not padded (TVM, dmlc::Stream):

    string, bytes   u64 length, then the raw bytes
    vector<T>       u64 count, then the elements
    map<K, V>       u64 count, then (key, value) pairs in the writer's order
"""

from __future__ import annotations

import os
from struct import Struct

from .._core import Reader as Reader
from ..abi import HEADER_NBYTES
from ..error import ExportError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeVar

    T = TypeVar("T")

U64, U32, I64, I32 = Struct("<Q"), Struct("<I"), Struct("<q"), Struct("<i")

# A shorter buffer is copied into the running chunk, which costs less than a separate chunk.
_SMALL_NBYTES = 4096


class FileRange:
    """A chunk whose bytes are in a file; they are copied when the library is written.

    Parameters
    ----------
    path : str
        The file; its bytes must not change until the export has ended.
    offset, nbytes : int
        The range, in bytes.
    """

    __slots__ = ("nbytes", "offset", "path")

    def __init__(self, path: str, offset: int, nbytes: int) -> None:
        self.path = path
        self.offset = offset
        self.nbytes = nbytes

    def read(self) -> bytes:
        """Read the bytes of the range into memory.

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


class Writer:
    """Collect the bytes of a blob as chunks; buffers and file ranges are not copied.

    Attributes
    ----------
    chunks : list of bytes, memoryview or FileRange
        The written bytes; complete after `finish`.
    offset : int
        Position in bytes from the start of the blob.
    dialect : {"tvm", "tvm-ffi"}
        The format: some payloads differ.

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
        """Write bytes without a length."""
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
        self.write_raw(U64.pack(value))

    def write_u32(self, value: int) -> None:
        """Write a u32."""
        self.write_raw(U32.pack(value))

    def write_i64(self, value: int) -> None:
        """Write an i64."""
        self.write_raw(I64.pack(value))

    def write_i32(self, value: int) -> None:
        """Write an i32."""
        self.write_raw(I32.pack(value))

    def write_dtype(self, dtype: tuple[int, int, int]) -> None:
        """Write a DLDataType given as (code, bits, lanes)."""
        code, bits, lanes = dtype
        self.write_raw(bytes((code, bits, lanes & 0xFF, lanes >> 8)))

    def write_bytes(self, data: bytes | bytearray | memoryview) -> None:
        """Write a length, then the bytes."""
        self.write_u64(memoryview(data).nbytes)
        self.write_raw(data)

    def write_string(self, text: str) -> None:
        """Write a length, then the text as UTF-8; bytes that `Reader.read_name` escaped stay."""
        self.write_bytes(text.encode("utf-8", "surrogateescape"))

    def write_sized(self, write: Callable[[Writer], None]) -> None:
        """Write a length, then the bytes that `write` writes; its offsets continue this one's."""
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
        """Write a range of a file; its bytes are copied when the library is written."""
        self._append(FileRange(os.fspath(path), offset, nbytes))
        self.offset += nbytes

    def align(self, alignment: int) -> int:
        """Write zeros up to a multiple of `alignment` from the start of the blob's *symbol*.

        Returns
        -------
        int
            The number of zeros. (The symbol begins HEADER_NBYTES before the blob.)
        """
        padding = -(self.offset + HEADER_NBYTES) % alignment
        self.write_raw(bytes(padding))
        return padding
