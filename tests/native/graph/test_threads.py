"""Executors of one library, one per thread, at the same time."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...support.graph_arrays import W
from ...support.graphs import sum_graph
from ...support.libdso import compile_program, run_program

SOURCE = Path(__file__).with_name("threads.c").read_text()


@pytest.mark.parametrize("options", [(), ("-fsanitize=thread",)])
def test_one_executor_per_thread(tmp_path, export, options) -> None:
    """Each has its own arrays; the weights of the library are there once."""
    program = compile_program(SOURCE, tmp_path / "threads", *options)
    assert run_program(program, export(sum_graph(), {"w": W})) == "0 shared\n"
