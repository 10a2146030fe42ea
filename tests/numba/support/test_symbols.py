"""The table of symbols is complete over what Numba registers with its compiler."""

from __future__ import annotations

import pytest
from numba import _helperlib
from numba.core.runtime import _nrt_python

from packer.importers.numba import symbols

NAMES = [
    *(f"numba_{name}" for name in _helperlib.c_helpers),
    *(name if name.startswith("_") else f"NRT_{name}" for name in _nrt_python.c_helpers),
]


@pytest.mark.parametrize("name", NAMES)
def test_every_function_of_numba_has_a_row(name: str) -> None:
    """A new release of Numba with a new function is found here."""
    origin = symbols.find(name)
    assert origin is not None
    assert origin != symbols.Refused("it is not known to this release of dso-packer")


def test_unknown_names_are_refused_or_not_numbas() -> None:
    """Python's names need objects; the names of libm are not Numba's."""
    assert isinstance(symbols.find("PyList_New"), symbols.Refused)
    assert isinstance(symbols.find("numba_new_in_0_99"), symbols.Refused)
    assert symbols.find("sin") is None
    assert symbols.files(["PyList_New", "sin"]) == []
