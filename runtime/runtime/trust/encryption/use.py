"""The key of the load that this thread is in, and what was decrypted with it."""

from __future__ import annotations

from _thread import _local
from typing import TYPE_CHECKING

from ...error import EncryptionError
from .envelope import HEADER_NBYTES, checked_header, data_key_of, decrypted
from .keys import find_key

if TYPE_CHECKING:
    from types import TracebackType

    from .envelope import Header
    from .keys import EncryptionKey, KeySource


class _Thread(_local):
    use: Use | None = None


_thread = _Thread()


class Use:
    """Decrypt entries with a key inside a ``with`` block.

    Parameters
    ----------
    source : path, str, buffer or callable
        The key, as `load` takes it; it is read when an entry needs it, and once for each id.
    """

    def __init__(self, source: KeySource) -> None:
        self._source = source
        self._keys: dict[str, EncryptionKey] = {}
        self._exports: dict[str, bytes] = {}  # the export of each file

    def __enter__(self) -> None:
        self._outer, _thread.use = _thread.use, self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _thread.use = self._outer

    def key_of(self, key_id: str) -> EncryptionKey:
        """Return the key for entries with an id."""
        found = self._keys.get(key_id)
        if found is None:
            found = self._keys[key_id] = find_key(self._source, key_id)
        return found

    def refuse_mixed(self, export_id: bytes, file: str, where: str) -> None:
        """Refuse an entry of another export than the other entries of its file."""
        if self._exports.setdefault(file, export_id) != export_id:
            text = f"{where}: of another export than the entry before it; load the exported file"
            raise EncryptionError(text, reason="mixed")


def decrypting(key: KeySource) -> Use:
    """Give a key to all that this thread loads inside a ``with`` block.

    Parameters
    ----------
    key : path, str, bytes or callable
        The key, as `runtime.load` takes it: for what has no argument for it, such as pickle.

    Returns
    -------
    context manager
        A load with an argument `key` takes that one instead.

    Examples
    --------
    >>> with runtime.decrypting("acme.aes"):  # doctest: +SKIP
    ...     model = pickle.loads(data)
    """
    return Use(key)


def decrypt(envelope: memoryview, place: int, file: str, where: str) -> memoryview:
    """Decrypt a payload with the key of the load; raise EncryptionError."""
    use, header = _use(envelope, place, where)
    data = decrypted(envelope, place, use.key_of(header.key_id.hex()), where)
    use.refuse_mixed(header.export_id, file, where)
    return data


def check_key(envelope: memoryview, place: int, where: str) -> None:
    """Refuse a load without the key of a payload that is decrypted already."""
    use, header = _use(envelope, place, where)
    key = use.key_of(header.key_id.hex())
    data_key_of(bytes(envelope[:HEADER_NBYTES]), header, key, where)


def _use(envelope: memoryview, place: int, where: str) -> tuple[Use, Header]:
    """Return what this thread decrypts with, and the header; raise EncryptionError."""
    head = bytes(envelope[:HEADER_NBYTES])
    header = checked_header(head, len(envelope), place, where)
    if _thread.use is None:
        key_id = header.key_id.hex()
        text = f"{where}: encrypted with key {key_id}, and no key is given: load(path, key=...)"
        raise EncryptionError(text, reason="no-key", key_id=key_id)
    return _thread.use, header
