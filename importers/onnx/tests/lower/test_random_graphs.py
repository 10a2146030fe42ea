"""Random graphs: random_graphs.py and random_flow.py, with control flow, make more of them."""

from __future__ import annotations

import pytest

from .. import random_flow, random_graphs


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_graphs_have_the_results_of_the_reference() -> None:
    """Thirty operators, five shapes."""
    assert random_graphs.KIND.findings(1, range(12)) == []


def test_random_control_flow_has_the_results_of_the_reference() -> None:
    """Branches, loops and sequences, three deep, with vectors of five lengths."""
    assert random_flow.KIND.findings(1, range(4)) == []
