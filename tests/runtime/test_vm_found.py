"""Libraries of bytecode that a campaign found: each loads, and its call ends as it should."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime

FOUND = Path(__file__).parents[1] / "data" / "found"


def model(name: str) -> Any:
    """One of the libraries."""
    return runtime.load(FOUND / f"{name}.so")


@pytest.mark.parametrize(
    ("name", "nbytes"), [("vm_int1_reads_outside", 8192), ("vm_int1_crashes", 1 << 26)]
)
def test_a_result_of_packed_elements_shows_its_own_bytes(name: str, nbytes: int) -> None:
    """Allocation, reading, writing and export count by one rule: the last byte is in the block."""
    result = model(name)["main"]()
    assert (result.nbytes, result.raw.nbytes) == (nbytes, nbytes)
    assert result.shape == (8 * nbytes,)
    result.raw[-1] = 0x5A
    assert bytes(result.raw[-1:]) == b"\x5a"
    copy = runtime.empty(result.shape, result.dtype).copy_from(result)
    assert copy.raw[nbytes - 1] == 0x5A
    with pytest.raises(BufferError, match="no buffer format; use .raw"):
        result.numpy()


def test_a_constant_is_no_heap() -> None:
    """What match_shape stores into is what alloc_shape_heap made, never a constant."""
    text = r"match_shape: argument 2, expected a shape heap that alloc_shape_heap made"
    with pytest.raises(TypeError, match=text):
        model("vm_stores_into_constant")["main"](np.zeros(4, "float32"))


def test_a_constant_is_no_output() -> None:
    """A declared writable argument refuses memory that may only be read, whoever calls."""
    text = (
        r"twice: argument 2 'y': expected a writable tensor, found a read-only one; declared as "
        r"void twice\(const float \*x, float \*y, int64_t n\)"
    )
    with pytest.raises(ValueError, match=text):
        model("vm_passes_constant_as_output")["main"](np.zeros(4, "float32"))
