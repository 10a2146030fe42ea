"""Malformed blobs: each is refused by one of our errors, or loads where that is allowed."""

from __future__ import annotations

from typing import Any

import runtime


def _load(case: dict[str, Any], data: bytes, pack_blob) -> runtime.Module:
    if case["mode"] == "DeserializeModuleFromBytes":
        return runtime.deserialize_module_from_bytes(data)
    return runtime.load(pack_blob(data, nbytes=case["header_nbytes"]))


def test_malformed_blob(malformed_case, pack_blob) -> None:
    """Accept, refuse, or either, as the index says; nothing but our errors leaves."""
    case, data = malformed_case
    try:
        outcome = "accept" if _load(case, data, pack_blob) else ""
    except runtime.PackerError as error:
        assert isinstance(error, (runtime.BlobFormatError, runtime.LoaderNotFoundError))
        outcome = "refuse"
    assert outcome in (("accept", "refuse") if case["expect"] == "either" else (case["expect"],))
