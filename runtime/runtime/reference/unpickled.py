"""From a pickle by reference to the module: the file at its path, or the one in the store.

The imports of digests and fetches wait until a file needs them: a worker starts sooner.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..error import LibraryLoadError, PackerError, VerifyError, shown
from ..load import _is_asked, load, load_from_bytes
from ..serial.mapped_file import map_file, reason_of
from . import resident
from .file_reference import Asked, Reference
from .file_state import State, is_digest, open_regular, state_of

if TYPE_CHECKING:
    from typing import Any

    from ..module import Module
    from .fetch import Fetch


def module_of(
    path: str, nbytes: int, sha256: str, state: tuple[Any, ...] | None, fetch: Fetch | None
) -> Module:
    """Make the module of a pickle by reference, or return the one that is in use.

    Raises as `load` does, also if the file cannot be fetched or has another digest.
    """
    if not is_digest(sha256) or not isinstance(nbytes, int) or not isinstance(path, str):
        found = f"path {shown(path)}, {shown(nbytes)} bytes, sha256 {shown(sha256)}"
        text = f"a pickle by reference: {found}, expected a path, a size and 64 hexadecimal digits"
        raise VerifyError(text, reason="digest")
    reference = Reference(path, nbytes, sha256, None if state is None else State(*state))
    module = _in_use(sha256) or _loaded(reference, fetch)
    module._reference = module._reference or Asked(reference, fetch)
    return module


def _in_use(sha256: str) -> Module | None:
    """Return the module of this digest; under a policy only one that the policy accepts."""
    module = resident.find(sha256)
    if module is None or not _is_asked(None):
        return module
    if module._opened_for is None:
        return None
    from ..trust.opening import verify_again

    verify_again(module._opened_for)
    return module


def _loaded(reference: Reference, fetch: Fetch | None) -> Module:
    """Load the file at the path, or else the one in the store."""
    try:
        path, found = reference.path, _verified_state(reference)
        is_fetched = False
    except (LibraryLoadError, VerifyError) as error:
        from .fetch import stored_file

        stored = stored_file(reference, fetch)
        if stored is None:
            raise _add(error, "give runtime.by_reference a source with fetch=") from error
        path, found, is_fetched = stored, state_of(os.stat(stored)), True
    is_as_bytes = is_fetched and _is_asked(None)
    module = load_from_bytes(map_file(path)[0]) if is_as_bytes else load(path)
    _confirm(module, reference, found)
    resident.keep(module, reference.sha256)
    return module


def _verified_state(reference: Reference) -> State:
    """Return the state of the file at the path, which has the digest; raises an error if not."""
    expected = f"expected {reference.nbytes} bytes with sha256 {reference.sha256}"
    path = reference.path
    try:
        descriptor = open_regular(path)
        try:
            state = state_of(os.fstat(descriptor))
            if state == reference.state:
                return state
            if state.nbytes == reference.nbytes:
                from .digest import digest_of

                found, state = digest_of(descriptor)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        text = f"{path}: {reason_of(error)}, {expected}"
        raise LibraryLoadError(text, path=path, reason="io") from error
    if state.nbytes != reference.nbytes:
        text = f"{path}: {state.nbytes} bytes, {expected}"
        raise VerifyError(text, path=path, reason="size")
    if found != reference.sha256:
        raise VerifyError(f"{path}: sha256 {found}, {expected}", path=path, reason="digest")
    return state


def _confirm(module: Module, reference: Reference, found: State) -> None:
    """Refuse a file that was put at the path after the other was verified."""
    opened = module._opened_for
    library = module._loaded_from
    is_same = (
        opened.file.sha256 == reference.sha256
        if opened is not None
        else library is not None and library.key == found.key
    )
    if not is_same:
        text = f"{reference.path}: was replaced while it was opened; try again"
        raise VerifyError(text, path=reference.path, reason="digest")


def _add(error: LibraryLoadError | VerifyError, hint: str) -> PackerError:
    """Return an error with a hint."""
    return type(error)(f"{error.message}; {hint}", path=error.path, reason=error.reason)
