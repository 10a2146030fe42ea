"""What an embedder puts into a library: the blob, its manifest, and their checksums."""

from __future__ import annotations

from typing import TYPE_CHECKING

import runtime
from runtime.abi import MANIFEST
from runtime.serial.manifest import dump_manifest

from ..dialect import blob_symbol
from .checksums import blob_line, data_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.blob import Blob
    from runtime.stream import Chunk

    from ..dialect import Dialect

PRODUCER = f"dso-packer {runtime.__version__}"


def symbols_of(
    blob: Blob,
    chunks: Sequence[Chunk],
    target: str | None,
    dialect: Dialect,
    system_lib: bool,
    prefix: str,
) -> tuple[dict[str, Sequence[Chunk]], list[str]]:
    """Return the chunks of blob and manifest by their symbols, and their lines of the checksums."""
    if not chunks:
        return {}, []
    blob_name, manifest_name = prefix + blob_symbol(dialect), prefix + MANIFEST
    manifest = dump_manifest(blob, producer=PRODUCER, target=target or "")
    # A registered address says no size: there the text ends in a NUL.
    manifest += b"\0" * system_lib
    lines = [blob_line(blob_name, blob), data_line(manifest_name, manifest)]
    return {blob_name: chunks, manifest_name: [manifest]}, lines
