"""Random graphs with open axes; random_graphs.py makes more of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..random_graphs import check, make


@pytest.mark.parametrize("number", range(12))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_random_graph_has_the_results_of_the_reference(number: int, tmp_path: Path) -> None:
    """Thirty operators, five shapes."""
    assert check(make(1, number), tmp_path) == ""
