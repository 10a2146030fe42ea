"""The examples in the docstrings of the importer."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import dso_packer_trees

PREFIX = "dso_packer_trees."
MODULES = [found.name for found in pkgutil.walk_packages(dso_packer_trees.__path__, PREFIX)]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    """Every module can be imported alone, and its examples are right."""
    assert doctest.testmod(importlib.import_module(name)).failed == 0
