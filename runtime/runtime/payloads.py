"""The payloads of a blob, and the modules that loaders make of them."""

from __future__ import annotations

from .abi import IMPORT_TREE_KEY, LIB_KEY
from .error import LoaderNotFoundError, PackerError
from .registry import decode, find_loader, forget_offers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .module import Module
    from .reader import Reader


class Payloads:
    """The payloads of a blob.

    Parameters
    ----------
    body : memoryview
        The blob without its nbytes header.
    dialect : {"tvm", "tvm-ffi"}
        The format.
    path, where : str
        The library and the symbol, for messages.
    is_complete : bool
        True if the end of a payload is known although its type key has no loader.
    has_pieces : bool
        True if the bytes are pieces of a library, which are verified before they are read.
    """

    def __init__(
        self,
        body: memoryview,
        dialect: str,
        path: str | None,
        where: str,
        is_complete: bool,
        has_pieces: bool = False,
    ) -> None:
        self._body = body
        self._dialect = dialect
        self._path = path
        self._where = where
        self._is_complete = is_complete
        self._has_pieces = has_pieces
        self._whole: Reader | None = None
        forget_offers()

    def load(
        self, key: str, start: int, offset: int, end: int, is_last: bool
    ) -> tuple[Module, int] | None:
        """Load a payload of a type of Python, for `_core.parse_blob`; return module and end.

        Return None for a type without a loader if the payload can be carried, else raise
        LoaderNotFoundError. Raise BlobFormatError if the loader raises an error of another kind.
        """
        reader = self.reader(offset, end)
        reader.last_entry = is_last
        try:
            return find_loader(key)(reader), reader.offset
        except LoaderNotFoundError as error:
            if self._is_complete:
                return None
            prefix = f"{self._path}: " if self._path else ""
            raise LoaderNotFoundError(
                f"{prefix}{self._where} at {start:#x}: {error.message}",
                type_key=error.type_key,
                known=error.known,
                path=self._path,
            ) from None
        except PackerError:
            raise
        except Exception as error:
            what = f"the loader of {key!r} raised {type(error).__name__}: {error}"
            raise reader.error(what, start) from error

    def module(
        self, key: str, offset: int, nbytes: int, made: Module | None, is_carried: bool
    ) -> Module | None:
        """Return the module of an entry; None for the library itself, and for the import tree."""
        if made is not None or key in (LIB_KEY, IMPORT_TREE_KEY):
            return made
        length = 8 if self._dialect == "tvm-ffi" else 0
        payload = self.reader(offset + 8 + len(key) + length, offset + nbytes)
        if not is_carried:
            return decode(payload, key)
        from .modules.opaque import OpaqueModule

        return OpaqueModule(key, payload.read_raw(payload.remaining))

    def reader(self, start: int, end: int) -> Reader:
        """Return a reader of a range of the blob."""
        if self._whole is None:
            from .reader import ProvingReader, Reader

            kind = ProvingReader if self._has_pieces else Reader
            path, where = self._path, self._where
            self._whole = kind(self._body, path=path, where=where, dialect=self._dialect)
        return self._whole.part(start, end)
