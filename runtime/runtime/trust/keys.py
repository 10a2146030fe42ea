"""Public keys: Ed25519 and ECDSA on P-256, from PEM, by the package `cryptography`."""

from __future__ import annotations

import os
from binascii import Error, a2b_base64, b2a_base64
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ..error import VerifyError
from ..serial.mapped_file import map_file, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable

ENVIRONMENT = "env:"
ALGORITHMS = ("ed25519", "ecdsa-p256")
EXPECTED = "expected Ed25519 or ECDSA on P-256"
_MAX_NBYTES = 1 << 16
_SHOWN = 12  # digits of a hint in messages
# SubjectPublicKeyInfo before the bytes of a key (RFC 8410; RFC 5480, an uncompressed point). Such a
# key needs no serialization of cryptography, whose import is half of the first verification.
_ED25519 = bytes.fromhex("302a300506032b6570032100")
_P256 = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200")
_BEGIN, _END = b"-----BEGIN PUBLIC KEY-----\n", b"-----END PUBLIC KEY-----\n"


class PublicKey:
    """A public key that signatures are verified with.

    Attributes
    ----------
    algorithm : {"ed25519", "ecdsa-p256"}
        The algorithm that the key determines; a bundle cannot choose another one.
    pem : bytes
        The key as PEM: SubjectPublicKeyInfo, in lines of 64 characters.
    hint : str
        The SHA-256 of `pem` in hexadecimal digits, which a bundle names its key by.
    """

    def __init__(self, key: Any, where: str) -> None:
        self._verify, self.algorithm, der = _verifier(key, where)
        lines = [b2a_base64(der[i : i + 48]) for i in range(0, len(der), 48)]
        self.pem = b"".join([_BEGIN, *lines, _END])
        self.hint = sha256(self.pem).hexdigest()

    def verifies(self, signature: bytes, data: bytes) -> bool:
        """Return True if this key made the signature of the data."""
        from cryptography.exceptions import InvalidSignature

        try:
            self._verify(signature, data)
        except InvalidSignature:
            return False
        return True

    def __repr__(self) -> str:
        return f"<PublicKey {self.algorithm} {short(self.hint)}>"


def short(hint: str) -> str:
    """Return the beginning of a hint, for messages."""
    return hint[:_SHOWN]


def read_public_key(source: str | os.PathLike[str] | bytes | PublicKey) -> PublicKey:
    """Read a public key: a file with PEM, ``"env:NAME"``, or PEM itself as bytes.

    Raises VerifyError if it cannot be read, is not a key, or is of another algorithm; or if the
    package `cryptography` is missing.
    """
    if isinstance(source, PublicKey):
        return source
    where, pem = read_pem(source)
    return parse_public_key(pem, where)


def read_pem(source: str | os.PathLike[str] | bytes) -> tuple[str, bytes]:
    """Return the name of a key for messages, and its PEM, whose size is limited."""
    if isinstance(source, bytes):
        where, pem = "key", source
    elif b"-----BEGIN" in os.fsencode(source):  # not repeated: it may be private
        text = "key: the text of a key, expected its file or env:NAME; other users see arguments"
        raise VerifyError(text, path=None, reason="key")
    elif os.fspath(source).startswith(ENVIRONMENT):
        where, name = os.fspath(source), os.fspath(source).removeprefix(ENVIRONMENT)
        if name not in os.environ:
            text = f"{where}: the environment variable is not set, expected a key as PEM"
            raise VerifyError(text, path=where, reason="key")
        pem = os.environb[os.fsencode(name)]
    else:
        where = os.fspath(source)
        pem = _read(where)
    if len(pem) > _MAX_NBYTES:
        text = f"{where}: {len(pem)} bytes, expected a key of at most {_MAX_NBYTES}"
        raise VerifyError(text, path=where, reason="key")
    return where, pem


def parse_public_key(pem: bytes, where: str) -> PublicKey:
    """Parse PEM; `where` names the key in messages."""
    refuse_without_cryptography(where)
    key = _usual_key(pem)
    return PublicKey(_any_key(pem, where) if key is None else key, where)


def _usual_key(pem: bytes) -> Any:
    """Read a key in the form that `packer keygen` and OpenSSL write; None for any other bytes."""
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if not (pem.startswith(_BEGIN) and pem.endswith(_END)):
        return None
    try:
        der = a2b_base64(pem[len(_BEGIN) : -len(_END)].replace(b"\n", b""), strict_mode=True)
        if der.startswith(_ED25519) and len(der) == len(_ED25519) + 32:
            return Ed25519PublicKey.from_public_bytes(der[-32:])
        if der.startswith(_P256) and len(der) == len(_P256) + 65:
            return EllipticCurvePublicKey.from_encoded_point(SECP256R1(), der[-65:])
    except (Error, ValueError):
        pass  # `_any_key` says why
    return None


def _any_key(pem: bytes, where: str) -> Any:
    """Read a key in any form of PEM; raise VerifyError."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    if b"PRIVATE KEY-----" in pem:
        text = f"{where}: a private key, expected the public one, such as acme.pub; keep it secret"
        raise VerifyError(text, path=where, reason="key")
    if b"BEGIN CERTIFICATE-----" in pem:
        text = f"{where}: a certificate, expected a public key: openssl x509 -pubkey -noout -in"
        raise VerifyError(f"{text} {where}", path=where, reason="key")
    try:
        return load_pem_public_key(pem)
    except UnsupportedAlgorithm as error:
        raise VerifyError(
            f"{where}: {EXPECTED}, found {error}", path=where, reason="algorithm"
        ) from error
    except ValueError as error:
        text = f"{where}: not a public key in PEM; make one with `packer keygen`"
        raise VerifyError(text, path=where, reason="key") from error


def refuse_without_cryptography(where: str) -> None:
    """Raise VerifyError if the package is missing; nothing else of runtime needs it."""
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        text = (
            f"{where}: keys and signatures need the package cryptography: pip install cryptography"
        )
        raise VerifyError(text, path=where, reason="package") from error


def _read(path: str) -> bytes:
    try:
        data, _ = map_file(path)
    except (OSError, ValueError) as error:
        text = f"{path}: key cannot be read: {reason_of(error)}"
        raise VerifyError(text, path=path, reason="key") from error
    return bytes(data[: _MAX_NBYTES + 1])


def _verifier(key: Any, where: str) -> tuple[Callable[[bytes, bytes], None], str, bytes]:
    """Return the function that verifies (signature, data), the algorithm, and the key as DER."""
    from cryptography.hazmat.primitives.asymmetric.ec import (
        ECDSA,
        SECP256R1,
        EllipticCurvePublicKey,
    )
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.hashes import SHA256

    if isinstance(key, Ed25519PublicKey):
        return key.verify, "ed25519", _ED25519 + key.public_bytes_raw()
    if isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1):
        numbers, rule = key.public_numbers(), ECDSA(SHA256())
        point = b"\4" + numbers.x.to_bytes(32) + numbers.y.to_bytes(32)
        return (
            lambda signature, data: key.verify(signature, data, rule),
            "ecdsa-p256",
            _P256 + point,
        )
    curve = getattr(key, "curve", None)
    found = f"ECDSA on {curve.name}" if curve else type(key).__name__.removesuffix("PublicKey")
    raise VerifyError(f"{where}: key of {found}, {EXPECTED}", path=where, reason="algorithm")
