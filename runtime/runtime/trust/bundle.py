"""A Sigstore bundle, version 0.3: a DSSE envelope over a statement, and the hint of its key.

`runtime.trust.identity` verifies those with a certificate.

    {"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
     "verificationMaterial": {"publicKey": {"hint": "..."}, "tlogEntries": []},
     "dsseEnvelope": {"payload": "base64", "payloadType": "application/vnd.in-toto+json",
                      "signatures": [{"sig": "base64"}]}}

The signature is over ``DSSEv1 <length> <payloadType> <length> <payload>``. The key decides the
algorithm: nothing in a bundle chooses one.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ..error import VerifyError, shown
from .keys import short
from .statement import Statement, dump_statement, parse_statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .keys import PublicKey

MEDIA_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
_LEAST_LIMIT = 1 << 20
_LIMIT_SHIFT = 14  # 64 bytes for each MiB of the file: its leaf, in base64 twice
_MAX_VALUES = 1000  # a transparency log may add some; more would take long to parse
_MATERIALS = ("publicKey", "certificate", "x509CertificateChain")


class Bundle(NamedTuple):
    """A bundle whose signature is not verified yet."""

    payload: bytes  # the statement
    signature: bytes
    hint: str  # the key's name, which nothing has verified; for messages


def most_nbytes(file_nbytes: int | None) -> int:
    """Return the largest size of a bundle for a file; None if its size is unknown."""
    return _LEAST_LIMIT + ((file_nbytes or 0) >> _LIMIT_SHIFT)


def signed_bytes(payload: bytes) -> bytes:
    """Return the bytes that a signature covers: DSSE's pre-authentication encoding."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def dump_bundle(statement: Statement, hint: str, sign: Callable[[bytes], bytes]) -> bytes:
    """Sign a statement, and write the bundle; ``sign(data)`` returns the signature."""
    import json

    payload = dump_statement(statement)
    signature = sign(signed_bytes(payload))
    fields = {
        "mediaType": MEDIA_TYPE,
        "verificationMaterial": {"publicKey": {"hint": hint}, "tlogEntries": []},
        "dsseEnvelope": {
            "payload": b64encode(payload).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"sig": b64encode(signature).decode()}],
        },
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def parse_bundle(data: bytes | memoryview, where: str, file_nbytes: int | None = None) -> Bundle:
    """Parse a bundle, which may come from anywhere, for a file of `file_nbytes`.

    Raises VerifyError if it is too large, no bundle, or of a kind that no public key verifies.
    """
    with _refusing(where, "bundle", "fetch the bundle again, or sign again"):
        return _read(parse_fields(data, where, file_nbytes, "publicKey"))


def parse_fields(
    data: bytes | memoryview,
    where: str,
    file_nbytes: int | None,
    *materials: str,
) -> dict[str, Any]:
    """Parse a bundle whose signature is verified by one of these kinds of material.

    Raises as `parse_bundle` does.
    """
    if len(data) > (most := most_nbytes(file_nbytes)):
        text = f"{where}: {len(data)} bytes, expected a bundle of at most {most}"
        raise VerifyError(text, path=where, reason="oversized")
    from ..serial.strict_json import parse_json

    with _refusing(where, "bundle", "fetch the bundle again, or sign again"):
        fields = _table(parse_json(data, _MAX_VALUES), "bundle")
        _known(fields, "mediaType", MEDIA_TYPE)
        given = _table(fields.get("verificationMaterial"), "verificationMaterial")
        found = [name for name in _MATERIALS if name in given]
        if len(found) != 1 or found[0] not in materials:
            text = f"verified by {' and '.join(found) or 'nothing'}"
            raise LookupError(f"{text}, expected {' or '.join(materials)}")
        if "dsseEnvelope" not in fields:
            raise LookupError("no dsseEnvelope, expected one: the bundle signs something else")
        _known(_table(fields["dsseEnvelope"], "dsseEnvelope"), "payloadType", PAYLOAD_TYPE)
        return fields


def verify_bundle(bundle: Bundle, keys: Sequence[PublicKey], where: str) -> Statement:
    """Verify the signature of a bundle, and return its statement.

    Raises VerifyError if none of the keys made it, or if the statement is malformed.
    """
    data = signed_bytes(bundle.payload)
    if not any(key.verifies(bundle.signature, data) for key in keys):
        names = ", ".join(short(key.hint) for key in keys)
        if bundle.hint in (key.hint for key in keys):
            text = f"{where}: the signature is not that of key {short(bundle.hint)}"
            raise VerifyError(f"{text}; the bundle was changed", path=where, reason="signature")
        text = f"{where}: signed with key {shown(short(bundle.hint))}, expected {names}"
        raise VerifyError(f"{text}; name the signer's public key", path=where, reason="signer")
    return read_statement(bundle.payload, where)


def claimed_statement(data: bytes, where: str, file_nbytes: int) -> Statement:
    """Return the statement of a bundle of any kind, whose signature nothing has verified."""
    with _refusing(where, "bundle", "fetch the bundle again, or sign again"):
        fields = parse_fields(data, where, file_nbytes, "publicKey", "certificate")
        return read_statement(_bytes(fields["dsseEnvelope"], "payload"), where)


def read_statement(payload: bytes, where: str) -> Statement:
    """Parse a statement whose signature was verified; raises VerifyError if it is malformed."""
    with _refusing(where, "statement", "sign the file again", "statement: "):
        return parse_statement(payload)


@contextmanager
def _refusing(where: str, reason: str, hint: str, part: str = "") -> Iterator[None]:
    """Raise VerifyError for what is unknown here, and for what is malformed."""
    try:
        yield
    except LookupError as error:
        text = f"{where}: {part}{error.args[0]}"
        raise VerifyError(text, path=where, reason="algorithm") from error
    except VerifyError:
        raise
    except ValueError as error:
        text = f"{where}: {part}{error}; {hint}"
        raise VerifyError(text, path=where, reason=reason) from error


def _read(fields: dict[str, Any]) -> Bundle:
    envelope = fields["dsseEnvelope"]
    signatures = envelope.get("signatures")
    if not isinstance(signatures, list) or len(signatures) != 1:
        count = len(signatures) if isinstance(signatures, list) else 0
        raise ValueError(f"signatures: {count}, expected 1")
    signature = _bytes(_table(signatures[0], "signatures"), "sig")
    hint = _table(fields["verificationMaterial"]["publicKey"], "publicKey").get("hint")
    return Bundle(_bytes(envelope, "payload"), signature, hint if type(hint) is str else "")


def _known(fields: dict[str, Any], name: str, expected: str) -> None:
    if (found := fields.get(name)) != expected:
        raise LookupError(f"{name} {shown(found)}, expected {expected!r}")


def _table(value: object, name: str) -> dict[str, Any]:
    if type(value) is not dict:
        raise ValueError(f"{name}: {shown(value)}, expected an object")
    return value


def _bytes(fields: dict[str, Any], name: str) -> bytes:
    text = fields.get(name)
    if not isinstance(text, str) or not text:
        raise ValueError(f"{name}: {shown(text)}, expected base64")
    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise ValueError(f"{name}: {shown(text)}, expected base64") from error
