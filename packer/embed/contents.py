"""The contents that an embedder puts into a library: blob, manifest, and their checksums."""

from __future__ import annotations

from typing import TYPE_CHECKING

import runtime
from runtime.manifest import dump_manifest

from .checksums import blob_line, data_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.blob import Blob
    from runtime.stream import Chunk

    from ..dialect import Naming

PRODUCER = f"dso-packer {runtime.__version__}"


def symbols_of(
    blob: Blob, chunks: Sequence[Chunk], triple: str | None, naming: Naming
) -> tuple[dict[str, Sequence[Chunk]], list[str]]:
    """Return the chunks of blob and manifest by their symbols, and their lines of the checksums."""
    if not chunks:
        return {}, []
    manifest = dump_manifest(blob, producer=PRODUCER, target=triple or "")
    # The address of a registered symbol has no size: a NUL ends the text.
    manifest += b"\0" * naming.system_lib
    lines = [blob_line(naming.blob, blob), data_line(naming.manifest, manifest)]
    return {naming.blob: chunks, naming.manifest: [manifest]}, lines
