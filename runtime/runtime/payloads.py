"""The payloads of a blob, and the modules that loaders make of them."""

from __future__ import annotations

from .abi import IMPORT_TREE_KEY, LIB_KEY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ._core import Reader
    from .module import Module


class Payloads:
    """The payloads of a blob, which `reader` reads.

    `is_complete` is true if the end of a payload is known although its key has no loader.
    """

    def __init__(self, reader: Reader, is_complete: bool) -> None:
        self._reader = reader
        self._is_complete = is_complete
        self._has_loaded = False
        self._decode: Callable[[Reader, str], Module] | None = None  # imported when it is needed

    def load(self, key: str, start: int, reader: Reader) -> Module | None:
        """Load a payload of a type of Python, for `_core.parse_blob`.

        Return None for a type without a loader if the payload can be carried, else raise
        LoaderNotFoundError. Raise BlobFormatError if the loader raises an error of another kind.
        """
        from .error import LoaderNotFoundError, PackerError
        from .registry import find_loader, forget_offers

        if not self._has_loaded:
            forget_offers()
        self._has_loaded = True
        try:
            return find_loader(key)(reader)
        except LoaderNotFoundError as error:
            if self._is_complete:
                return None
            prefix = f"{reader.path}: " if reader.path else ""
            raise LoaderNotFoundError(
                f"{prefix}{reader.where} at {start:#x}: {error.message}",
                type_key=error.type_key,
                known=error.known,
                path=reader.path,
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
        length = 8 if self._reader.dialect == "tvm-ffi" else 0
        payload = self._reader.part(offset + 8 + len(key) + length, offset + nbytes)
        if not is_carried:
            if self._decode is None:
                from .registry import decode

                self._decode = decode
            return self._decode(payload, key)
        from .modules.opaque import OpaqueModule

        return OpaqueModule(key, payload.read_raw(payload.remaining))
