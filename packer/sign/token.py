"""Keys on a PKCS #11 token (a smart card, an HSM, SoftHSM), named by an RFC 7512 URI.

    pkcs11:token=release;object=acme?module-path=/usr/lib/softhsm/libsofthsm2.so

The private key stays on the token. A PIN in the URI is refused: other users see the arguments of
a command.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote_to_bytes

from runtime.error import VerifyError
from runtime.trust.keys import PublicKey, refuse_without_cryptography

from .keys import TOKEN, PrivateKey

if TYPE_CHECKING:
    from .keys import Secret

_PATH, _QUERY = ("token", "object", "id", "type"), ("module-path",)
_MODULE_VARIABLE = "DSO_PKCS11_MODULE"


def token_key(uri: str, secret: Secret) -> PrivateKey:
    """Find a private key on a token.

    Raises
    ------
    VerifyError
        If the URI is malformed, if there is no such key, or if the PIN is wrong; or if the package
        `python-pkcs11` is missing.
    """
    fields = _parse(uri)
    refuse_without_cryptography(uri)
    try:
        import pkcs11
    except ImportError as error:
        text = f"{uri}: keys on tokens need the package python-pkcs11: pip install python-pkcs11"
        raise VerifyError(text, path=uri, reason="package") from error

    module = fields.get("module-path") or os.fsencode(os.environ.get(_MODULE_VARIABLE, ""))
    if not module:
        _refuse(uri, f"no module-path; add ?module-path=..., or set {_MODULE_VARIABLE}")
    pin = secret(f"PIN of {uri.partition('?')[0]}")
    try:
        token = pkcs11.lib(os.fsdecode(module)).get_token(token_label=_text(fields, "token"))
        session = token.open(user_pin=pin.decode() if pin else None)
        return _key(session, uri, fields)
    except VerifyError:
        raise
    except pkcs11.PinIncorrect:
        _refuse(uri, "the PIN is wrong")
    except pkcs11.NoSuchToken:
        _refuse(uri, "the module has no such token; `softhsm2-util --show-slots` lists SoftHSM's")
    except pkcs11.NoSuchKey:
        hint = "" if pin else "; most tokens show keys only after a PIN: set DSO_PKCS11_PIN"
        _refuse(uri, f"the token has no pair of keys of this name{hint}")
    except (pkcs11.PKCS11Error, RuntimeError, ValueError) as error:
        _refuse(uri, f"{type(error).__name__}: {error}".rstrip(": "))


def _key(session: Any, uri: str, fields: dict[str, bytes]) -> PrivateKey:
    from pkcs11 import KeyType, Mechanism, ObjectClass

    named = {"label": _text(fields, "object"), "id": fields.get("id")}
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


def _parse(uri: str) -> dict[str, bytes]:
    """Return the attributes of a URI."""
    path, _, query = uri.removeprefix(TOKEN).partition("?")
    fields: dict[str, bytes] = {}
    for part, separator, known in ((path, ";", _PATH), (query, "&", _QUERY)):
        for item in filter(None, part.split(separator)):
            name, equals, value = item.partition("=")
            if name == "pin-value":
                _refuse(TOKEN, "pin-value in the URI: others see it; set DSO_PKCS11_PIN instead")
            if name not in known or not equals or name in fields:
                _refuse(uri, f"attribute {item!r}, expected each of {', '.join(known)} once")
            fields[name] = unquote_to_bytes(value)
    if not ("object" in fields or "id" in fields) or "token" not in fields:
        _refuse(uri, "expected the token and the object or id of the key")
    return fields


def _text(fields: dict[str, bytes], name: str) -> str | None:
    return fields[name].decode() if name in fields else None


def _refuse(uri: str, text: str) -> NoReturn:
    raise VerifyError(f"{uri}: {text}", path=uri, reason="key")
