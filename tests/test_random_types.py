"""A sample of random types and wrong arguments; tests/stress/random_types.py has 10^5 of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from .support.random_types import Unit, call_wrongly, compare, load


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_types_are_read_as_the_compiler_lays_them_out(seed: int, tmp_path: Path) -> None:
    """Sizes, offsets and values of structs, unions, bit-fields and arrays, nested to depth 8."""
    unit = Unit(seed)
    assert compare(unit, load(unit, tmp_path)) > 50


def test_random_arguments_are_taken_or_refused(tmp_path: Path) -> None:
    """No object crashes a call: each is passed, or an error tells why not."""
    taken, refused = call_wrongly(Unit(4), tmp_path, 3000)
    assert taken > 10 and refused > 1000
