"""docs/importers.md lists the names of packer and runtime that our importers use."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.util import resolve_name

from ...support.paths import DOCS, ROOT

OURS = [*(ROOT / "importers").glob("*/dso_packer_*")]


def used() -> Iterator[tuple[str, str]]:
    """Yield the module and the name of each import of ours from outside of the importers."""
    for folder, path in ((root, path) for root in OURS for path in root.rglob("*.py")):
        package = ".".join((folder.name, *path.relative_to(folder).parent.parts))
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                module = resolve_name("." * node.level + (node.module or ""), package)
                if module.split(".")[0] in ("packer", "runtime"):
                    yield from ((module, alias.name) for alias in node.names)


def test_the_page_lists_what_importers_use() -> None:
    """A name that is used and not listed is added on purpose, or not used."""
    page = (DOCS / "importers.md").read_text().partition("## What an importer may use")[2]
    rows = re.findall(r"^\| `([\w.]+)` \| (.*) \|$", page, re.MULTILINE)
    listed = {(module, name) for module, names in rows for name in re.findall(r"`(\w+)`", names)}
    assert listed == {*used()}
