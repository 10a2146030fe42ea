"""Keys on a PKCS #11 token (a smart card, an HSM, SoftHSM), named by an RFC 7512 URI.

The private key stays on the token.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from runtime.error import VerifyError
from runtime.trust.keys import PublicKey, refuse_without_cryptography
from runtime.trust.token import explained, open_token, pin_hint

from .keys import PrivateKey

if TYPE_CHECKING:
    from runtime.error import PackerError

    from .keys import Secret


def token_key(uri: str, secret: Secret) -> PrivateKey:
    """Find a private key on a token.

    Raises VerifyError if the URI is malformed, if there is no such key, or if the PIN is wrong; or
    if the package `python-pkcs11` is missing.
    """

    def refusal(text: str, reason: str) -> PackerError:
        return VerifyError(text, path=uri, reason=reason)

    refuse_without_cryptography(uri)
    opened = open_token(uri, lambda name: secret(f"PIN of {name}"), refusal)
    with explained(uri, refusal, key="pair of keys", hint=pin_hint(opened)):
        return _key(opened.session, uri, opened.named)


def _key(session: Any, uri: str, named: dict[str, Any]) -> PrivateKey:
    from pkcs11 import KeyType, Mechanism, ObjectClass

    private = session.get_key(object_class=ObjectClass.PRIVATE_KEY, **named)
    public = session.get_key(object_class=ObjectClass.PUBLIC_KEY, **named)
    is_ed25519 = private.key_type == KeyType.EC_EDWARDS
    if not is_ed25519 and private.key_type != KeyType.EC:
        text = f"{uri}: key of {private.key_type.name}, expected Ed25519 or ECDSA on P-256"
        raise VerifyError(text, path=uri, reason="algorithm")
    known = PublicKey(_public_key(public, is_ed25519), uri)

    def sign(data: bytes) -> bytes:
        if is_ed25519:
            return bytes(private.sign(data, mechanism=Mechanism.EDDSA))
        digest = hashlib.sha256(data).digest()
        return _der(bytes(private.sign(digest, mechanism=Mechanism.ECDSA)))

    return PrivateKey(known, sign)


def _public_key(public: Any, is_ed25519: bool) -> Any:
    """Read the public key object of a token.

    Tokens store the point of Ed25519 as it is, as an OCTET STRING or as a BIT STRING: it is last.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_der_public_key
    from pkcs11 import Attribute
    from pkcs11.util.ec import encode_ec_public_key

    if is_ed25519:
        return Ed25519PublicKey.from_public_bytes(bytes(public[Attribute.EC_POINT])[-32:])
    return load_der_public_key(encode_ec_public_key(public))


def _der(raw: bytes) -> bytes:
    """Write a token's r || s as X9.62 does."""
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    half = len(raw) // 2
    return encode_dss_signature(int.from_bytes(raw[:half]), int.from_bytes(raw[half:]))
