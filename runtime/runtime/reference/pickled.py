"""Modules that are pickled by reference: which ones, and what their pickles contain."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..error import ExportError, shown
from ..load import _roots
from ..module import Module, preorder
from ..serial.mapped_file import reason_of
from ..serial.serializer import is_as_loaded
from .digest import digest_of
from .fetch import check_fetch
from .file_reference import Asked, Reference
from .file_state import open_regular
from .resident import remember

if TYPE_CHECKING:
    from typing import Any

    from .fetch import Fetch

_policy: tuple[Fetch | None] | None = None


def by_reference(module: Module, *, fetch: Fetch | None = None) -> Module:
    """Pickle a module, and its functions, as the path and digest of its file from now on.

    Parameters
    ----------
    module : Module
        The root of a loaded library, unchanged since the load.
    fetch : str or callable, optional
        The source of the file for a machine where it is missing or differs: a URL, in which
        ``{sha256}`` and ``{name}`` are replaced, or a function that takes a `Reference` and returns
        a binary file or the bytes. A path, http and https need no package, other URLs need fsspec.
        It is part of the pickle.

    Returns
    -------
    Module
        The same module.

    Raises
    ------
    ExportError
        The module is not the root of a loaded library, was changed, or its file was replaced.
    TypeError
        `fetch` is neither text nor callable.

    Notes
    -----
    The file is read once, for its SHA-256; an entry in the cache keeps that for later processes.
    A process that unpickles the module maps the file at the path, if it is this file, or another
    one of the same digest. Otherwise it uses the copy in ``$DSO_CACHE``, by default
    ``$XDG_CACHE_HOME/dso-packer/libraries``; one process of a machine fetches it, others wait. The
    last 8 modules stay loaded there. Libraries that it needs are not part of a reference.

    Unpickling runs the library's code, and calls `fetch`: use trusted pickles only. Under a trust
    policy the file must meet the rule of its folder, a fetched one the rule for bytes.

    Examples
    --------
    >>> model = runtime.by_reference(runtime.load("/models/model.so"))  # doctest: +SKIP
    >>> len(pickle.dumps(model))  # doctest: +SKIP
    284
    """
    if not isinstance(module, Module):
        raise TypeError(f"by_reference takes a runtime.Module, found {shown(module)}")
    check_fetch(fetch)
    module._reference = Asked(_reference_to(module), fetch)
    remember(module, module._reference.reference.sha256)
    return module


def set_pickle_policy(policy: str | None, *, fetch: Fetch | None = None) -> None:
    """Choose how every library of this process is pickled.

    Parameters
    ----------
    policy : "reference", "bytes" or None
        ``"reference"`` is `by_reference` for every library that was loaded from a file; other
        modules are pickled as bytes. None is ``"bytes"``, the default.
    fetch : str or callable, optional
        As for `by_reference`: ``"https://models.example.com/{sha256}"``. Modules that
        `by_reference` was called with keep theirs.

    Raises
    ------
    ValueError
        There is no such policy, or `fetch` is given for bytes.
    TypeError
        `fetch` is neither text nor callable.
    """
    global _policy
    if policy not in ("reference", "bytes", None):
        text = f'policy: expected "reference", "bytes" or None, found {shown(policy)}'
        raise ValueError(text)
    if policy != "reference" and fetch is not None:
        raise ValueError(f"fetch {shown(fetch)}, expected none: pickles as bytes need no source")
    check_fetch(fetch)
    _policy = (fetch,) if policy == "reference" else None


def pickled_reference(module: Module) -> tuple[Any, ...] | None:
    """Return what the pickle of a module contains; None for one that is pickled as bytes.

    Raises ExportError if the module was changed after the load.
    """
    asked = _asked_of(module)
    if asked is None:
        return None
    if not is_as_loaded(module):
        raise _no_reference(module, "had its imports changed after it was loaded")
    path, nbytes, sha256, state = asked.reference
    return path, nbytes, sha256, None if state is None else tuple(state), asked.fetch


def place_in_tree(module: Module) -> tuple[Module, int] | None:
    """Return the root by reference whose tree has a module, and the place in preorder, or None."""
    for known in list(_roots.values()):
        root = known()
        if root is None or root is module or (root._reference is None and _policy is None):
            continue
        for place, node in enumerate(preorder(root)):
            if node is module and _asked_of(root) is not None:
                return root, place
    return None


def _asked_of(module: Module) -> Asked | None:
    if module._reference is not None or _policy is None:
        asked: Asked | None = module._reference
        return asked
    if module._loaded_from is None or _is_from_bytes(module) or not is_as_loaded(module):
        return None
    asked = Asked(_reference_to(module), *_policy)
    remember(module, asked.reference.sha256)
    return asked


def _is_from_bytes(module: Module) -> bool:
    """Return True for a library of which there is no file, only memory."""
    library = module._loaded_from
    if library is None or library.descriptor < 0:
        return False
    return module._opened_for is None or not module._opened_for.file.real_path


def _reference_to(module: Module) -> Reference:
    """Return the reference to the file of a module; raises ExportError."""
    library = module._loaded_from
    if library is None:
        raise _no_reference(module, "is not the root of a loaded library")
    if not is_as_loaded(module):
        raise _no_reference(module, "had its imports changed after it was loaded")
    if _is_from_bytes(module):
        raise _no_reference(module, "was loaded from bytes, and has no file")
    if module._opened_for is not None:
        sealed = module._opened_for.file
        return Reference(sealed.real_path, len(sealed.data), sealed.sha256)
    path = os.path.abspath(library.path)
    try:
        descriptor = open_regular(path)
        try:
            found = digest_of(descriptor)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        raise _no_reference(module, f"cannot be read again: {reason_of(error)}") from error
    if library.key != found.state.key:
        raise _no_reference(module, "has a file that was replaced or changed after the load")
    return Reference(path, found.state.nbytes, found.sha256, found.state)


def _no_reference(module: Module, why: str) -> ExportError:
    text = f"{module!r} {why}, expected an unchanged library with its file; load that file again"
    return ExportError(text, module=module.type_key)
