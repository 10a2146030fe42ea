"""Random graphs: random_graphs.py and random_flow.py, with control flow, make more of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from .. import random_flow
from ..random_graphs import check, make


@pytest.mark.parametrize("number", range(12))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_random_graph_has_the_results_of_the_reference(number: int, tmp_path: Path) -> None:
    """Thirty operators, five shapes."""
    assert check(make(1, number), tmp_path) == ""


@pytest.mark.parametrize("number", range(4))
def test_random_control_flow_has_the_results_of_the_reference(number: int, tmp_path: Path) -> None:
    """Branches, loops and sequences, three deep, with vectors of five lengths."""
    assert random_flow.check(random_flow.make(1, number), tmp_path) == ""
