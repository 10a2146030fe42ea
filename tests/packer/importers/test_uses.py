"""docs/importers.md lists the names of packer and runtime that our importers use."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import resolve_name

from ...support.paths import DOCS, ROOT

OURS = [*(ROOT / "importers").glob("*/dso_packer_*")]
# The modules with public names, each with the page that describes these.
PAGES = {
    "packer": "reference/api.md",
    "packer.operators": "operators.md",
    "packer.relax": "relax.md",
    "runtime": "reference/api.md",
}


def used() -> Iterator[tuple[str, str]]:
    """Yield module and name of each import of packer or runtime from outside of the importers."""
    for folder, path in ((root, path) for root in OURS for path in root.rglob("*.py")):
        package = ".".join((folder.name, *path.relative_to(folder).parent.parts))
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                module = resolve_name("." * node.level + (node.module or ""), package)
                if module.split(".")[0] in ("packer", "runtime"):
                    yield from ((module, alias.name) for alias in node.names)


def is_public(module: str, name: str) -> bool:
    """Return True for a module of `PAGES`, and for a name in the `__all__` of one."""
    return f"{module}.{name}" in PAGES or (
        module in PAGES and name in import_module(module).__all__
    )


def test_the_page_lists_what_importers_use() -> None:
    """A name that is used and not listed is added on purpose, or not used."""
    page = (DOCS / "importers.md").read_text().partition("## What an importer may use")[2]
    rows = re.findall(r"^\| `([\w.]+)` \| (.*) \|$", page, re.MULTILINE)
    listed = {(module, name) for module, names in rows for name in re.findall(r"`(\w+)`", names)}
    assert listed == {pair for pair in used() if not is_public(*pair)}
    assert len(listed) <= 30


def test_public_names_are_described() -> None:
    """Each on the page of its module."""
    for module, page in PAGES.items():
        text = (DOCS / page).read_text()
        for name in import_module(module).__all__:
            assert re.search(rf"\b{name}\b", text), f"{module}.{name}"
