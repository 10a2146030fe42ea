"""Targets of encryption: entries before and after they are decrypted, and key files."""

from __future__ import annotations

import packer
import runtime
from packer.trust.encrypt.sealed import envelope_of
from runtime.error import BlobFormatError
from runtime.modules.encrypted import EncryptedModule
from runtime.trust.encryption.keys import PREFIX, find_key, parse_key
from runtime.trust.encryption.use import Use

from .edited_inputs import Seed
from .judge import Target
from .reading import of_seeds, read_tree, words

_KEY = bytes(range(32))
_PLACE = 16
_HEADER = b'{"w":{"dtype":"I16","shape":[2],"data_offsets":[0,4]}}'
_FILE = len(_HEADER).to_bytes(8, "little") + _HEADER + b"\1\0\2\0"


def encryption_targets() -> list[Target]:
    """A blob with an encrypted module, the bytes that are encrypted, and the line of a key."""
    module = runtime.SafetensorsModule(_FILE)
    with packer.encrypting(module, _KEY):
        blob = runtime.serialize_module_to_bytes(module)
    payload = (0).to_bytes(8, "little") + _FILE
    clear = (11).to_bytes(8, "little") + b"safetensors" + payload
    clear = len(clear).to_bytes(8, "little") + clear
    line = PREFIX.encode() + b"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
    return [
        of_seeds("encrypted", [words(blob)], _read_blob),
        of_seeds("decrypted", [words(clear)], _read_clear),
        of_seeds("encryption-key", [Seed(line)], lambda data: parse_key(data, "acme.aes")),
    ]


def _read_blob(data: bytes) -> None:
    """Decrypt; whatever is accepted has the values that were encrypted."""
    with Use(_KEY):
        root = runtime.deserialize_module_from_bytes(data)
    if type(root) is not runtime.SafetensorsModule:
        raise BlobFormatError("another tree")
    assert bytes(root.weights["w"].raw) == _FILE[-4:]


def _read_clear(data: bytes) -> None:
    """Read bytes that were encrypted with the key."""
    envelope = b"".join(envelope_of([data], _PLACE, find_key(_KEY), bytes(16)))
    entry = EncryptedModule(memoryview(envelope), _PLACE, "tvm", None, "blob")
    with Use(_KEY):
        read_tree(entry.tree_node())
