"""copy_from: any layout, and arrays that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runtime import Device, Tensor, empty, from_dlpack, tensor

from .strided_arrays import FORMS, strided


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("via_dlpack", [False, True])
def test_copy_from_any_layout(form: str, via_dlpack: bool) -> None:
    """NumPy is the oracle; strides are passed through the buffer protocol and through DLPack."""
    source = strided(form)
    made = empty((3, 4)).copy_from(from_dlpack(source) if via_dlpack else source)
    assert made.numpy().tolist() == source.tolist()


@pytest.mark.parametrize("form", ["compact", "transposed", "steps", "reversed", "rows"])
@pytest.mark.parametrize("source_form", FORMS)
def test_copy_into_any_layout(form: str, source_form: str) -> None:
    """A strided view is filled in place, and nothing beside it is touched."""
    source, around = strided(source_form), np.zeros(500, "f4")
    goal = np.lib.stride_tricks.as_strided(around[200:], (3, 4), strided(form).strides)
    assert from_dlpack(goal).copy_from(source).shape == (3, 4)
    assert goal.tolist() == source.tolist()
    goal[...] = 0
    assert not around.any()


def test_copy_within_one_array() -> None:
    """Overlapping memory is copied correctly."""
    numbers = np.arange(10.0)
    tensor(numbers[1:]).copy_from(numbers[:-1])
    assert numbers.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    numbers = np.arange(10.0)
    from_dlpack(numbers[::-1]).copy_from(numbers)
    assert numbers.tolist() == list(range(9, -1, -1))


@pytest.mark.parametrize("shape", [(), (0,), (1, 1), (1, 3, 1)])
def test_copy_of_edge_shapes(shape: tuple[int, ...]) -> None:
    """No elements, one, and extents of 1."""
    source = np.random.default_rng(1).random(shape)
    assert np.array_equal(empty(shape, "float64").copy_from(source).numpy(), source)


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (np.zeros((3, 2), "f4"), ValueError, r"expected shape \(2, 3\), found \(3, 2\)"),
        (np.zeros((2, 3), "f8"), TypeError, "expected float32, found float64"),
        (np.zeros((2, 3), "i4"), TypeError, "expected float32, found int32"),
        (Tensor(b"", (2, 3), "float32", incomplete=True), ValueError, "^incomplete"),
        ([[1, 2, 3]] * 2, TypeError, "list"),
    ],
)
def test_copy_that_does_not_fit(source: Any, error: type[Exception], message: str) -> None:
    """Shape and data type must equal the target's, which stays unchanged."""
    made = empty((2, 3)).copy_from(np.ones((2, 3), "f4"))
    with pytest.raises(error, match=message):
        made.copy_from(source)
    assert made.numpy().tolist() == [[1] * 3] * 2


def test_copy_into_read_only_is_refused() -> None:
    """The copy would change bytes, or pages of a library."""
    with pytest.raises(ValueError, match="expected a writable tensor, found <Tensor uint8"):
        tensor(b"abc").copy_from(b"xyz")


def test_copy_to_where_it_is() -> None:
    """No copy is made."""
    made = empty(3)
    assert made.to("cpu") is made
    assert made.to(Device("cpu")) is made
