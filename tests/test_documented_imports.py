"""Every module that a document or docstring imports from exists, and has the names."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
IMPORT = re.compile(
    r"^[ >`.]*(?:from ((?:packer|runtime)(?:\.\w+)*) import (\([^)]*\)|[\w, ]+)"
    r"|import ((?:packer|runtime)(?:\.\w+)*)(?: as \w+)?$)",
    re.MULTILINE,
)
OPTIONAL = {"torch", "numba", "onnx", "cryptography", "lightgbm", "sklearn", "xgboost"}


def documents() -> list[Path]:
    """Pages, and files with docstrings."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    found += (ROOT / "importers").glob("*/docs/*.md")
    for package in ("packer", "runtime"):
        found += [*(ROOT / package).rglob("*.py"), *(ROOT / package).rglob("*.pyi")]
    return found


def text_of(path: Path) -> str:
    """A page; of code the docstrings' examples."""
    text = path.read_text(encoding="utf-8")
    return text if path.suffix == ".md" else "\n".join(re.findall(r"^ *>>> .*", text, re.MULTILINE))


def imports() -> list[tuple[str, str]]:
    """Modules, and the names that are imported from them."""
    found = set()
    for path in documents():
        for module, names, plain in IMPORT.findall(text_of(path)):
            found.add((module or plain, " ".join(re.findall(r"(\w+)(?: as \w+)?", names))))
    return sorted(found)


@pytest.mark.parametrize(("module", "names"), imports())
def test_a_documented_import_works(module: str, names: str) -> None:
    """The package, and each name."""
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        missing = getattr(error.__cause__ or error, "name", None)
        assert missing in OPTIONAL, error
        pytest.skip(f"{missing} is not installed")
    for name in names.split():
        if not hasattr(found, name):
            importlib.import_module(f"{module}.{name}")


def test_each_dotted_name_of_a_module_can_be_imported() -> None:
    """A page that writes `runtime.relax_vm.VirtualMachine` means a module `runtime.relax_vm`."""
    pattern = re.compile(r"\b((?:packer|runtime)\.[a-z]\w*)\.[A-Z]\w*")
    names = {name for path in documents() for name in pattern.findall(path.read_text("utf-8"))}
    assert "runtime.relax_vm" in names
    for name in names - {f"runtime.{optional}" for optional in OPTIONAL}:
        assert importlib.import_module(name)
