"""Private keys: make a pair, and sign with one from PEM, an environment variable or a token."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from runtime.error import VerifyError
from runtime.trust.keys import ENVIRONMENT, PublicKey, read_pem, refuse_without_cryptography

from ...files.new_file import readable_by_others, refuse_existing, write_new

if TYPE_CHECKING:
    from collections.abc import Callable

    Secret = Callable[[str], "bytes | None"]

TOKEN = "pkcs11:"
ALGORITHMS = ("ed25519", "ecdsa-p256")


class PrivateKey(NamedTuple):
    """A key that signs."""

    public: PublicKey
    sign: Callable[[bytes], bytes]  # ``sign(data)`` returns the signature
    warning: str = ""  # what is unsafe about the place of the key; or empty


def create_keys(
    stem: str | os.PathLike[str], *, algorithm: str = "ed25519", passphrase: bytes | None = None
) -> tuple[Path, Path]:
    """Make a pair of keys: ``<stem>.key``, which only the owner may read, and ``<stem>.pub``.

    Parameters
    ----------
    stem : path
        The path without a suffix. Existing files are never replaced.
    algorithm : {"ed25519", "ecdsa-p256"}
        The algorithm of signatures.
    passphrase : bytes, optional
        Encrypts the private key; by default it is stored as it is.

    Returns
    -------
    tuple of (Path, Path)
        The private key (PKCS #8 in PEM, mode 0600) and the public one (SubjectPublicKeyInfo).

    Raises
    ------
    ExportError
        If one of the files exists or cannot be written.
    ValueError
        If `algorithm` is unknown.
    VerifyError
        If the package `cryptography` is missing.
    """
    text = os.fspath(stem)
    if algorithm not in ALGORITHMS:
        raise ValueError(f"unknown algorithm {algorithm!r}; known: {', '.join(ALGORITHMS)}")
    refuse_without_cryptography(text)
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    encryption = (
        serialization.BestAvailableEncryption(passphrase)
        if passphrase
        else serialization.NoEncryption()
    )
    key: Any = (
        ed25519.Ed25519PrivateKey.generate()
        if algorithm == "ed25519"
        else ec.generate_private_key(ec.SECP256R1())
    )
    form = serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(serialization.Encoding.PEM, form, encryption)
    public = PublicKey(key.public_key(), text)
    paths = Path(f"{text}.key"), Path(f"{text}.pub")
    refuse_existing(*paths)
    for path, data, mode in zip(paths, (secret, public.pem), (0o600, 0o666), strict=True):
        write_new(path, data, mode)
    return paths


def read_private_key(source: str | os.PathLike[str], secret: Secret) -> PrivateKey:
    """Find a private key: PEM in a file or a variable (``"env:NAME"``), or by a PKCS #11 URI.

    ``secret(what)`` returns the passphrase or the PIN, or None if there is none. It is called only
    if the key needs one. Raises VerifyError if the key cannot be read, is of another algorithm, or
    needs another passphrase; or if a package is missing.
    """
    text = os.fspath(source)
    if text.startswith(TOKEN):
        from .token import token_key

        return token_key(text, secret)
    where, pem = read_pem(text)
    refuse_without_cryptography(where)
    key = _parse(pem, where, secret)
    public = PublicKey(key.public_key(), where)
    return PrivateKey(public, _signer(key), _warning(text))


def _parse(pem: bytes, where: str, secret: Secret) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if b"BEGIN PUBLIC KEY-----" in pem:
        text = f"{where}: a public key, expected the private one, such as acme.key"
        raise VerifyError(text, path=where, reason="key")
    try:
        is_encrypted, given = False, None
        try:
            return load_pem_private_key(pem, None)
        except TypeError:  # the key is encrypted
            is_encrypted, given = True, secret(f"passphrase of {where}")
        if not given:
            text = f"{where}: encrypted; set DSO_KEY_PASSPHRASE to its passphrase"
            raise VerifyError(text, path=where, reason="key")
        return load_pem_private_key(pem, given)
    except UnsupportedAlgorithm as error:
        raise VerifyError(f"{where}: {error}", path=where, reason="algorithm") from error
    except ValueError as error:
        if isinstance(error, VerifyError):
            raise
        what = "the passphrase is wrong, or the key is damaged" if is_encrypted else ""
        text = f"{where}: {what or 'not a private key in PEM; make one with `packer keygen`'}"
        raise VerifyError(text, path=where, reason="key") from error


def _signer(key: Any) -> Callable[[bytes], bytes]:
    """Return the function that signs, of a key whose algorithm was checked."""
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.hashes import SHA256

    if isinstance(key, EllipticCurvePrivateKey):
        return lambda data: key.sign(data, ECDSA(SHA256()))
    return key.sign  # type: ignore[no-any-return]


def _warning(source: str) -> str:
    """Say if others may read the file of a private key."""
    return "" if source.startswith(ENVIRONMENT) else readable_by_others(source)
