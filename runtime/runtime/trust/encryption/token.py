"""An AES key on a PKCS #11 token, which encrypts the data keys of entries and stays there.

The token must have CKM_AES_GCM, and take the nonce of its caller.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ...error import EncryptionError
from ..token import explained, open_token, pin_hint
from .keys import KEY_ID_DATA, KEY_ID_NONCE

if TYPE_CHECKING:
    from ...error import PackerError

_BITS, _TAG_BITS, _TAG_NBYTES = 256, 128, 16
_PIN = "DSO_PKCS11_PIN"


def token_key(uri: str) -> TokenKey:
    """Find a key on a token, whose PIN is in DSO_PKCS11_PIN; raise EncryptionError."""

    def refusal(text: str, reason: str) -> PackerError:
        return EncryptionError(text, path=uri, reason="token" if reason == "key" else reason)

    def pin(_token: str) -> bytes | None:
        return os.environb[_PIN.encode()] if os.environ.get(_PIN) else None

    opened = open_token(uri, pin, refusal)
    from pkcs11 import KeyType, ObjectClass

    with explained(uri, refusal, key="AES key", hint=pin_hint(opened)):
        key = opened.session.get_key(object_class=ObjectClass.SECRET_KEY, **opened.named)
        kind, nbits = key.key_type, key.key_length
        if kind != KeyType.AES or nbits != _BITS:
            text = f"{uri}: a key of {nbits} bits of {kind.name}, expected AES of {_BITS}"
            raise EncryptionError(text, path=uri, reason="token")
        return TokenKey(key)


class TokenKey:
    """A key on a token; the session stays open while it is used."""

    def __init__(self, key: Any) -> None:
        self._key = key
        self.key_id = self._run(key.encrypt, b"", KEY_ID_NONCE, KEY_ID_DATA)

    def wrap(self, nonce: bytes, data_key: bytes, aad: bytes) -> bytes:
        """Return the encrypted data key, with its tag."""
        return self._run(self._key.encrypt, data_key, nonce, aad)

    def unwrap(self, nonce: bytes, wrapped: bytes, aad: bytes) -> bytes | None:
        """Return the data key; None if anything was changed."""
        from pkcs11 import PKCS11Error

        try:
            return self._run(self._key.decrypt, wrapped, nonce, aad)
        except PKCS11Error:  # tokens differ in their error
            return None

    def _run(self, operation: Any, data: bytes, nonce: bytes, aad: bytes) -> bytes:
        from pkcs11 import GCMParams, Mechanism

        params = GCMParams(nonce, aad=aad, tag_bits=_TAG_BITS)
        result = operation(data, mechanism=Mechanism.AES_GCM, mechanism_param=params)
        return bytes(result)
