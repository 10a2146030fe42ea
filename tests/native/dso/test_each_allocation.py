"""Whichever allocation of libdso fails, a C program gets OutOfMemoryError or the right result."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import packer
import runtime

from ...fuzz.seeds import safetensors, trees
from ...support.graphs import factory, host, sum_graph
from ...support.libdso import compile_program
from ...support.needed_library import Pair
from ...support.paths import C_SOURCES
from ...support.process import EXACT_HEAP
from ...support.vm_assembler import Code, Program, ret
from ...support.vm_programs import make


def library(folder: Path) -> Path:
    """All types of modules in one library, with functions that need no argument."""
    root = host()
    tree = factory(sum_graph(), {})
    model = make(Program([Code("nothing", [], [ret(0)], 1)]))
    model.clear_imports()
    singles = [module for module in trees()[:-1] if not module.is_dso_exportable]
    for module in (*singles, runtime.SafetensorsModule(safetensors()), tree, model):
        root.import_module(module)
    return packer.export_library(root, folder / "all.so")


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """It loads, shows and uses a library until no allocation is left to fail."""
    source = (C_SOURCES / "dso_each_allocation.c").read_text()
    output = tmp_path_factory.mktemp("each") / "each"
    return compile_program("#define _GNU_SOURCE\n" + source, output)


def num_allocations(*command: Path | str, **environment: str) -> int:
    """No crash, no other error, and nothing is left allocated."""
    done = subprocess.run(
        command,
        env={**EXACT_HEAP, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return int(re.findall(r"(\d+) allocations", done.stdout)[0])


def test_every_allocation_may_fail(program, tmp_path) -> None:
    """Of a library with all types of modules."""
    functions = ["vm_load_executable", "get_graph_json", "nothing"]
    assert num_allocations(program, library(tmp_path), *functions) > 100


def test_every_allocation_of_a_bridge_may_fail(program, compile_library) -> None:
    """Of a library that leaves TVM's functions undefined."""
    undefined = compile_library((C_SOURCES / "undefined.c").read_text())
    assert num_allocations(program, undefined) > 5


def test_every_allocation_of_a_verified_load_may_fail(program, tmp_path) -> None:
    """Of a library that needs another one."""
    assert num_allocations(program, Pair(tmp_path).model, VERIFY="1") > 10
