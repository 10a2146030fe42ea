"""Trust: whether a file is the one that the holder of a key signed. Nothing here runs the file.

`verify_file` reads the file and its bundle from disk. `verify_data` takes bytes that are in memory
already, such as the sealed copy that a load runs. docs/trust-format.md has the bytes.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..abi import BUNDLE
from ..error import VerifyError, shown
from ..serial.mapped_file import map_file, reason_of
from .bundle import parse_bundle, verify_bundle
from .identity import Identity as Identity
from .keys import PublicKey, read_public_key
from .room import bundle_in_room, find_room
from .version import Order, order_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .statement import Statement

    Key = str | os.PathLike[str] | bytes | PublicKey
    Signer = Sequence[PublicKey] | Identity

SUFFIX = ".sigstore.json"


def verify_file(
    path: str | os.PathLike[str],
    signer: Sequence[Key] | Identity,
    *,
    minimum_version: str | None = None,
    name: str | None = None,
    bundle: str | os.PathLike[str] | None = None,
) -> Statement:
    """Verify who signed a file, and that it is unchanged; the file is read, never run.

    Parameters
    ----------
    path : path
        The file.
    signer : sequence of path, bytes or PublicKey; or Identity
        Public keys, one of which made the signature: a file with PEM, ``"env:NAME"`` for PEM in an
        environment variable, PEM as bytes, or a `PublicKey`. Or the identity in a certificate.
    minimum_version : str, optional
        The oldest version that is accepted; the signed version must have a place in the order of
        versions (docs/trust.md).
    name : str, optional
        The name that was signed; by default that of `path`, without its folder.
    bundle : path, optional
        The signature. By default it is in the file, or beside it as ``<path>.sigstore.json``; if
        both exist, both are verified.

    Returns
    -------
    Statement
        The facts that the signature covers; all of them were verified.

    Raises
    ------
    VerifyError
        If there is no signature, if it is not from this signer, or if the file is another one than
        the signed one, or older; ``reason`` says which.

    Notes
    -----
    The result is about the bytes that were read. Another process may write to the file later.
    """
    where = os.fspath(path)
    trusted = signer if isinstance(signer, Identity) else public_keys(signer)
    data = _map(where, "the file", "io")
    beside = f"{where}{SUFFIX}" if bundle is None else os.fspath(bundle)
    is_there = bundle is not None or os.path.lexists(beside)
    sidecar = _map(beside, "the bundle", "unsigned") if is_there else None
    statement = verify_data(
        data,
        sidecar,
        trusted,
        where=where,
        bundle_name=beside,
        room=find_room(where, data),
        name=os.path.basename(where) if name is None else name,
        minimum_version=minimum_version,
    )
    statement.verify_parts(data, where)
    return statement


def verify_data(
    data: memoryview,
    sidecar: bytes | memoryview | None,
    signer: Signer,
    *,
    where: str,
    bundle_name: str = "bundle",
    room: tuple[int, int] | None = None,
    name: str | None = None,
    minimum_version: str | None = None,
    hole: tuple[int, int] | None = None,
) -> Statement:
    """Verify bytes in memory, which do not change later, with the bundle that belongs to them.

    The bundle is `sidecar`, and the one in the `room` too; `name` is the name that was signed, by
    default any. `hole` are whole pieces that `data` lacks: `Statement.verify_piece` verifies them
    when they are used, and `Statement.verify_parts` the digests of the parts. Raises as
    `verify_file` does.
    """
    found = {} if sidecar is None else {bundle_name: sidecar}
    embedded = bundle_in_room(data, room, where)
    if embedded is not None:
        found[f"{where}: {BUNDLE}"] = memoryview(embedded)
    if not found:
        text = f"{where}: no signature: no {bundle_name}, and none inside the file"
        hint = "fetch the bundle, or sign the file with `packer sign`"
        raise VerifyError(f"{text}; {hint}", path=where, reason="unsigned")
    statements = []
    for source, content in found.items():
        statement = _signed_by(signer, content, source, len(data))
        if statement.room != room and statement.nbytes == len(data):  # else `verify_bytes` refuses
            text = f"{source}: statement: room {statement.room}, expected {room}, that of the file"
            hint = "the signature is of another file, or sign this one again"
            raise VerifyError(f"{text}; {hint}", path=where, reason="statement")
        _verify_name(statement, name, where)
        _verify_version(statement, minimum_version, where)
        statements.append(statement)
    for statement in dict.fromkeys(statements):
        if hole is None:
            statement.verify_bytes(data, where)
        else:
            statement.verify_outside(data, hole, where)
    if hole is not None and len({statement.leaves for statement in statements}) > 1:
        text = f"{where}: two signatures of different files; sign the file again"
        raise VerifyError(text, path=where, reason="digest")
    return statements[0]


def public_keys(keys: Sequence[Key]) -> list[PublicKey]:
    """Read public keys, as `read_public_key` does.

    Raises ValueError if `keys` is empty, or one key instead of a list.
    """
    if isinstance(keys, str | bytes) or not keys:
        raise ValueError(f"keys {shown(keys)}, expected a list of at least one public key")
    return [read_public_key(key) for key in keys]


def _signed_by(
    signer: Signer, content: bytes | memoryview, where: str, file_nbytes: int
) -> Statement:
    """Verify the signature of a bundle, and return its statement."""
    if isinstance(signer, Identity):
        return signer.verify(content, where, file_nbytes)
    return verify_bundle(parse_bundle(content, where, file_nbytes), signer, where)


def _verify_name(statement: Statement, name: str | None, where: str) -> None:
    if name is not None and statement.name != name:
        text = f"{where}: signed as {shown(statement.name)}, expected {shown(name)}"
        hint = "rename the file, or give the name that was signed"
        raise VerifyError(f"{text}; {hint}", path=where, reason="name")


def order_of_minimum(version: str) -> Order:
    """Return what versions are compared with; raises ValueError if it is not a version."""
    try:
        return order_of(version)
    except ValueError as error:
        raise ValueError(f"minimum_version {shown(version)}: {error}") from None


def _verify_version(statement: Statement, minimum: str | None, where: str) -> None:
    if minimum is None:
        return
    found = statement.version
    expected = f"expected {minimum} or newer"
    least = order_of_minimum(minimum)
    if found is None:
        text = f"{where}: signed without a version, {expected}; sign it with --version"
        raise VerifyError(text, path=where, reason="version")
    try:
        is_older = order_of(found) < least
    except ValueError as error:
        text = f"{where}: version {shown(found)}: {error}"
        raise VerifyError(text, path=where, reason="version") from None
    if is_older:
        text = f"{where}: version {found}, {expected}; fetch the newer one"
        raise VerifyError(text, path=where, reason="version")


def _map(path: str, what: str, missing: str) -> memoryview:
    """Map a file; `missing` is the reason of the error if there is none."""
    try:
        return map_file(path)[0]
    except (OSError, ValueError) as error:
        reason = missing if isinstance(error, FileNotFoundError) else "io"
        text = f"{path}: {what} cannot be read: {reason_of(error)}"
        raise VerifyError(text, path=path, reason=reason) from error
