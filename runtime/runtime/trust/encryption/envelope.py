"""The payload ``encrypted``: a header with the data key, then AES-256-GCM in pieces of 1 MiB.

     0  u32 version 1, u32 algorithm 1
     8  16 bytes key id, 16 bytes export id
    40  u64 the offset of the payload in its blob, u64 number of bytes in clear
    56  12 bytes nonce, 48 bytes data key and tag: encrypted by the user's key over bytes 0 to 55
   116  pieces: each encrypted by the data key over the header, then a tag of 16 bytes

The nonce of piece i is i in 11 bytes, big-endian, and a byte that is 1 for the last piece, else 0.
A data key encrypts one entry, once (docs/format.md).
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from ...error import EncryptionError, OutOfMemoryError
from .memory import SecretMemory

if TYPE_CHECKING:
    from .keys import EncryptionKey

VERSION, ALGORITHM = 1, 1
PIECE_NBYTES = 1 << 20
TAG_NBYTES, NONCE_NBYTES, KEY_NBYTES = 16, 12, 32
_FIELDS = Struct("<II16s16sQQ")
_WRAPPED_NBYTES = KEY_NBYTES + TAG_NBYTES
HEADER_NBYTES = _FIELDS.size + NONCE_NBYTES + _WRAPPED_NBYTES
# OpenSSL's cipher may write a block beyond what it got.
_SLACK = 16


class Header(NamedTuple):
    """The fields before the data key."""

    version: int  # 1
    algorithm: int  # 1
    key_id: bytes  # the check value of the user's key
    export_id: bytes  # a random number that all entries of an export have
    place: int  # the offset of the payload in its blob
    nbytes: int  # the size in clear

    def pack(self) -> bytes:
        """Return the bytes of the fields."""
        return _FIELDS.pack(*self)


def read_header(head: bytes | memoryview) -> Header | None:
    """Return the fields of a header; None if it is cut."""
    return Header(*_FIELDS.unpack_from(head)) if len(head) >= HEADER_NBYTES else None


def encrypted_nbytes(nbytes: int) -> int:
    """Return the size of the pieces of so many bytes, with their tags."""
    return nbytes + TAG_NBYTES * _num_pieces(nbytes)


def nonce_of(index: int, *, is_last: bool) -> bytes:
    """Return the nonce of a piece."""
    return index.to_bytes(NONCE_NBYTES - 1, "big") + bytes([is_last])


def decrypted(envelope: memoryview, place: int, key: EncryptionKey, where: str) -> memoryview:
    """Decrypt a payload of the blob into separate memory, which is wiped when it is freed.

    Each byte of the envelope is read once: another process may write to its file meanwhile. Raises
    EncryptionError; then nothing of it was handed out.
    """
    head = bytes(envelope[:HEADER_NBYTES])
    header = checked_header(head, len(envelope), place, where)
    data_key = data_key_of(head, header, key, where)
    memory = _memory(header.nbytes, where)
    target, last = memoryview(memory), _num_pieces(header.nbytes) - 1
    for index in range(last + 1):
        start = index * PIECE_NBYTES
        stored = HEADER_NBYTES + start + index * TAG_NBYTES
        size = min(PIECE_NBYTES, header.nbytes - start)
        piece = bytes(envelope[stored : stored + size + TAG_NBYTES])
        nonce = nonce_of(index, is_last=index == last)
        if not _decrypt_piece(piece, data_key, nonce, head, target[start : start + size + _SLACK]):
            target.release()
            memory.wipe()
            at = f"piece {index} of {last + 1}"
            text = f"{where}: {at} was changed after it was encrypted; copy the file again"
            raise EncryptionError(text, reason="changed", key_id=header.key_id.hex())
    target.release()
    memory.protect()
    return memoryview(memory)[: header.nbytes].toreadonly()


def _memory(nbytes: int, where: str) -> SecretMemory:
    try:
        return SecretMemory(nbytes + _SLACK)
    except (OSError, MemoryError, OverflowError) as error:
        text = f"{where}: no memory for {nbytes} bytes in clear"
        raise OutOfMemoryError(text) from error


def checked_header(head: bytes, nbytes: int, place: int, where: str) -> Header:
    """Return the header of an envelope of so many bytes.

    Raises EncryptionError if it cannot be one of this place.
    """
    header = read_header(head)
    if header is None:
        text = f"{where}: cut: {nbytes} bytes, expected at least {HEADER_NBYTES}"
        raise EncryptionError(text, reason="cut")
    key_id = header.key_id.hex()
    if (header.version, header.algorithm) != (VERSION, ALGORITHM):
        found = f"version {header.version} and algorithm {header.algorithm}"
        text = f"{where}: {found}, expected {VERSION} and {ALGORITHM}; update dso-runtime"
        raise EncryptionError(text, reason="algorithm", key_id=key_id)
    expected = HEADER_NBYTES + encrypted_nbytes(header.nbytes)
    if header.nbytes >> 63 or nbytes != expected:
        text = f"{where}: cut: {nbytes} bytes, expected {expected}; copy the file again"
        raise EncryptionError(text, reason="cut", key_id=key_id)
    if header.place != place:
        text = f"{where}: was encrypted for offset {header.place:#x} of its blob, found {place:#x}"
        text += "; it was moved: load the file that was exported"
        raise EncryptionError(text, reason="moved", key_id=key_id)
    return header


def data_key_of(head: bytes, header: Header, key: EncryptionKey, where: str) -> bytes:
    """Return the data key of a header that was checked; raise EncryptionError."""
    found, expected = key.key_id.hex(), header.key_id.hex()
    if found != expected:
        text = f"{where}: another key: expected the one with id {expected}, found {found}"
        raise EncryptionError(text, reason="wrong-key", key_id=expected)
    nonce_at = _FIELDS.size
    wrapped_at = nonce_at + NONCE_NBYTES
    data_key = key.unwrap(head[nonce_at:wrapped_at], head[wrapped_at:], head[:nonce_at])
    if data_key is None or len(data_key) != KEY_NBYTES:
        text = f"{where}: its header was changed after it was encrypted; copy the file again"
        raise EncryptionError(text, reason="changed", key_id=expected)
    return data_key


def _num_pieces(nbytes: int) -> int:
    return max(1, -(-nbytes // PIECE_NBYTES))


def _decrypt_piece(
    piece: bytes, data_key: bytes, nonce: bytes, aad: bytes, target: memoryview
) -> bool:
    """Decrypt into memory, without a copy anywhere else; return False if the tag is not right."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import GCM

    mode: Any = GCM(nonce, piece[-TAG_NBYTES:])
    cipher = Cipher(AES(data_key), mode).decryptor()
    cipher.authenticate_additional_data(aad)
    cipher.update_into(memoryview(piece)[:-TAG_NBYTES], target)
    try:
        cipher.finalize()
    except InvalidTag:
        return False
    return True
