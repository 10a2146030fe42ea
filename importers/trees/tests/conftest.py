"""A model of each layout for all tests here, as a file and as a library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import packer

from .models import CASES, Case


@pytest.fixture(scope="session")
def bins() -> Case:
    """A model whose trees have at most 256 leaves, so that rows become bins."""
    return CASES["xgboost-logistic"]()


@pytest.fixture(scope="session")
def numbers() -> Case:
    """A model with categories, so that nodes compare numbers."""
    return CASES["lightgbm-categories"]()


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Case], Path]:
    """Export a model once."""
    folder = tmp_path_factory.mktemp("forests")
    made: dict[int, Path] = {}

    def exported(case: Case) -> Path:
        if (key := id(case.model)) not in made:
            path = folder / f"{len(made)}.so"
            made[key] = packer.export_library(packer.from_trees(case.model), path)
        return made[key]

    return exported
