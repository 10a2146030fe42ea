"""The public names of packer: one list, which type checkers and the import system both read."""

from __future__ import annotations

import ast
import importlib.metadata
import pkgutil
from pathlib import Path

import pytest

import packer
import runtime


def test_every_public_name_is_imported_and_documented() -> None:
    """A name that moved, or that has no docstring, would be found by a user first."""
    for name in packer.__all__:
        assert getattr(packer, name).__doc__, name
        assert name in vars(packer)


def test_stub_lists_the_importable_names() -> None:
    """Type checkers see the names that the import system finds, and no others."""
    tree = ast.parse(Path(packer.__file__).with_suffix(".pyi").read_text())
    lines = [line for line in tree.body if isinstance(line, ast.ImportFrom)]
    listed = [alias.asname for line in lines for alias in line.names]
    assert sorted(listed) == sorted([*packer.__all__, "__version__"])
    assert {*packer.__all__} < {*dir(packer)}


def test_no_public_name_is_also_a_file_of_packer() -> None:
    """Importing packer.NAME as a module would replace the function of that name."""
    files = {module.name for module in pkgutil.iter_modules(packer.__path__)}
    assert not files & {*packer.__all__}


def test_unknown_name_is_an_attribute_error() -> None:
    """The message names the package and the name, as Python's own does."""
    with pytest.raises(AttributeError, match="^module 'packer' has no attribute 'exprt'$"):
        packer.exprt  # noqa: B018


def test_version_has_one_source() -> None:
    """Both packages and the installed distribution say the same version."""
    assert packer.__version__ == runtime.__version__
    for name in ("dso-packer", "dso-runtime"):
        assert importlib.metadata.version(name) == runtime.__version__
