"""The safetensors file: its tensors are viewed without a copy, and it is written unchanged.

    u64 N                 at most 100,000,000
    N bytes of JSON       the header
    the data area         offsets count from its start; the file ends where the last tensor ends

    {"__metadata__": {str: str, ...},            optional
     name: {"dtype": ..., "shape": [...], "data_offsets": [begin, end]}, ...}

The header begins with "{"; spaces may follow it. The tensors cover the data area without holes and
overlaps. Like the reference reader, ours ignores unknown keys of a tensor. The core checks it.
(huggingface/safetensors, README)
"""

from __future__ import annotations

import os
from _collections_abc import Mapping

from .._core import Reader, prove, weights_dtypes
from ..abi import MODEL_RECORD
from ..error import BlobFormatError, ExportError
from .tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..graph.model_record import ModelRecord
    from ..serial.stream import Writer
    from .dtype import DTypeCode

    FileState = tuple[int, int, int, int]

METADATA_KEY = "__metadata__"

# The format's data types as DLDataType.
DTYPES: dict[str, DTypeCode] = weights_dtypes()


class SafetensorsFile:
    """A safetensors file.

    A load only scans the header, for the length. The header is parsed and checked at the first use
    of its tensors.
    """

    def __init__(self, header: memoryview, data: memoryview, reader: Reader, start: int) -> None:
        self._header = header
        self._data = data
        self._origin: tuple[str, FileState] | None = None
        self._parsed: tuple[SafetensorsTensors, dict[str, str]] | None = None
        self._reader, self._start = reader, start
        self._record: ModelRecord | None = None

    @property
    def tensors(self) -> SafetensorsTensors:
        """Its tensors by name, in the header's order. Raises BlobFormatError, see `check`."""
        return self.check()[0]

    @property
    def metadata(self) -> dict[str, str]:
        """The value of ``__metadata__``. Raises BlobFormatError, see `check`."""
        return self.check()[1]

    @property
    def record(self) -> ModelRecord | None:
        """The record of a model in ``__metadata__``, parsed once. Raises BlobFormatError."""
        text = self.metadata.get(MODEL_RECORD)
        if text is not None and self._record is None:
            from ..graph.model_record import parse_record  # its imports take a megabyte

            try:
                self._record = parse_record(text)
            except ValueError as error:
                raise self._reader.error(f"{error}; export the model again", self._start) from error
        return self._record

    def check(self) -> tuple[SafetensorsTensors, dict[str, str]]:
        """Parse the header once, and check it; raise BlobFormatError if it breaks the format."""
        if self._parsed is None:
            layouts, metadata, nbytes = self._reader._weights_header(self._header, self._start)
            if nbytes != len(self._data):
                what = f"tensors of {nbytes} bytes, expected {len(self._data)}"
                raise self._reader.error(what, self._start)
            self._parsed = SafetensorsTensors(self._data, layouts), metadata
        return self._parsed

    @property
    def data_offset(self) -> int:
        """The offset of the data area, in bytes from the start of the file."""
        return 8 + len(self._header)

    @property
    def nbytes(self) -> int:
        """The whole file's size."""
        return self.data_offset + len(self._data)

    def write(self, writer: Writer) -> None:
        """Write the file unchanged; a file on disk as a range, without reading it.

        Raises ExportError if the file on disk was changed after it was opened.
        """
        if self._origin is not None:
            path, state = self._origin
            if _state_of(path) != state:
                text = f"{path}: was changed after it was opened; open it again before the export"
                raise ExportError(text, module="safetensors", path=path)
            writer.write_file(path, 0, self.nbytes)
            return
        writer.write_u64(len(self._header))
        writer.write_raw(self._header)
        writer.write_raw(prove(self._data))


class SafetensorsTensors(Mapping[str, Tensor]):
    """The tensors of a file by name; each is made on first use."""

    def __init__(
        self, data: memoryview, layouts: dict[str, tuple[int, int, DTypeCode, tuple[int, ...]]]
    ) -> None:
        self._data = data
        self._layouts = layouts
        self._made: dict[str, Tensor] = {}

    def __getitem__(self, name: str) -> Tensor:
        found = self._made.get(name)
        return self._made.setdefault(name, self._make(name)) if found is None else found

    def _make(self, name: str) -> Tensor:
        begin, end, dtype, shape = self._layouts[name]
        return Tensor(self._data[begin:end], shape, dtype)

    def __contains__(self, name: object) -> bool:
        return name in self._layouts

    def __iter__(self) -> Iterator[str]:
        return iter(self._layouts)

    def __len__(self) -> int:
        return len(self._layouts)


def open_safetensors(path: str | os.PathLike[str]) -> SafetensorsFile:
    """Map a file on disk, and check it; only its header is read.

    Raises ExportError, which names it, if it cannot be read or is not a safetensors file.
    """
    from ..serial.mapped_file import map_file, reason_of

    name = os.fspath(path)
    try:
        view, found = map_file(name)
        file = parse_safetensors(view, path=name)
    except BlobFormatError as error:
        raise ExportError(error.message, module="safetensors", path=name) from error
    except (OSError, ValueError) as error:
        text = f"{name}: cannot be read: {reason_of(error)}"
        raise ExportError(text, module="safetensors", path=name) from error
    file._origin = os.path.abspath(name), _state(found)
    return file


def parse_safetensors(
    data: bytes | bytearray | memoryview, *, path: str | None = None
) -> SafetensorsFile:
    """Check the bytes of a whole file; they are kept alive, not copied."""
    reader = Reader(data, path=path, where="safetensors")
    file = read_safetensors(reader.accepted("weights file"))
    file.check()
    if reader.remaining:
        raise reader.error(f"{reader.remaining} bytes after the last tensor, expected none")
    return file


def read_safetensors(reader: Reader) -> SafetensorsFile:
    """Read a file that the core accepted: the rest of the bytes."""
    nbytes = reader.read_u64()
    start, header = reader.offset, reader.read_raw(nbytes)
    return SafetensorsFile(header, reader.read_data(reader.remaining, "data"), reader, start)


def _state(found: os.stat_result) -> FileState:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _state_of(path: str) -> FileState | None:
    try:
        return _state(os.stat(path))
    except OSError:
        return None
