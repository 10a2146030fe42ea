"""Get the bytes of a library that is not at its path: from a URL, or from a function."""

from __future__ import annotations

import contextlib
import hashlib
import os
from typing import TYPE_CHECKING

from ..error import LibraryLoadError, PackerError, VerifyError, shown
from ..trust.sealed_memory import write_pieces
from .digest import digest_of, remember
from .file_state import open_regular
from .least_rate import at_least, least_rate
from .store import VARIABLE, Store, cache_path

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from .file_reference import Reference

    Fetch = str | Callable[[Reference], Any]

_STEP = 1 << 20
_WINDOW_S = 30.0  # of the least rate
_BLOCK_WINDOW_S = 120.0  # fsspec gives nothing before it has a block of 5 MiB
_HTTP = ("http://", "https://")


def check_fetch(fetch: object) -> None:
    """Raise TypeError for what is neither a URL nor a function."""
    if fetch is not None and not isinstance(fetch, str) and not callable(fetch):
        text = f"fetch: expected a URL, or a function of a runtime.Reference, found {shown(fetch)}"
        raise TypeError(text)


def stored_file(reference: Reference, fetch: Fetch | None) -> str | None:
    """Return the path of a library in the store, which it is fetched into if it is missing.

    Only one process of a machine fetches it; the others wait. Returns None if it is missing and
    there is no `fetch`. Raises LibraryLoadError if it cannot be fetched or stored, and VerifyError
    if the source has other bytes.
    """
    if fetch is None and not os.path.isdir(cache_path()):
        return None
    store = Store.open()
    path = store.file(reference.sha256)
    if _is_whole(path, reference):
        return path
    if fetch is None:
        return None
    try:
        with store.locked(reference.sha256):
            if not _is_whole(path, reference):
                _check_room(store.path, reference.nbytes)
                with store.writing(path) as descriptor:
                    _copy(descriptor, reference, fetch)
                _remember(path, reference)
    except OSError as error:
        if isinstance(error, PackerError):
            raise
        what = f"{reference.path}: cannot be stored in {store.path}: {error.strerror or error}"
        text = f"{what}; free space there, or choose a different folder with {VARIABLE}"
        raise LibraryLoadError(text, path=reference.path, reason="io") from error
    return path


def _is_whole(path: str, reference: Reference) -> bool:
    """Return True for the library itself; a damaged file counts as missing."""
    try:
        descriptor = open_regular(path)
    except (OSError, ValueError):
        return False
    try:
        if os.fstat(descriptor).st_size != reference.nbytes:
            return False
        return digest_of(descriptor).sha256 == reference.sha256
    except (OSError, ValueError):
        return False
    finally:
        os.close(descriptor)


def _remember(path: str, reference: Reference) -> None:
    """Store that the file has its digest: it was computed while the bytes came."""
    descriptor = open_regular(path)
    try:
        remember(descriptor, reference.sha256)
    finally:
        os.close(descriptor)


def _check_room(folder: str, nbytes: int) -> None:
    found = os.statvfs(folder)
    if found.f_blocks and found.f_bavail * found.f_frsize < nbytes:
        free = found.f_bavail * found.f_frsize
        raise OSError(None, f"{free} bytes are free, expected {nbytes}")


def _copy(descriptor: int, reference: Reference, fetch: Fetch) -> None:
    """Write the bytes of the source; stop at the first byte too many."""
    digest = hashlib.sha256()
    nbytes = 0
    with contextlib.closing(_pieces_of(fetch, reference)) as pieces:
        for piece in pieces:
            nbytes += len(piece)
            if nbytes > reference.nbytes:
                break
            digest.update(piece)
            write_pieces(descriptor, [piece])
    source = name_of(fetch, reference)
    if nbytes != reference.nbytes:
        found = "more" if nbytes > reference.nbytes else str(nbytes)
        text = f"{source}: {found} bytes, expected {reference.nbytes}"
        hint = "the transfer was cut; try again" if nbytes < reference.nbytes else _OTHER
        raise LibraryLoadError(f"{text}: {hint}", path=reference.path, reason="fetch")
    if digest.hexdigest() != reference.sha256:
        text = f"{source}: sha256 {digest.hexdigest()}, expected {reference.sha256}: {_OTHER}"
        raise VerifyError(text, path=reference.path, reason="digest")


_OTHER = "the source has another file; put the pickled version there"


def _pieces_of(fetch: Fetch, reference: Reference) -> Generator[bytes | memoryview]:
    """Iterate over the bytes of the source; its errors become LibraryLoadError."""
    try:
        if callable(fetch):
            yield from _read(fetch(reference))
        elif "://" not in (url := _url_of(fetch, reference)):
            with open(url, "rb") as file:
                yield from _read(file)
        else:
            window_s = _WINDOW_S if url.startswith(_HTTP) else _BLOCK_WINDOW_S
            yield from at_least(least_rate(), window_s, lambda: _read(_opened(url)))
    except Exception as error:
        getattr(error, "close", lambda: None)()  # an answer of HTTP is an error with a connection
        name = name_of(fetch, reference)
        text = f"{name}: cannot be fetched: {type(error).__name__}: {_printable(str(error))}"
        raise LibraryLoadError(text, path=reference.path, reason="fetch") from error


def _read(source: Any) -> Generator[bytes | memoryview]:
    """Iterate over bytes, or what a file has, which is closed."""
    if not hasattr(source, "read"):
        view = memoryview(source).cast("B")
        yield from (view[i : i + _STEP] for i in range(0, len(view), _STEP))
        return
    with contextlib.ExitStack() as stack:
        if hasattr(source, "close"):
            stack.callback(source.close)
        read = getattr(source, "read1", source.read)  # read1 gives what has come
        while piece := read(_STEP):
            yield memoryview(piece).cast("B")


def _printable(text: str) -> str:
    """Escape control characters: a server's text must not command a terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _opened(url: str) -> Any:
    """Open a URL for reading; what is not HTTP needs fsspec."""
    if url.startswith(_HTTP):
        from urllib.request import urlopen

        return urlopen(url, timeout=_WINDOW_S)
    try:
        import fsspec
    except ImportError as error:
        text = f"the package fsspec is missing: pip install fsspec, and what it needs for {url}"
        raise PackerError(text) from error
    return fsspec.open(url, "rb").open()


def _url_of(fetch: str, reference: Reference) -> str:
    return fetch.replace("{sha256}", reference.sha256).replace("{name}", reference.name)


def name_of(fetch: Fetch, reference: Reference) -> str:
    """Return the source for messages, without a query, which may be a secret."""
    if callable(fetch):
        name = getattr(fetch, "__qualname__", type(fetch).__name__)
        return _printable(f"{reference.path}: {name}()")
    url = _printable(_url_of(fetch, reference)).partition("?")[0]
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}" if mark else url
