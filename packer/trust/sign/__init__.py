"""sign_library(path, key): sign a library, beside it or inside it; runtime.trust verifies.

Another tool can sign: `library_statement` is what it signs, `store_bundle` takes its result.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from runtime.abi import HEADER_NBYTES
from runtime.serial.mapped_file import read_file
from runtime.trust.bundle import (
    claimed_statement,
    dump_bundle,
    most_nbytes,
    parse_bundle,
    verify_bundle,
)
from runtime.trust.room import find_room
from runtime.trust.statement import SignedEntry, Statement, dump_statement
from runtime.trust.tree import leaf_of, pieces
from runtime.trust.verify import SUFFIX

from ...files.output import replacing
from ...files.text import path_error
from ...inspect import open_library
from .keys import read_private_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...inspect import OpenedLibrary
    from .keys import Secret


class Signed(NamedTuple):
    """A library that was signed."""

    path: Path  # the file with the signature: the bundle, or the library itself
    statement: Statement  # the facts that were signed
    warning: str  # what is unsafe about the place of the key; or empty


def sign_library(
    path: str | os.PathLike[str],
    key: str | os.PathLike[str],
    *,
    version: str | None = None,
    embed: bool = False,
    secret: Secret = lambda _: None,
) -> Signed:
    """Sign a library; it is read, not loaded.

    Parameters
    ----------
    path : path
        The library.
    key : path or str
        The private key: a file with PEM; ``"env:NAME"`` for PEM in an environment variable; or the
        RFC 7512 URI of a key on a PKCS #11 token.
    version : str, optional
        The version to sign; by default that of the library's metadata, if it has one.
    embed : bool
        True to store the signature in the library, which was exported with `signature_room`; the
        file is replaced by a rename. By default it is written to ``<path>.sigstore.json``.
    secret : callable, optional
        ``secret(what)`` returns the passphrase of the key, or the PIN of the token, as bytes. It
        is called if the key needs one.

    Returns
    -------
    Signed
        The file with the signature, and the statement.

    Raises
    ------
    VerifyError
        If the key cannot be used.
    LibraryLoadError
        If the file is not a library.
    ExportError
        If a load would refuse the library, if it has no room for the signature, or if the output
        cannot be written.
    """
    private = read_private_key(key, secret)
    opened, room = _open(path)
    name = opened.report.path
    statement = statement_of(opened, os.path.basename(name), version, room)
    bundle = dump_bundle(statement, private.public.hint, private.sign)
    verify_bundle(parse_bundle(bundle, name, len(opened.data)), [private.public], name)
    # From here on the signature is known to be accepted: a token may be broken.
    return Signed(_store(opened, bundle, room, embed), statement, private.warning)


def library_statement(path: str | os.PathLike[str], *, version: str | None = None) -> bytes:
    """Return the statement to sign for a library, for `cosign`, `sigstore` and other tools.

    Parameters
    ----------
    path, version
        As for `sign_library`.

    Returns
    -------
    bytes
        JSON: an in-toto statement (docs/trust-format.md).

    Raises
    ------
    LibraryLoadError
        If the file is not a library.
    ExportError
        If a load would refuse the library.
    """
    opened, room = _open(path)
    name = os.path.basename(opened.report.path)
    return dump_statement(statement_of(opened, name, version, room))


def store_bundle(
    path: str | os.PathLike[str], bundle: str | os.PathLike[str], *, embed: bool = False
) -> Signed:
    """Store a bundle that another tool made of `library_statement`; its signature is not verified.

    Parameters
    ----------
    path, embed
        As for `sign_library`.
    bundle : path
        A Sigstore bundle of version 0.3.

    Returns
    -------
    Signed
        The file with the signature, and the statement.

    Raises
    ------
    VerifyError
        If the bundle is malformed.
    LibraryLoadError
        If the file is not a library.
    ExportError
        As for `sign_library`; also if the bundle is of another statement.
    """
    opened, room = _open(path)
    where, name = os.fspath(bundle), opened.report.path
    data = bytes(read_file(where))
    found = claimed_statement(data, where, len(opened.data))
    if found != statement_of(opened, os.path.basename(name), found.version, room):
        text = "the bundle is of another file; sign what `packer sign --statement` prints"
        raise path_error(where, text)
    return Signed(_store(opened, data.strip(), room, embed), found, "")


def _open(path: str | os.PathLike[str]) -> tuple[OpenedLibrary, tuple[int, int] | None]:
    """Open a library that a load would take, and find its room."""
    opened = open_library(os.fspath(path))
    _refuse_damaged(opened)
    return opened, find_room(opened.report.path, opened.data)


def _store(opened: OpenedLibrary, bundle: bytes, room: tuple[int, int] | None, embed: bool) -> Path:
    """Write a bundle beside the library, or into its room."""
    name = opened.report.path
    if embed and room is None:
        text = "has no room for a signature; export it with --signature-room 8192"
        raise path_error(name, text)
    most = room[1] if embed and room else most_nbytes(len(opened.data))
    if len(bundle) > most:
        hint = f"; export it with --signature-room {len(bundle) + 4095 & ~4095}" if embed else ""
        text = f"the signature has {len(bundle)} bytes, expected at most {most}{hint}"
        raise path_error(name, text)
    output = name if embed else f"{name}{SUFFIX}"
    with replacing(output) as workspace:
        with workspace.writing():
            _write(workspace.output, opened.data, bundle, room if embed else None)
        workspace.commit(is_program=embed)
    return Path(output)


def statement_of(
    opened: OpenedLibrary, name: str, version: str | None, room: tuple[int, int] | None
) -> Statement:
    """Describe a library, whose room counts as zeros."""
    digest, leaves = sha256(), []
    for piece in pieces(opened.data, room):
        digest.update(piece)
        leaves.append(leaf_of(piece))
    found = opened.report.metadata.get("version") if version is None else version
    return Statement(
        name,
        len(opened.data),
        digest.hexdigest(),
        found,
        tuple(_entries(opened)),
        b"".join(leaves),
        room,
    )


def _entries(opened: OpenedLibrary) -> Iterator[SignedEntry]:
    blob = opened.report.blob
    if blob is None or blob.offset is None:
        return
    for entry in blob.entries:
        offset = blob.offset + HEADER_NBYTES + entry.offset
        digest = sha256(opened.data[offset : offset + entry.nbytes]).hexdigest()
        yield SignedEntry(blob.symbol, entry.key, offset, entry.nbytes, digest)


def _refuse_damaged(opened: OpenedLibrary) -> None:
    """Refuse a library that no machine would load; one for another processor is fine."""
    report = opened.report
    refusal = report.cpu.refusal if report.cpu else None
    problems = [text for text in report.problems if refusal is None or refusal not in text]
    if problems:
        raise path_error(report.path, f"is not signed: {problems[0]}; export it again")


def _write(output: Path, data: memoryview, bundle: bytes, room: tuple[int, int] | None) -> None:
    """Write the bundle alone, or the library with the bundle in its room."""
    with output.open("xb") as file:
        if room is None:
            file.write(bundle)
            return
        file.write(data)
        file.seek(room[0])
        file.write(bundle + bytes(room[1] - len(bundle)))
