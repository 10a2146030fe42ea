"""Libraries that real TVM exported run here, without TVM in the process, with TVM's results."""

from __future__ import annotations

import numpy as np
import pytest

import packer
import runtime
from runtime._core import Library
from runtime.blob import dump, parse

from .by_c import copying_model, library_by_c, text_of_notes, text_of_outcome
from .calls import CALLS

HOST = ("plain", "errors", "parallel", "packed", "const", "nested")
DEVICES = ("opencl_llvm", "opencl_c")
DEVICE = ("kernels", "kernels_const", "kernels_parallel", "kernels_nested")
MATRIX = [
    *((target, name) for name in HOST for target in ("llvm", "c")),
    *((target, name) for name in DEVICE for target in DEVICES),
    ("llvm", "llvm_only"),
]


@pytest.mark.parametrize(("target", "name"), MATRIX)
def test_outcomes_equal_those_of_tvm(compare, target, name) -> None:
    """Results, arrays bit by bit, and errors with their kind and text."""
    theirs, ours = compare(target, name)
    assert len(theirs) == len(ours) > 1
    for index, (expected, actual) in enumerate(zip(theirs, ours, strict=True)):
        np.testing.assert_equal(actual, expected, err_msg=f"call {index}")


@pytest.mark.parametrize(("target", "name"), MATRIX)
def test_a_c_program_has_the_same_outcomes(compare, libraries, tmp_path, target, name) -> None:
    """Results, arrays, errors, and what a callback of the program receives, bit by bit."""
    theirs, ours = compare(target, name)
    copier = copying_model(tmp_path) if target in DEVICES else None
    found, told = library_by_c(libraries / f"{target}_{name}.so", CALLS[name], copier)
    assert told == text_of_notes(theirs[-1])
    for index, call in enumerate(CALLS[name]):
        # Of both runtimes; a dictionary has Python's order.
        for result, after in (in_order(theirs[index], ours[index]), ours[index]):
            is_error = isinstance(after, str)
            shown = (f"{result}: {after}", call.make()) if is_error else (result, after)
            assert found[index] == text_of_outcome(*shown), f"call {index}"


def in_order(theirs, ours):
    """An outcome; a dictionary in it has the order of the other one."""
    if not isinstance(theirs[0], dict):
        return theirs
    return {name: theirs[0][name] for name in ours[0]}, theirs[1]


@pytest.mark.parametrize(
    ("target", "name"), [row for row in MATRIX if row[1] in ("const", "nested", *DEVICE)]
)
def test_their_trees_are_written_as_tvm_wrote_them(libraries, target, name) -> None:
    """Byte by byte, through the modules."""
    blob = Library(libraries / f"{target}_{name}.so").data("__tvm_ffi__library_bin")[8:]
    assert b"".join(map(bytes, dump(parse(blob, dialect="tvm-ffi")))) == bytes(blob)


def test_their_library_is_exported_again_here_and_refused_for_tvm(libraries, tmp_path) -> None:
    """TVM has no entry for a library within a library; with ours the host code stays TVM's."""
    theirs = runtime.load(libraries / "llvm_plain.so")
    with pytest.raises(packer.ExportError, match=r"^the root module .* is a loaded library"):
        packer.export_library(theirs, tmp_path / "refused.so", format="tvm-ffi")
    root = packer.CSourceModule("")
    root.import_module(theirs)
    with pytest.raises(packer.ExportError, match=r"root\.imported_modules\[0\] .*; copy the file"):
        packer.export_library(root, tmp_path / "refused.so", format="tvm-ffi")
    assert not (tmp_path / "refused.so").exists()
    again = runtime.load(packer.export_library(root, tmp_path / "again.so"))
    x, y = np.ones(8, "float32"), np.zeros((2, 8), "float32")
    for module, result in zip((theirs, again.imported_modules[0]), y, strict=True):
        module["add_one"](x, result)
    assert y[0].any()
    np.testing.assert_array_equal(*y)
