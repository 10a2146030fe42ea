"""Whichever allocation of libdso fails, a C program gets an error of memory or the right result."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import packer
import runtime

from ...fuzz.seeds import safetensors, trees
from ...support.graphs import factory, host, sum_graph
from ...support.libdso import compile_program
from ...support.paths import C_SOURCES
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


def test_every_allocation_may_fail(tmp_path) -> None:
    """No crash, no other error, and nothing is left allocated."""
    source = (C_SOURCES / "dso_each_allocation.c").read_text()
    program = compile_program("#define _GNU_SOURCE\n" + source, tmp_path / "each")
    command = [program, library(tmp_path), "vm_load_executable", "get_graph_json", "nothing"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.findall(r"(\d+) allocations", done.stdout)[0]) > 100
