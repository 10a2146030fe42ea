"""Where the files of this project are that tests read."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
NATIVE = ROOT / "runtime" / "native"
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "examples"
C_SOURCES = TESTS / "support" / "c"
DATA = TESTS / "data"
GOLDEN = DATA / "golden"
FOUND = DATA / "found"  # files that crashed something once
