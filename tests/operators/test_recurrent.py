"""dso_op_recurrent beside NumPy in double precision, at every level of this machine."""

from __future__ import annotations

import numpy as np
import pytest

from ..support.operators import assert_close
from ..support.recurrent import GATES, Layer, expected, recurrent


def compare(library, layer: Layer) -> None:
    """Fail unless every result is NumPy's."""
    found, wanted = recurrent(library, layer), expected(layer)
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        assert_close(found[name], array)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("hidden", [1, 15, 16, 17, 33, 100, 128])
def test_states_of_any_size_are_numpys(library, kind, hidden) -> None:
    """Below, at and above the sizes of blocks and panels; of one row and of several."""
    for batch in (1, 3):
        compare(library, Layer(kind, 1, 4, batch, hidden))


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("batch", [1, 2, 14, 15, 29])
def test_a_batch_is_computed_in_tiles(library, kind, batch) -> None:
    """Both directions, from given states."""
    compare(library, Layer(kind, 2, 3, batch, 40, has_states=True))


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize(("directions", "is_reverse"), [(1, False), (1, True), (2, False)])
def test_each_row_ends_at_its_length(library, kind, directions, is_reverse) -> None:
    """One is empty, one whole; backwards a row begins at its own end."""
    lengths = np.array([5, 0, 3, 1], np.int32)
    layer = Layer(kind, directions, 5, 4, 20, is_reverse, has_states=True, lengths=lengths)
    compare(library, layer)


@pytest.mark.parametrize("hidden", [5, 48])
def test_gates_look_at_the_cell(library, hidden) -> None:
    """The output gate at the new one."""
    compare(library, Layer("lstm", 2, 4, 3, hidden, has_peephole=True, has_states=True))


@pytest.mark.parametrize("kind", GATES)
def test_arguments_of_activations_are_limited(library, kind) -> None:
    """After a peephole and a reset are in them."""
    has_peephole = kind == "lstm"
    layer = Layer(kind, 2, 4, 3, 40, has_peephole=has_peephole, has_states=True, clip=0.5)
    compare(library, layer)


@pytest.mark.parametrize("kind", GATES)
def test_without_steps_the_last_states_are_zeros(library, kind) -> None:
    """As of an empty row, and y has no element."""
    found = recurrent(library, Layer(kind, 1, 0, 2, 20, has_states=True))
    assert found["y"].size == 0
    assert not any(array.any() for array in found.values())


def test_activations_of_great_and_small_sums(library) -> None:
    """They end at their limits, keep what is near 0, and NaN stays."""
    layer = Layer("rnn_tanh", 1, 1, 1, 16)
    values = [0, 1e-30, 1e-4, -0.3, 1, -3, 8.9, 9.1, -50, 1e30, -np.inf, np.inf, np.nan]
    layer.x[0, 0, 0, 0, : len(values)] = values
    with np.errstate(invalid="ignore"):
        wanted = np.tanh(layer.x.astype(np.float64)).reshape(1, 1, 1, 16)
    found = recurrent(library, layer)["y"]
    np.testing.assert_allclose(found, wanted, rtol=5e-7)
