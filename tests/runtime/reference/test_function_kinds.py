"""Functions that are not host code, pickled: of bytecode, of a graph, of the imports."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import packer
import runtime
from runtime.error import ExportError
from runtime.reference import resident

from ...support import graphs
from ...support.process import run_python
from ...support.relax_programs import counting, growing

CALL = """
import json, pathlib, pickle, sys
print(json.dumps(pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())(5)))
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bytecode that counts, with its operators."""
    executable = counting().executable()
    executable.import_module(growing())
    return packer.export_library(executable, tmp_path_factory.mktemp("program") / "program.so")


@pytest.mark.parametrize("is_by_reference", [True, False])
def test_a_function_of_bytecode(program: Path, tmp_path: Path, is_by_reference: bool) -> None:
    """Its module is the executable, with the operators that it imports."""
    module = runtime.load(program)
    if is_by_reference:
        runtime.by_reference(module)
    data = pickle.dumps(module["main"])
    assert (len(data) <= 1024) == is_by_reference
    (tmp_path / "pickled").write_bytes(data)
    assert run_python(CALL, str(tmp_path / "pickled")) == 5
    module._reference = None


def test_a_function_of_an_import(program: Path, tmp_path: Path) -> None:
    """Host code that is not the root: the reference is that of the root."""
    module = runtime.by_reference(runtime.load(program))
    data = pickle.dumps(module["increased"])
    assert len(data) <= 1024
    del module
    resident._kept.clear()
    (tmp_path / "pickled").write_bytes(data)
    assert run_python(CALL, str(tmp_path / "pickled")) == 6


def test_the_function_that_makes_executors(tmp_path: Path) -> None:
    """A bound method: of the factory by reference."""
    weights = {"w": np.arange(4, dtype=np.float32)}
    factory = graphs.factory(graphs.sum_graph(), weights, graphs.host())
    module = runtime.load(packer.export_library(factory, tmp_path / "graph.so"))
    runtime.by_reference(module)
    data = pickle.dumps(module["default"])
    assert len(data) <= 1024
    assert pickle.loads(data).__self__ is module


def test_a_function_whose_owner_is_no_module_is_refused() -> None:
    """The error says what to pickle instead."""

    class Owned:
        owner, name = None, "f()"

    with pytest.raises(ExportError, match="is not a named function of a module, expected one;"):
        runtime.interchange.reduce_function(Owned())
