"""The signed statement: in-toto Statement v1 with this project's predicate (docs/trust-format.md).

    {"_type": "https://in-toto.io/Statement/v1",
     "subject": [{"name": "model.so", "digest": {"sha256": "9f86..."}}],
     "predicateType": "https://dso-packer/library/v1",
     "predicate": {
       "size": 81920, "version": "1.2.0",
       "entries": [{"symbol": "__tvm_dev_mblob", "typeKey": "cuda", "offset": 65556, "size": 225,
                    "sha256": "..."}],
       "tree": {"pieceSize": 1048576, "leaves": "base64", "root": "..."},
       "room": {"offset": 66000, "size": 8192}}}

`version` and `room` are optional. Offsets count from the start of the file.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from hashlib import sha256
from typing import Any, NamedTuple

from ..error import VerifyError, shown
from .tree import LEAF_NBYTES, PIECE_NBYTES, leaf_of, num_pieces, pieces, root_of

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://dso-packer/library/v1"
_HEX = frozenset("0123456789abcdef")


class SignedEntry(NamedTuple):
    """One entry of a blob, with its key."""

    symbol: str  # of the blob
    type_key: str
    offset: int  # in the file
    nbytes: int
    sha256: str  # of these bytes, in hexadecimal digits


class Statement(NamedTuple):
    """The facts about a file that its signature covers.

    Attributes
    ----------
    name : str
        The file's name, without its folder.
    nbytes : int
        The file's size.
    sha256 : str
        The digest of the file, in hexadecimal digits; the room reads as zeros.
    version : str or None
        The version of the library, if the signer gave one.
    entries : tuple of SignedEntry
        The entries of its blob.
    leaves : bytes
        The hash of each piece of 1 MiB, 32 bytes each (RFC 9162; `runtime.trust.tree`).
    room : (offset, nbytes) or None
        The bytes of the file that are reserved for the signature itself.
    """

    name: str
    nbytes: int
    sha256: str
    version: str | None
    entries: tuple[SignedEntry, ...]
    leaves: bytes
    room: tuple[int, int] | None

    def verify_bytes(self, data: memoryview, where: str) -> None:
        """Verify that `data` is the signed file, which is `where` in messages: size and SHA-256.

        The message of the VerifyError has the first piece that differs.
        """
        self._verify_size(data, where)
        digest = sha256()
        for piece in pieces(data, self.room):
            digest.update(piece)
        if digest.hexdigest() != self.sha256:
            changed = self._changed(data)
            text = f"{where}: sha256 {digest.hexdigest()}, expected {self.sha256}, as signed"
            place = ""  # a statement may have leaves of the file, and the digest of another
            if changed:
                place = f"; bytes {changed[0]:#x} to {changed[-1] + PIECE_NBYTES:#x} differ"
            hint = "the file was changed (modified after packing), or the signature is of another"
            raise VerifyError(f"{text}{place}: {hint}", path=where, reason="digest")

    def verify_outside(self, data: memoryview, hole: tuple[int, int], where: str) -> None:
        """Verify the pieces of `data` outside of a hole (offset, nbytes) of whole pieces.

        Raises VerifyError as `verify_bytes` does; `verify_piece` verifies the others.
        """
        self._verify_size(data, where)
        first, stop = hole[0] // PIECE_NBYTES, sum(hole) // PIECE_NBYTES
        for index, piece in enumerate(pieces(data, self.room)):
            if not first <= index < stop:
                self.verify_piece(index, piece, where)

    def _verify_size(self, data: memoryview, where: str) -> None:
        if len(data) != self.nbytes:
            text = f"{where}: {len(data)} bytes, expected {self.nbytes}, as signed"
            hint = "it was modified after packing, or cut; fetch the file again"
            raise VerifyError(f"{text}: {hint}", path=where, reason="size")

    def verify_piece(self, index: int, piece: memoryview, where: str) -> None:
        """Verify one piece of the file, whose room reads as zeros; else raise VerifyError."""
        start = index * LEAF_NBYTES
        if leaf_of(piece) != self.leaves[start : start + LEAF_NBYTES]:
            offset = index * PIECE_NBYTES
            text = (
                f"{where}: bytes {offset:#x} to {offset + len(piece):#x} differ from those signed"
            )
            raise VerifyError(f"{text}; the file was changed", path=where, reason="digest")

    def verify_parts(self, data: memoryview, where: str) -> None:
        """Verify the hash of each piece and the digest of each entry; raise VerifyError."""
        for index, piece in enumerate(pieces(data, self.room)):
            self.verify_piece(index, piece, where)
        for entry in self.entries:
            found = sha256(data[entry.offset : entry.offset + entry.nbytes]).hexdigest()
            if found != entry.sha256:
                place = f"{entry.symbol}: {entry.type_key!r} at {entry.offset:#x}"
                text = f"{where}: {place}: sha256 {found}, expected {entry.sha256}, as signed"
                raise VerifyError(text, path=where, reason="digest")

    def _changed(self, data: memoryview) -> list[int]:
        """Return the offsets of the pieces that differ."""
        leaves = [leaf_of(piece) for piece in pieces(data, self.room)]
        return [
            i * PIECE_NBYTES
            for i, leaf in enumerate(leaves)
            if leaf != self.leaves[i * LEAF_NBYTES : (i + 1) * LEAF_NBYTES]
        ]


def dump_statement(statement: Statement) -> bytes:
    """Write a statement as JSON: the same statement gives the same bytes."""
    import json

    predicate: dict[str, Any] = {"size": statement.nbytes}
    if statement.version is not None:
        predicate["version"] = statement.version
    predicate["entries"] = [
        {
            "symbol": entry.symbol,
            "typeKey": entry.type_key,
            "offset": entry.offset,
            "size": entry.nbytes,
            "sha256": entry.sha256,
        }
        for entry in statement.entries
    ]
    predicate["tree"] = {
        "pieceSize": PIECE_NBYTES,
        "leaves": b64encode(statement.leaves).decode(),
        "root": root_of(statement.leaves).hex(),
    }
    if statement.room is not None:
        predicate["room"] = {"offset": statement.room[0], "size": statement.room[1]}
    fields = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": statement.name, "digest": {"sha256": statement.sha256}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": predicate,
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def parse_statement(payload: bytes) -> Statement:
    """Parse a statement whose signature was verified; unknown names are ignored.

    Raises ValueError, or LookupError if its type, its predicate or its digest is unknown here.
    """
    from ..serial.strict_json import parse_json

    fields = _table(parse_json(payload), "statement")
    _known(fields, "_type", STATEMENT_TYPE)
    _known(fields, "predicateType", PREDICATE_TYPE)
    subjects = _field(fields, "subject", list)
    if len(subjects) != 1:
        raise ValueError(f"subject: {len(subjects)} files, expected 1")
    subject, predicate = _table(subjects[0], "subject"), _field(fields, "predicate", dict)
    digest = _field(subject, "digest", dict)
    if "sha256" not in digest:
        raise LookupError(f"digest of {shown(', '.join(digest))}, expected sha256")
    nbytes, room = _size(predicate, "size"), predicate.get("room")
    return Statement(
        _field(subject, "name", str),
        nbytes,
        _hex(digest, "sha256"),
        _field(predicate, "version", str) if "version" in predicate else None,
        tuple(_entry(item, nbytes) for item in _field(predicate, "entries", list)),
        _leaves(_field(predicate, "tree", dict), nbytes),
        None if room is None else _place(_table(room, "room"), nbytes),
    )


def _entry(item: object, nbytes: int) -> SignedEntry:
    fields = _table(item, "entries")
    symbol, type_key = _field(fields, "symbol", str), _field(fields, "typeKey", str)
    return SignedEntry(symbol, type_key, *_place(fields, nbytes), _hex(fields, "sha256"))


def _leaves(tree: dict[str, Any], nbytes: int) -> bytes:
    if (found := _size(tree, "pieceSize")) != PIECE_NBYTES:
        raise LookupError(f"pieces of {found} bytes, expected {PIECE_NBYTES}")
    text = _field(tree, "leaves", str)
    leaves = b64decode(text, validate=True)
    if len(leaves) != num_pieces(nbytes) * LEAF_NBYTES:
        expected = f"expected {num_pieces(nbytes)} for {nbytes} bytes"
        raise ValueError(f"leaves: {len(leaves) / LEAF_NBYTES:g}, {expected}")
    if (root := root_of(leaves).hex()) != _hex(tree, "root"):
        raise ValueError(f"root {tree['root']}, expected that of the leaves, {root}")
    return leaves


def _place(fields: dict[str, Any], nbytes: int) -> tuple[int, int]:
    offset, size = _size(fields, "offset"), _size(fields, "size")
    if offset + size > nbytes:
        raise ValueError(f"{size} bytes at {offset:#x}, expected inside the file of {nbytes}")
    return offset, size


def _known(fields: dict[str, Any], name: str, expected: str) -> None:
    if (found := _field(fields, name, str)) != expected:
        raise LookupError(f"{name} {shown(found)}, expected {expected!r}")


def _table(value: object, name: str) -> dict[str, Any]:
    return _checked(value, name, dict)  # type: ignore[no-any-return]


def _field(fields: dict[str, Any], name: str, kind: type) -> Any:
    return _checked(fields.get(name), name, kind)


def _checked(value: Any, name: str, kind: type) -> Any:
    if type(value) is not kind:  # True is an int
        words = {dict: "an object", list: "a list", str: "text", int: "a number"}
        raise ValueError(f"{name}: {shown(value)}, expected {words[kind]}")
    return value


def _size(fields: dict[str, Any], name: str) -> int:
    value: int = _field(fields, name, int)
    if not 0 <= value < 1 << 63:
        raise ValueError(f"{name}: {value}, expected a size")
    return value


def _hex(fields: dict[str, Any], name: str) -> str:
    text: str = _field(fields, name, str)
    if len(text) != 64 or not _HEX.issuperset(text):
        raise ValueError(f"{name}: {shown(text)}, expected 64 lower-case hexadecimal digits")
    return text
