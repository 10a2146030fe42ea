"""libdso and Python's runtime see the same tree in every file, or refuse it with the same text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ...support.dso_driver import shown_by_c, shown_by_python
from ...support.paths import ROOT

FOUND = sorted((ROOT.parent / "shared" / "found").glob("*.so"))


def assert_same(path: Path) -> None:
    """Compare; the signature of a function is C's own."""
    by_c = re.sub(r"^(function \S+).*$", r"\1", shown_by_c(path), flags=re.MULTILINE)
    assert by_c == shown_by_python(path)


def test_malformed_blob(malformed_case, pack_blob) -> None:
    """Blobs with one fault each, and some without."""
    _, case, data = malformed_case
    assert_same(pack_blob(data, nbytes=case["header_nbytes"]))


def test_blob_of_real_tvm(accepted_blob, pack_blob) -> None:
    """Blobs that real TVM wrote, in a library."""
    assert_same(pack_blob(accepted_blob[1].with_suffix(".bin").read_bytes()))


def test_refused_blob_of_real_tvm(refused_blob, pack_blob) -> None:
    """Blobs that real TVM wrote by mistake."""
    assert_same(pack_blob(refused_blob[1].with_suffix(".bin").read_bytes()))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_damaged_library(path: Path) -> None:
    """Libraries that once crashed a loader."""
    assert_same(path)
