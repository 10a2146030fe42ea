"""Libraries that real TVM exported run here, with no TVM in the process, and give what TVM gave."""

from __future__ import annotations

import numpy as np
import pytest

MATRIX = [
    *[
        (target, name)
        for name in ("plain", "errors", "parallel", "packed")
        for target in ("llvm", "c")
    ],
    ("llvm", "llvm_only"),
]


@pytest.mark.parametrize(("target", "name"), MATRIX)
def test_outcomes_equal_those_of_tvm(compare, target, name) -> None:
    """Results, arrays bit by bit, and errors with their kind and text."""
    theirs, ours = compare(target, name)
    assert len(theirs) == len(ours) > 1
    for index, (expected, actual) in enumerate(zip(theirs, ours, strict=True)):
        np.testing.assert_equal(actual, expected, err_msg=f"call {index}")
