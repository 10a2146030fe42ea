"""Signers that a certificate of Sigstore names, by the package `sigstore`; no network is asked.

A bundle has the certificate, which lives for minutes; the entry of a transparency log with the
proof that the log has it; and the time, from the log or from a timestamp authority. A trusted root
is a JSON file with the certificates of the authorities and the keys of the logs.
"""

from __future__ import annotations

import os
from json import loads
from typing import TYPE_CHECKING, Any, NoReturn

from ..error import VerifyError, shown
from .bundle import parse_fields, read_statement

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from .statement import Statement

# Of the package: the trusted root of the public instance.
_SHIPPED = ("_store", "https%3A%2F%2Ftuf-repo-cdn.sigstore.dev", "trusted_root.json")
_CHANGED = "; the bundle was changed, or belongs to another trusted root"
_OTHER = "the entry of the transparency log is of another signature; the bundle was changed"
# The beginnings of the package's messages: our reason, and our words. Others are "certificate".
_MEANINGS = (
    ("invalid log entry", "log", f"the transparency log does not prove its entry{_CHANGED}"),
    ("DSSE:", "signature", "the signature is not that of the certificate; the bundle was changed"),
    ("Integrated time only supported", "algorithm", "a log entry of an unknown kind"),
    ("Unsupported DSSE log entry type", "algorithm", "a log entry of an unknown kind"),
    ("log entry", "entry", _OTHER),
    ("transparency log entry", "entry", _OTHER),
    ("invalid DSSE log entry", "entry", _OTHER),
    ("expected SHA256 payload", "entry", _OTHER),
    ("not enough sources of verified time", "time", f"no trusted time of signing{_CHANGED}"),
    ("no Timestamp Authorities", "time", "a time of an authority that is not in the trusted root"),
    ("too many signed timestamp", "time", "too many times of signing"),
    ("duplicate timestamp", "time", "the same time of signing twice"),
    ("Invalid Timestamp Response", "time", "a malformed time of signing"),
)


class Identity:
    """A signer by the identity in a certificate.

    Parameters
    ----------
    identity : str
        The subject of the certificate, whole: an address of mail, or the URI of a workflow, such as
        ``"https://github.com/acme/models/.github/workflows/release.yml@refs/heads/main"``.
    issuer : str
        Who vouched for the identity, such as ``"https://token.actions.githubusercontent.com"``.
    trusted_root : path, optional
        A trusted root in JSON; by default that of the public instance which the package `sigstore`
        contains. It is read now.

    Raises
    ------
    VerifyError
        If the trusted root cannot be read, or the package `sigstore` is missing.
    ValueError
        If the identity or the issuer is empty.
    """

    def __init__(
        self, identity: str, issuer: str, *, trusted_root: str | os.PathLike[str] | None = None
    ) -> None:
        for name, text in (("identity", identity), ("issuer", issuer)):
            if not isinstance(text, str) or not text:
                raise ValueError(f"{name}, expected a text, found {shown(text)}")
        self.identity, self.issuer = identity, issuer
        _refuse_without_sigstore(identity)
        self._root = "sigstore's own" if trusted_root is None else os.fspath(trusted_root)
        self._verifier = _verifier(_shipped() if trusted_root is None else self._root, self._root)

    def verify(
        self, data: bytes | memoryview, where: str, file_nbytes: int | None = None
    ) -> Statement:
        """Verify a bundle, and return its statement; the parameters are as for `parse_bundle`.

        Raises
        ------
        VerifyError
            If another identity signed, if the certificate was not valid then, if the log does not
            prove the signature, or if the bundle or its statement is malformed.
        """
        from sigstore.models import Bundle

        content = bytes(data)  # the file of the bundle may change
        parse_fields(content, where, file_nbytes, "certificate")
        bundle: Any = None
        try:
            bundle = Bundle.from_json(content)
            _, payload = self._verifier.verify_dsse(bundle, _Policy(self, where))
        except VerifyError:
            raise
        except Exception as error:  # also what the package does not foresee
            self._refuse(error, bundle, where)
        return read_statement(payload, where)

    def __repr__(self) -> str:
        return f"<Identity {shown(self.identity)} of {shown(self.issuer)}>"

    def _refuse(self, error: Exception, bundle: Any, where: str) -> NoReturn:
        from sigstore.errors import CertValidationError, MetadataError
        from sigstore.models import IncompatibleEntry

        text = str(error)
        reason, words = next(
            ((reason, words) for start, reason, words in _MEANINGS if text.startswith(start)),
            ("certificate", f"the certificate cannot be used: {shown(text)}"),
        )
        if isinstance(error, IncompatibleEntry):
            reason, words = "algorithm", "a log entry of an unknown version"
        elif bundle is None and reason == "certificate":
            reason, words = "bundle", f"{shown(text)}; fetch the bundle again, or sign again"
        elif isinstance(error, CertValidationError):
            reason, words = _wrong_certificate(bundle, self._root)
        elif isinstance(error, MetadataError):
            reason, words = "root", f"{text}; the trusted root is {self._root}"
        raise VerifyError(f"{where}: {words}", path=where, reason=reason) from error


class _Policy:
    """Asked by the package about a certificate that an authority of the trusted root issued."""

    def __init__(self, signer: Identity, where: str) -> None:
        self._signer, self._where = signer, where

    def verify(self, cert: Any) -> None:
        """Refuse a certificate of another issuer or identity."""
        from sigstore.errors import VerificationError
        from sigstore.verify.policy import AnyOf, OIDCIssuer, OIDCIssuerV2
        from sigstore.verify.policy import Identity as Subject

        identity, issuer = self._signer.identity, self._signer.issuer
        try:
            AnyOf([OIDCIssuerV2(issuer), OIDCIssuer(issuer)]).verify(cert)
        except (VerificationError, ValueError) as error:
            text = f"{self._where}: identity of another issuer, expected {shown(issuer)}"
            raise VerifyError(text, path=self._where, reason="issuer") from error
        try:
            Subject(identity=identity).verify(cert)
        except (VerificationError, ValueError) as error:
            found = ", ".join(map(shown, _subjects(cert))) or "no one"
            text = f"{self._where}: signed by {found}, expected {shown(identity)}"
            raise VerifyError(text, path=self._where, reason="identity") from error


def _subjects(cert: Any) -> list[str]:
    from cryptography.x509 import SubjectAlternativeName

    names = cert.extensions.get_extension_for_class(SubjectAlternativeName).value
    return [str(name.value) for name in names]


def _wrong_certificate(bundle: Any, root: str) -> tuple[str, str]:
    """Say why no chain leads from a certificate to the trusted root."""
    certificate = bundle.signing_certificate
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    late = [time for time in _times(bundle) if not begin <= time <= end]
    if late:
        found = f"signed at {late[0]:%Y-%m-%d %H:%M:%S} UTC"
        valid = f"{begin:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S}"
        return "expired", f"{found}, when the certificate was not valid: expected {valid}"
    return "certificate", f"the certificate is of no authority of the trusted root, {root}"


def _times(bundle: Any) -> Iterator[datetime]:
    """Iterate over the times that a bundle claims."""
    from datetime import UTC, datetime

    (entry,) = loads(bundle.to_json())["verificationMaterial"]["tlogEntries"]
    if entry.get("inclusionPromise") and entry.get("integratedTime"):
        yield datetime.fromtimestamp(int(entry["integratedTime"]), UTC)
    stamps = bundle.verification_material.timestamp_verification_data
    for stamp in stamps.rfc3161_timestamps if stamps else ():
        yield stamp.tst_info.gen_time


def _verifier(path: str, root: str) -> Any:
    """Read a trusted root."""
    from sigstore.models import TrustedRoot
    from sigstore.verify import Verifier

    from ..serial.mapped_file import map_file, reason_of

    try:
        map_file(path)
        return Verifier(trusted_root=TrustedRoot.from_file(path))
    except OSError as error:
        text = f"{root}: the trusted root cannot be read: {reason_of(error)}"
        raise VerifyError(text, path=root, reason="root") from error
    except Exception as error:  # as in `Identity.verify`
        text = f"{root}: expected a trusted root of Sigstore in JSON: {shown(str(error))}"
        raise VerifyError(text, path=root, reason="root") from error


def _shipped() -> str:
    """Return the path of the trusted root in the package."""
    import sigstore

    return os.path.join(os.path.dirname(sigstore.__file__), *_SHIPPED)


def _refuse_without_sigstore(identity: str) -> None:
    try:
        import sigstore  # noqa: F401
    except ImportError as error:
        text = f"{shown(identity)}: certificates need the package sigstore"
        hint = "pip install 'dso-runtime[sigstore]'"
        raise VerifyError(f"{text}: {hint}", path=None, reason="package") from error
