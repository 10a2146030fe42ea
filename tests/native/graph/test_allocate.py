"""The memory of a graph comes from the allocator of `dso_options`, and goes back to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...support.graphs import sum_graph
from ...support.libdso import SANITIZE, compile_program, run_program

SOURCE = Path(__file__).with_name("allocate.c").read_text()


@pytest.mark.parametrize("options", [(), SANITIZE])
def test_the_allocator_of_the_program(tmp_path, export, options) -> None:
    """One zeroed block for all arrays, kept by an output, then given back with its size."""
    program = compile_program(SOURCE, tmp_path / "allocate", *options)
    path = export(sum_graph())
    assert run_program(program, path).splitlines() == ["0 0", "1 1", "0", "25", "1 0"]
    error = "OutOfMemoryError: the graph's arrays take 256 bytes: Cannot allocate memory; "
    expected = ["0 0", f"{error}use smaller shapes", "0 0"]
    assert run_program(program, path, "none").splitlines() == expected
