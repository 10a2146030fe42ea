"""Rules that a file must meet before it is used: a digest, or a signature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..error import VerifyError, shown
from .identity import Identity
from .room import find_room
from .verify import SUFFIX, order_of_minimum, public_keys, verify_data

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from .sealed import Sealed
    from .verify import Key, Signer

_NUM_DIGITS = 64  # of SHA-256


class Trust:
    """A rule that a file must meet: make one with `sha256`, `keys`, `sigstore` or `anyone`.

    Examples
    --------
    >>> import runtime
    >>> trust = runtime.Trust.keys("acme.pub", minimum_version="1.2")  # doctest: +SKIP
    >>> model = runtime.load("model.so", trust=trust)  # doctest: +SKIP
    """

    def __init__(
        self, text: str, prove: Callable[[Sealed], None] | None, *, has_tree: bool = False
    ) -> None:
        self._text = text
        self._prove = prove
        self.has_tree = has_tree  # `prove` accepts a statement, whose tree verifies each piece

    @staticmethod
    def sha256(*digests: str) -> Trust:
        """Accept files with one of these SHA-256 digests.

        Parameters
        ----------
        *digests : str
            64 hexadecimal digits each; also of the libraries that the file needs.

        Raises
        ------
        ValueError
            There is no digest, or one is malformed.
        """
        known = frozenset(digest.lower() for digest in digests if isinstance(digest, str))
        wrong = [d for d in digests if not isinstance(d, str) or not _is_digest(d.lower())]
        if wrong or not known:
            found = shown(wrong[0]) if wrong else "none"
            raise ValueError(f"digests, expected {_NUM_DIGITS} hexadecimal digits, found {found}")
        return Trust(f"sha256({', '.join(sorted(known))})", lambda file: _prove_digest(file, known))

    @staticmethod
    def keys(*keys: Key, minimum_version: str | None = None) -> Trust:
        """Accept files that the holder of one of these keys signed.

        Parameters
        ----------
        *keys : path, bytes or PublicKey
            Public keys, as `runtime.trust.verify_file` takes them. They are read now.
        minimum_version : str, optional
            The oldest version that is accepted.

        Raises
        ------
        VerifyError
            A key cannot be read, or the package `cryptography` is missing.
        ValueError
            There is no key.
        """
        names = ", ".join(shown(key) for key in keys)
        return Trust(f"keys({names})", _prover(public_keys(keys), minimum_version), has_tree=True)

    @staticmethod
    def sigstore(
        identity: str,
        issuer: str,
        *,
        trusted_root: str | os.PathLike[str] | None = None,
        minimum_version: str | None = None,
    ) -> Trust:
        """Accept files that an identity signed with a certificate of Sigstore.

        Parameters
        ----------
        identity, issuer, trusted_root
            As for `runtime.trust.Identity`; the trusted root is read now.
        minimum_version : str, optional
            The oldest version that is accepted.

        Raises
        ------
        VerifyError
            The trusted root cannot be read, or the package `sigstore` is missing.
        ValueError
            The identity or the issuer is empty.

        Notes
        -----
        Nothing is asked of the network: the bundle has the certificate, the proof of the
        transparency log, and the time.
        """
        signer = Identity(identity, issuer, trusted_root=trusted_root)
        text = f"sigstore({shown(identity)}, {shown(issuer)})"
        return Trust(text, _prover(signer, minimum_version), has_tree=True)

    @staticmethod
    def anyone() -> Trust:
        """Accept every file, as a load without a policy does."""
        return Trust("anyone()", None)

    @property
    def accepts_anyone(self) -> bool:
        """True for `anyone`."""
        return self._prove is None

    def verify(self, file: Sealed) -> None:
        """Verify a sealed file; raises VerifyError if it does not prove what is asked."""
        if self._prove is not None:
            self._prove(file)

    def __repr__(self) -> str:
        return f"Trust.{self._text}"


def _prover(signer: Signer, minimum_version: str | None) -> Callable[[Sealed], None]:
    """Make the function that verifies the signatures of a file.

    Raises ValueError for a text that is not a version.
    """
    if minimum_version is not None:
        order_of_minimum(minimum_version)

    def prove(file: Sealed) -> None:
        statement = verify_data(
            file.data,
            file.sidecar(),
            signer,
            where=file.path,
            bundle_name=f"{file.path}{SUFFIX}",
            room=find_room(file.name, file.data),
            name=file.signed_name,
            minimum_version=minimum_version,
            hole=file.hole,
        )
        file.accept(statement)

    return prove


def _is_digest(digest: str) -> bool:
    return len(digest) == _NUM_DIGITS and not set(digest) - set("0123456789abcdef")


def _prove_digest(file: Sealed, known: frozenset[str]) -> None:
    if file.sha256 not in known:
        text = f"{file.path}: sha256 {file.sha256}, expected {' or '.join(sorted(known))}"
        hint = "the file was changed (modified after packing), or the digest is of another"
        raise VerifyError(f"{text}: {hint}", path=file.path, reason="digest")


def refuse(why: str) -> Trust:
    """Make a rule that no file meets; the message says why."""

    def prove(file: Sealed) -> None:
        raise VerifyError(f"{file.path}: {why}", path=file.path, reason="policy")

    return Trust("refuse", prove)
