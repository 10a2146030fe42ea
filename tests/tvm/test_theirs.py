"""Libraries that real TVM exported run here, without TVM in the process, with TVM's results."""

from __future__ import annotations

import numpy as np
import pytest

from runtime._core import Library
from runtime.blob import dump, parse

HOST = ("plain", "errors", "parallel", "packed", "const", "nested")
DEVICE = ("kernels", "kernels_const", "kernels_parallel", "kernels_nested")
MATRIX = [
    *((target, name) for name in HOST for target in ("llvm", "c")),
    *((target, name) for name in DEVICE for target in ("opencl_llvm", "opencl_c")),
    ("llvm", "llvm_only"),
]


@pytest.mark.parametrize(("target", "name"), MATRIX)
def test_outcomes_equal_those_of_tvm(compare, target, name) -> None:
    """Results, arrays bit by bit, and errors with their kind and text."""
    theirs, ours = compare(target, name)
    assert len(theirs) == len(ours) > 1
    for index, (expected, actual) in enumerate(zip(theirs, ours, strict=True)):
        np.testing.assert_equal(actual, expected, err_msg=f"call {index}")


@pytest.mark.parametrize(
    ("target", "name"), [row for row in MATRIX if row[1] in ("const", "nested", *DEVICE)]
)
def test_their_trees_are_written_as_tvm_wrote_them(libraries, target, name) -> None:
    """Byte by byte, through the modules."""
    blob = Library(libraries / f"{target}_{name}.so").data("__tvm_ffi__library_bin")[8:]
    assert b"".join(map(bytes, dump(parse(blob, dialect="tvm-ffi")))) == bytes(blob)
