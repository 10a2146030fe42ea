"""Encrypted entries that were changed, cut, moved or mixed: each refused with a reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import packer
import runtime
from runtime.trust.encryption.envelope import HEADER_NBYTES, PIECE_NBYTES

from ....support import models
from . import encrypted

# The place of the entry of `blob` in it: count, then the key.
AT = 8 + 8 + len("encrypted")
START = AT + 8


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key; cryptography is imported, so the times below are of refusals."""
    path = encrypted.key_file(tmp_path_factory.mktemp("key"))
    encrypted.tree_of(encrypted.blob_of(models.weights(), path), path)
    return path


@pytest.fixture(scope="module")
def large() -> runtime.SafetensorsModule:
    """Weights of a little more than three pieces."""
    values = np.arange(3 * PIECE_NBYTES // 4 + 10, dtype="f4")
    return runtime.SafetensorsModule(models.safetensors({"w": values}))


@pytest.fixture(scope="module")
def blob(key: Path) -> bytes:
    """A blob of one module."""
    return encrypted.blob_of(models.weights(), key)


@pytest.fixture(scope="module")
def pieces(key: Path, large) -> bytes:
    """A blob of one module of four pieces."""
    return encrypted.blob_of(large, key)


def refused(blob: bytes, key: object) -> str:
    """The reason."""
    return encrypted.reason_of(lambda: encrypted.tree_of(blob, key))


def test_bytes_are_those_of_the_format(pieces, key, large) -> None:
    """AES-256-GCM by another reader of docs/format.md: key id, data key, pieces, contents."""
    user = AESGCM(runtime_key(key))
    assert int.from_bytes(pieces[AT:START], "little") == len(pieces) - START - tree_nbytes(pieces)
    header = pieces[START : START + 116]
    assert header[:8] == bytes([1, 0, 0, 0, 1, 0, 0, 0])
    assert header[8:24] == user.encrypt(bytes(12), b"", b"dso-packer key id")
    assert int.from_bytes(header[40:48], "little") == AT
    nbytes = int.from_bytes(header[48:56], "little")
    data = AESGCM(user.decrypt(header[56:68], header[68:116], header[:56]))
    clear, at, index = b"", START + 116, 0
    while len(clear) < nbytes:
        size = min(1 << 20, nbytes - len(clear))
        is_last = len(clear) + size == nbytes
        nonce = index.to_bytes(11, "big") + bytes([is_last])
        clear += data.decrypt(nonce, pieces[at : at + size + 16], header)
        at, index = at + size + 16, index + 1
    assert index == 4 and at == len(pieces) - tree_nbytes(pieces)
    assert clear[:8] == (nbytes - 8).to_bytes(8, "little")
    assert clear[8:27] == (11).to_bytes(8, "little") + b"safetensors"
    assert clear.endswith(np.from_dlpack(large.weights["w"]).tobytes())


def runtime_key(path: Path) -> bytes:
    """The bytes of a key file, without our reader."""
    import base64

    return base64.b64decode(path.read_text().removeprefix("dso-aes256-key:"))


def tree_nbytes(blob: bytes) -> int:
    """The size of the import tree at the end of a blob of one module."""
    return len(blob) - blob.index((12).to_bytes(8, "little") + b"_import_tree")


def test_every_changed_byte_is_refused(blob, key) -> None:
    """Of the header all, of the rest some; the reason says which kind of change it is."""
    end = len(blob) - tree_nbytes(blob)
    places = [*range(START, START + HEADER_NBYTES), *range(START + HEADER_NBYTES, end, 97), end - 1]
    found = {}
    for place in places:
        changed = bytearray(blob)
        changed[place] ^= 0x40
        found[place - START] = refused(bytes(changed), key)
    assert {found[at] for at in range(8)} == {"algorithm"}
    assert {found[at] for at in range(8, 24)} == {"wrong-key"}
    assert {found[at] for at in range(40, 48)} == {"moved"}
    assert {found[at] for at in range(48, 56)} == {"cut"}
    assert {found[at] for at in found if 24 <= at < 40 or at >= 56} == {"changed"}


def test_pieces_cannot_be_dropped_moved_or_repeated(pieces, key) -> None:
    """The number of a piece and the end are in its nonce."""
    first, size = START + HEADER_NBYTES, PIECE_NBYTES + 16
    rest = pieces[first + size :]
    assert refused(pieces[: first + size] + pieces[first : first + size] + rest[size:], key) == (
        "changed"
    )
    swapped = pieces[:first] + rest[:size] + pieces[first : first + size] + rest[size:]
    assert refused(swapped, key) == "changed"
    assert refused(without_last_piece(pieces), key) == "changed"


def without_last_piece(blob: bytes) -> bytes:
    """Three whole pieces, with the sizes and a header that say so."""
    nbytes = 3 * PIECE_NBYTES
    envelope = blob[START : START + HEADER_NBYTES + nbytes + 48]
    envelope = envelope[:48] + nbytes.to_bytes(8, "little") + envelope[56:]
    head = blob[:AT] + len(envelope).to_bytes(8, "little")
    return head + envelope + blob[len(blob) - tree_nbytes(blob) :]


def test_entries_cannot_be_exchanged(key, tmp_path) -> None:
    """Neither two of a file, nor of two exports at the same place."""
    first, second = (encrypted.blob_of(two_weights(), key) for _ in range(2))
    size = int.from_bytes(first[AT:START], "little") + 8
    step = size + 8 + len("encrypted")
    one, two = first[AT : AT + size], first[AT + step : AT + step + size]
    swapped = first[:AT] + two + first[AT + size : AT + step] + one + first[AT + step + size :]
    assert refused(swapped, key) == "moved"
    mixed = first[: AT + step] + second[AT + step : AT + step + size] + first[AT + step + size :]
    assert refused(mixed, key) == "mixed"
    assert encrypted.tree_of(first, key).weights["w"].shape == (4,)


def two_weights() -> runtime.Module:
    """A module of weights that imports one of the same size."""
    made = [
        runtime.SafetensorsModule(models.safetensors({name: np.arange(4, dtype="f4")}))
        for name in ("v", "w")
    ]
    made[0].import_module(made[1])
    return made[0]


def test_cut_entries_are_refused(blob, key) -> None:
    """With the length that they have left."""
    for nbytes in (0, 1, HEADER_NBYTES - 1, HEADER_NBYTES, HEADER_NBYTES + 100):
        envelope = blob[START : START + nbytes]
        cut = blob[:AT] + nbytes.to_bytes(8, "little") + envelope
        assert refused(cut + blob[len(blob) - tree_nbytes(blob) :], key) == "cut"


def test_no_two_exports_are_alike(key, large) -> None:
    """Each draws its data keys, so that no nonce is used twice with one key."""
    first, second = (encrypted.blob_of(large, key) for _ in range(2))
    same = sum(a == b for a, b in zip(first[START:], second[START:], strict=True))
    assert same < len(first) / 100


def test_only_what_can_be_encrypted_is(key) -> None:
    """A part that names nothing, and code that must be in a file."""
    root = models.weights()
    for parts in (["kernels"], ["wieghts"], []):
        with pytest.raises(runtime.ExportError, match="encrypt:"):
            enter(root, key, parts)
    root.import_module(runtime.modules.CarriedSharedLibraryModule(b""))
    with pytest.raises(runtime.ExportError, match="must be in a file"):
        enter(root, key, ["all"])
    assert root._stored_as is None


def enter(root: runtime.Module, key: Path, parts: list[str]) -> None:
    """Begin an export."""
    with packer.encrypting(root, key, parts):
        pass
