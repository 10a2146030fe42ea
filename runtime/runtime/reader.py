"""Reader: the primitives of a blob, read from a view; bounds-checked, without a copy.

All are little-endian and not padded (TVM, dmlc::Stream); `stream.Writer` writes them:

    string, bytes   u64 length, then the raw bytes
    vector<T>       u64 count, then the elements
    map<K, V>       u64 count, then (key, value) pairs in the writer's order
"""

from __future__ import annotations

from struct import Struct

from ._core import check_payload, prove_copied
from .error import BlobFormatError, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

U64, U32, I64, I32 = Struct("<Q"), Struct("<I"), Struct("<q"), Struct("<i")

MAX_COUNT = (1 << 64) - 1


class Reader:
    """Read primitives from a view; each size is checked against the remaining bytes first.

    Parameters
    ----------
    data : buffer
        The bytes of a blob, without its nbytes header.
    path : str, optional
        The library that contains them, for messages.
    where : str
        Their name in messages: usually the blob's symbol.
    dialect : {"tvm", "tvm-ffi"}
        The format: some payloads differ.

    Attributes
    ----------
    offset : int
        Position in bytes from the start of the blob.
    last_entry : bool
        True while the payload of the last entry is read; `blob.parse` sets it.

    Notes
    -----
    Views that a Reader returns are slices of `data`: nothing is copied, and they keep the memory
    of `data` alive.
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
        """The number of remaining bytes."""
        return self._end - self.offset

    def error(self, what: str, offset: int | None = None) -> BlobFormatError:
        """Make an error that names the file and the offset.

        Parameters
        ----------
        what : str
            ``"<what>, expected <x>, found <y>"``.
        offset : int, optional
            The position of the error; the current one by default.
        """
        at = self.offset if offset is None else offset
        prefix = f"{self.path}: " if self.path else ""
        return BlobFormatError(
            f"{prefix}{self.where} at {at:#x}: {what}", path=self.path, offset=at
        )

    def read_raw(self, nbytes: int, what: str = "bytes") -> memoryview:
        """Read a read-only view of `nbytes` bytes; raise BlobFormatError if fewer remain."""
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
        """Read a u64. Raises BlobFormatError at the end of the data."""
        return self._read_number(U64)

    def read_u32(self) -> int:
        """Read a u32. Raises BlobFormatError at the end of the data."""
        return self._read_number(U32)

    def read_i64(self) -> int:
        """Read an i64. Raises BlobFormatError at the end of the data."""
        return self._read_number(I64)

    def read_i32(self) -> int:
        """Read an i32. Raises BlobFormatError at the end of the data."""
        return self._read_number(I32)

    def read_dtype(self) -> tuple[int, int, int]:
        """Read a DLDataType (code, bits, lanes). Raises BlobFormatError at the end of the data."""
        code, bits, low, high = self.read_raw(4, "a data type")
        return code, bits, low | high << 8

    def read_bytes(self) -> memoryview:
        """Read a length, then a view of that many bytes. Raises BlobFormatError if fewer remain."""
        return self.read_raw(self._read_length())

    def _read_length(self) -> int:
        start = self.offset
        nbytes = self.read_u64()
        if nbytes > self.remaining:
            raise self.error(
                f"a length of {nbytes} bytes, expected at most {self.remaining} left", start
            )
        return nbytes

    def read_data(self, nbytes: int, what: str) -> memoryview:
        """As `read_raw`, for the data of tensors; a `ProvingReader` verifies them later."""
        return self.read_raw(nbytes, what)

    def read_sized(self) -> Reader:
        """Read a length; return a reader of that many bytes, whose offsets continue this one's.

        Raises BlobFormatError if fewer remain.
        """
        nbytes = self._read_length()
        self.offset += nbytes
        return self.part(self.offset - nbytes, self.offset)

    def part(self, start: int, end: int) -> Reader:
        """Return a reader of a range of these bytes, with the same offsets."""
        part = object.__new__(type(self))
        part._view, part.path, part.where = self._view, self.path, self.where
        part.dialect, part.last_entry = self.dialect, True
        part.offset, part._end = start, end
        return part

    def accepted(self, type_key: str) -> Reader:
        """Read a payload that the core accepts; return a reader of it, or raise BlobFormatError."""
        place = (type_key, self.offset, self._end, self.last_entry)
        end = check_payload(self._view, self.dialect, self.path, self.where, *place)
        part = self.part(self.offset, end)
        self.offset = end
        return part

    def read_string(self) -> str:
        """Read a length, then UTF-8 text. Raises BlobFormatError if it is neither."""
        start = self.offset
        data = self.read_bytes()
        try:
            return str(data, "utf-8")
        except UnicodeDecodeError:
            raise self.error(f"text {shown(bytes(data[:81]))}, expected UTF-8", start) from None

    def read_name(self) -> str:
        r"""Read a length, then text; TVM permits any bytes.

        Bytes that are not UTF-8 become lone surrogates, as in names of files: ``b"\xff"`` is
        ``"\udcff"``, and `Writer.write_string` writes the byte again. Raises BlobFormatError at
        the end of the data.
        """
        return str(self.read_bytes(), "utf-8", "surrogateescape")

    def read_count(self, min_nbytes: int, most: int = MAX_COUNT) -> int:
        """Read a count of elements that take at least `min_nbytes` each.

        Raises BlobFormatError if it exceeds `most`, or if the remaining bytes cannot contain that
        many; nothing is allocated for them.
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
            Reads one element: usually a bound method of this reader.
        min_nbytes : int
            The least size of an element; it bounds the count before an element is read.
        most : int
            The greatest count of a valid vector.

        Raises
        ------
        BlobFormatError
            The vector exceeds the remaining bytes, or an element is malformed.
        """
        return [read_element() for _ in range(self.read_count(min_nbytes, most))]

    def read_u64_vector(self, most: int = MAX_COUNT) -> tuple[int, ...]:
        """Read a vector<u64> of at most `most`. Raises BlobFormatError when it does not fit."""
        count = self.read_count(8, most)
        return Struct(f"<{count}Q").unpack(self.read_raw(8 * count))

    def read_map(self, read_value: Callable[[], T], min_nbytes: int = 1) -> dict[str, T]:
        """Read a map whose keys are names; of equal keys the first is kept, as in TVM.

        Raises BlobFormatError if it exceeds the remaining bytes, or if an entry is malformed.
        """
        result: dict[str, T] = {}
        for _ in range(self.read_count(8 + min_nbytes)):
            key = self.read_name()
            result.setdefault(key, read_value())
        return result

    def ends_entry(self) -> bool:
        """Return True if a payload can end here: at the blob's end, or before another key.

        For a type key with two layouts, this decides which of them was written.
        """
        if self.last_entry or not self.remaining:
            return not self.remaining
        if self.remaining < 9:
            return False
        (nbytes,) = U64.unpack_from(self._view, self.offset)
        start = self.offset + 8
        return 0 < nbytes <= min(255, self._end - start) and is_type_key(
            bytes(self._view[start : start + nbytes])
        )


class ProvingReader(Reader):
    """A reader of a blob whose pieces are verified, and copied, before they are read.

    Its bytes are a view that `Library.data` returned, of a library with `pieces`.
    """

    __slots__ = ()

    def read_raw(self, nbytes: int, what: str = "bytes") -> memoryview:
        """Read a view of verified bytes."""
        return prove_copied(super().read_raw(nbytes, what))

    def read_data(self, nbytes: int, what: str) -> memoryview:
        """Read a view of bytes that are not verified yet: a Tensor of them verifies them."""
        return super().read_raw(nbytes, what)

    def _read_number(self, layout: Struct) -> int:
        prove_copied(self._view[self.offset : min(self.offset + layout.size, self._end)])
        return super()._read_number(layout)

    def ends_entry(self) -> bool:
        """Return True if a payload can end here."""
        prove_copied(self._view[self.offset : min(self.offset + 8 + 255, self._end)])
        return super().ends_entry()


def is_type_key(key: bytes) -> bool:
    """Return True for a valid key of an entry: 1 to 255 ASCII letters, digits, ``_ . -``."""
    return 0 < len(key) <= 255 and key.translate(None, b"_.-").isalnum() and key.isascii()
