"""The payloads of a blob, and the modules that loaders make of them."""

from __future__ import annotations

from .abi import IMPORT_TREE_KEY, LIB_KEY
from .error import LoaderNotFoundError, PackerError
from .registry import decode, find_loader, forget_offers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ._core import Reader
    from .module import Module


def payload_loader(is_complete: bool) -> Callable[[str, int, Reader], Module | None]:
    """Make the function that loads payloads of Python's types, for one parse by the core.

    `is_complete` is true if the end of a payload is known although its key has no loader.
    """
    forget_offers()

    def load(key: str, start: int, reader: Reader) -> Module | None:
        """Return None for a type without a loader if the payload can be carried, else raise."""
        try:
            return find_loader(key)(reader)
        except LoaderNotFoundError as error:
            if is_complete:
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

    return load


def module_of(
    blob: Reader, key: str, offset: int, nbytes: int, made: Module | None, is_carried: bool
) -> Module | None:
    """Return the module of an entry; None for the library itself, and for the import tree."""
    if made is not None or key in (LIB_KEY, IMPORT_TREE_KEY):
        return made
    length = 8 if blob.dialect == "tvm-ffi" else 0
    payload = blob.part(offset + 8 + len(key) + length, offset + nbytes)
    if not is_carried:
        return decode(payload, key)
    from .modules.opaque import OpaqueModule

    return OpaqueModule(key, payload.read_raw(payload.remaining))
