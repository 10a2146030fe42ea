"""The writing form of an encrypted module (runtime/trust/encryption/envelope.py has its bytes)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from runtime.abi import BINARY_SERIALIZABLE
from runtime.module import Module
from runtime.modules.encrypted import TYPE_KEY
from runtime.serial.stream import Writer
from runtime.trust.encryption.envelope import (
    ALGORITHM,
    KEY_NBYTES,
    NONCE_NBYTES,
    PIECE_NBYTES,
    VERSION,
    Header,
    nonce_of,
)
from runtime.trust.encryption.keys import KEY_ID_NONCE

from ...files.chunks import nbytes_of, pieces, with_header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runtime.serial.stream import Chunk
    from runtime.trust.encryption.keys import EncryptionKey


class SealedModule(Module):
    """Writes another module encrypted; `written` is the payload of the last export, in order."""

    type_key = TYPE_KEY
    property_mask = BINARY_SERIALIZABLE

    def __init__(self, module: Module, key: EncryptionKey, export_id: bytes) -> None:
        self._module = module
        self._key = key
        self._export_id = export_id
        self.written: list[bytes] = []

    def save_to_binary(self, writer: Writer) -> None:
        """Write the payload: each time with a new data key, so no nonce is used twice with one."""
        clear = _in_clear(self._module, writer.dialect)
        envelope = envelope_of(clear, writer.offset, self._key, self._export_id)
        size = sum(len(piece) for piece in envelope)
        self.written = [size.to_bytes(8, "little"), *envelope]
        for piece in self.written:
            writer.write_raw(piece)


def envelope_of(
    clear: list[Chunk], place: int, key: EncryptionKey, export_id: bytes
) -> list[bytes]:
    """Encrypt chunks for an offset in a blob; return the header and the pieces."""
    header, data_key = _header(nbytes_of(clear), place, key, export_id)
    return [header, *_encrypted(_cut(clear), data_key, header)]


def _header(nbytes: int, place: int, key: EncryptionKey, export_id: bytes) -> tuple[bytes, bytes]:
    """Return the header with a new data key, and that key."""
    fields = Header(VERSION, ALGORITHM, key.key_id, export_id, place, nbytes).pack()
    data_key, nonce = os.urandom(KEY_NBYTES), KEY_ID_NONCE
    while nonce == KEY_ID_NONCE:
        nonce = os.urandom(NONCE_NBYTES)
    return fields + nonce + key.wrap(nonce, data_key, fields), data_key


def _in_clear(module: Module, dialect: str) -> list[Chunk]:
    """Return what is encrypted: the size of the rest, the type key, and the payload."""
    inner = Writer(dialect=dialect)
    inner.write_string(module.type_key)
    module.save_to_binary(inner)
    return with_header(inner.finish())


def _cut(chunks: list[Chunk]) -> Iterator[bytes]:
    """Cut the bytes of chunks into pieces of one size; the last one may be shorter."""
    held = bytearray()
    for data in pieces(chunks):
        held += data
        while len(held) > PIECE_NBYTES:  # the rest is not empty, so this is not the last piece
            yield bytes(held[:PIECE_NBYTES])
            del held[:PIECE_NBYTES]
    yield bytes(held)


def _encrypted(clear: Iterator[bytes], data_key: bytes, header: bytes) -> Iterator[bytes]:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    cipher, index, piece = AESGCM(data_key), 0, next(clear)
    for following in clear:
        yield cipher.encrypt(nonce_of(index, is_last=False), piece, header)
        index, piece = index + 1, following
    yield cipher.encrypt(nonce_of(index, is_last=True), piece, header)
