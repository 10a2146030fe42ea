"""encrypted: another payload, with its type key, encrypted by AES-256-GCM (TVM has no such type).

bytes envelope    a header and the encrypted bytes (runtime/trust/encryption/envelope.py)

In clear these are a u64 with the number of the bytes that follow, a string, the type key, and its
payload; so offsets in it count as in a blob. Parsing a blob does not decrypt it; building the tree
does, with the key of the load. Its imports are in the import tree.
"""

from __future__ import annotations

from contextlib import contextmanager

from .._core import Reader
from ..abi import BINARY_SERIALIZABLE, HEADER_NBYTES, IMPORT_TREE_KEY, LIB_KEY
from ..error import EncryptionError, ExportError
from ..module import Module
from ..registry import find_loader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ..serial.stream import Writer
    from ..trust.encryption.envelope import Header

TYPE_KEY = "encrypted"
_HINT = "; an encrypted module was opened without its key: give key=..."


class EncryptedModule(Module):
    """A module whose payload is encrypted, and is not decrypted yet.

    `envelope` is the header and the encrypted bytes, which are kept alive; `place` is the offset of
    the payload in its blob.
    """

    type_key = TYPE_KEY
    property_mask = BINARY_SERIALIZABLE

    def __init__(
        self, envelope: memoryview, place: int, dialect: str, path: str | None, where: str
    ) -> None:
        self.envelope = envelope
        self.place = place
        self._dialect = dialect
        self._path = path
        prefix = f"{path}: " if path else ""
        self._where = f"{prefix}{where} at {place:#x}"

    @property
    def header(self) -> Header | None:
        """The fields of the header, which are not verified without the key; None if it is cut."""
        from ..trust.encryption.envelope import read_header

        return read_header(self.envelope)

    def save_to_binary(self, writer: Writer) -> None:
        """Write the payload; ExportError at another place, where it could not be decrypted."""
        if writer.offset != self.place:
            text = (
                f"{self._where}: encrypted for this place, so it cannot be written at "
                f"{writer.offset:#x}; copy the file as it is, or load it with its key, and encrypt "
                f"the module again"
            )
            raise ExportError(text, module=self.type_key, path=self._path)
        writer.write_bytes(self.envelope)

    def tree_node(self) -> Module:
        """Decrypt the payload with the key of the load, and make its module.

        Raises EncryptionError, or BlobFormatError if what was encrypted is malformed.
        """
        from ..trust.encryption.use import decrypt

        with _naming(self._path):
            data = decrypt(self.envelope, self.place, self._path or "", self._where)
        module = self._parse(data)
        module._stored_as = self
        return module

    def check_key(self) -> None:
        """Refuse a load with another key; raises EncryptionError."""
        from ..trust.encryption.use import check_key

        with _naming(self._path):
            check_key(self.envelope, self.place, self._where)

    def _parse(self, data: memoryview) -> Module:
        where = f"{self._where}, decrypted"
        header = Reader(data, where=where)
        if (found := header.read_u64()) != header.remaining:
            raise header.error(f"nbytes is {found}, expected {header.remaining}", 0)
        reader = Reader(data[HEADER_NBYTES:], where=where, dialect=self._dialect)
        key = reader.read_string()
        if key in (LIB_KEY, IMPORT_TREE_KEY, TYPE_KEY, "shared_library"):
            raise reader.error(f"type key {key!r}, expected one that can be encrypted", 0)
        module = find_loader(key)(reader)
        if reader.remaining:
            raise reader.error(f"{reader.remaining} bytes after the payload, expected none")
        return module

    def get_function(self, name: str, query_imports: bool = False) -> Callable[..., Any]:
        """Look up `name` in the imports if `query_imports`; EncryptionError if no import has it."""
        function = self._find(name) if query_imports else None
        if function is None:
            header = self.header
            key_id = header.key_id.hex() if header is not None else ""
            text = (
                f"{self._where}: function {name!r}: this module is encrypted with key {key_id}, "
                f"and was opened without it: runtime.load(path, key=...)"
            )
            raise EncryptionError(text, reason="no-key", path=self._path, key_id=key_id)
        return function

    def how_to_declare(self, name: str) -> str:
        """Say that the module may have a function, if it is decrypted."""
        del name
        return _HINT

    @property
    def why_no_weights(self) -> str:
        """It may have some, if it is decrypted."""
        return _HINT


@contextmanager
def _naming(path: str | None) -> Iterator[None]:
    """Give the path of the library to an error."""
    try:
        yield
    except EncryptionError as error:
        error.path = error.path or path
        raise


def decode(reader: Reader, type_key: str) -> EncryptedModule:
    """Read the payload that `EncryptedModule.save_to_binary` writes."""
    del type_key
    place = reader.offset
    return EncryptedModule(reader.read_bytes(), place, reader.dialect, reader.path, reader.where)
