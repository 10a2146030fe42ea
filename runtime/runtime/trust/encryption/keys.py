"""Keys for encryption: 32 bytes from a file, the environment or a callback, or a key on a token.

A key file is one line of text, ``dso-aes256-key:`` and base64 of the 32 bytes; so is the value of
``env:NAME``. The id of a key is the tag of AES-256-GCM over the data "dso-packer key id" without a
message, with a nonce of zeros, which encrypts nothing else. It tells a wrong key from a damaged
file, and says nothing about the key.
"""

from __future__ import annotations

import os
from binascii import Error, a2b_base64
from typing import TYPE_CHECKING, Any, Protocol

from ...error import EncryptionError
from ...serial.mapped_file import map_file, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable

    KeySource = str | bytes | bytearray | memoryview | os.PathLike[str] | Callable[[str], Any]

PREFIX = "dso-aes256-key:"
ENVIRONMENT, TOKEN = "env:", "pkcs11:"
KEY_ID_NONCE, KEY_ID_DATA = bytes(12), b"dso-packer key id"
_NBYTES = 32
_MAX_FILE_NBYTES = 4096
_FORM = f"expected one line, {PREFIX} and base64 of {_NBYTES} bytes: `packer keygen --encryption`"


class EncryptionKey(Protocol):
    """A key that encrypts the data keys of entries."""

    key_id: bytes

    def wrap(self, nonce: bytes, data_key: bytes, aad: bytes) -> bytes:
        """Return the encrypted data key, with its tag."""

    def unwrap(self, nonce: bytes, wrapped: bytes, aad: bytes) -> bytes | None:
        """Return the data key; None if anything was changed."""


class LocalKey:
    """A key whose bytes this process has; its repr does not show them."""

    __slots__ = ("_cipher", "key_id")

    def __init__(self, data: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher = AESGCM(data)
        self.key_id = self._cipher.encrypt(KEY_ID_NONCE, b"", KEY_ID_DATA)

    def wrap(self, nonce: bytes, data_key: bytes, aad: bytes) -> bytes:
        """Return the encrypted data key, with its tag."""
        return self._cipher.encrypt(nonce, data_key, aad)

    def unwrap(self, nonce: bytes, wrapped: bytes, aad: bytes) -> bytes | None:
        """Return the data key; None if anything was changed."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(nonce, wrapped, aad)
        except InvalidTag:
            return None

    def __reduce__(self) -> str:
        raise TypeError("a key is not pickled")

    def __repr__(self) -> str:
        return f"<LocalKey {self.key_id.hex()}>"


def find_key(source: KeySource, key_id: str = "") -> EncryptionKey:
    """Find a key by its source, which `load` describes; a callback gets `key_id`.

    Raises EncryptionError if the key cannot be read, or is not a key, with a message that never
    contains it; TypeError for a source of another type.
    """
    if callable(source):
        given = source(key_id)
        if given is None or callable(given):
            text = f"key {key_id}: the callback has no such key, found {type(given).__name__}"
            raise EncryptionError(text, reason="key", key_id=key_id)
        return find_key(given)
    if isinstance(source, bytes | bytearray | memoryview):
        return _local_key(bytes(source), "key")
    if not isinstance(source, str | os.PathLike):
        found = type(source).__name__
        raise TypeError(f"key: expected a path, a URI, 32 bytes or a function, found {found}")
    text = os.fspath(source)
    if text.startswith(TOKEN):
        from .token import token_key

        return token_key(text)
    where, line = _read(text)
    return parse_key(line, where)


def parse_key(line: bytes, where: str) -> LocalKey:
    """Read the line of a key file; raise EncryptionError, which has nothing of the line."""
    return _local_key(_decoded(line, where), where)


def _local_key(data: bytes, where: str) -> LocalKey:
    if len(data) != _NBYTES:
        text = f"{where}: {len(data)} bytes, expected a key of {_NBYTES}"
        raise EncryptionError(text, reason="key")
    refuse_without_cryptography(where)
    return LocalKey(data)


def refuse_without_cryptography(where: str) -> None:
    """Raise EncryptionError if the package is missing; it does all of the cryptography."""
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        text = f"{where}: encryption needs the package cryptography: pip install cryptography"
        raise EncryptionError(text, reason="package") from error


def _read(text: str) -> tuple[str, bytes]:
    """Return the name of a key for messages, and its line."""
    if text.startswith(PREFIX):
        hint = "the key itself, which others may have seen; make another one, and give its path"
        raise EncryptionError(f"key: expected a path, found {hint}", reason="key")
    if text.startswith(ENVIRONMENT):
        name = text.removeprefix(ENVIRONMENT)
        if name not in os.environ:
            hint = "the environment variable is not set, expected a key"
            raise EncryptionError(f"{text}: {hint}", reason="key", path=text)
        return text, os.environb[os.fsencode(name)]
    try:
        data, _ = map_file(text)
    except (OSError, ValueError) as error:
        reason = reason_of(error)
        text = f"{text}: key cannot be read: {reason}"
        raise EncryptionError(text, reason="key", path=os.fspath(text)) from error
    if len(data) > _MAX_FILE_NBYTES:
        raise EncryptionError(f"{text}: {len(data)} bytes, {_FORM}", reason="key", path=text)
    return text, bytes(data)


def _decoded(line: bytes, where: str) -> bytes:
    """Return the bytes of a key, of the line of a file; the error has nothing of the line."""
    text = line.removesuffix(b"\n").removesuffix(b"\r")
    if not text.startswith(PREFIX.encode()):
        found = "32 raw bytes" if len(line) == _NBYTES else f"{len(line)} bytes in another form"
        raise EncryptionError(f"{where}: {_FORM}, found {found}", reason="key", path=where)
    try:
        return a2b_base64(text.removeprefix(PREFIX.encode()), strict_mode=True)
    except Error:
        raise EncryptionError(f"{where}: base64 is malformed; {_FORM}", reason="key") from None
