"""packer check --without-python: what of a library only Python provides."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import packer
import runtime
from packer.inspect.check_python import check_without_python
from packer.inspect.findings import Finding, has_failed
from runtime.registry import _FAMILY_OF

from ...support.graphs import factory, graph, host, null, op, sum_graph
from ...support.paths import NATIVE
from ...support.vm_assembler import Code as Function
from ...support.vm_assembler import Program, call, packed, reg, ret
from ...support.weights_host import export_reader


def by_name(path: Path) -> dict[str, Finding]:
    """The findings."""
    return {finding.name: finding for finding in check_without_python(path)}


def test_library_with_weights_passes(tmp_path) -> None:
    """Host code and safetensors: libdso has all of it."""
    found = by_name(export_reader(tmp_path / "model.so"))
    assert {finding.status for finding in found.values()} == {"pass"}
    assert found["types"].detail == "libdso loads safetensors"


def test_own_types_are_those_that_libdso_loads() -> None:
    """The runtime's table and that of loaders.c have the same keys."""
    table = (NATIVE / "types" / "loaders.c").read_text()
    assert set(re.findall(r'^    \{"([\w.]+)", load_\w+\}', table, re.MULTILINE)) == set(_FAMILY_OF)


def test_type_of_a_package_is_named(tmp_path) -> None:
    """Its loader is Python code; a program may register one."""

    class Labels(runtime.Module):
        type_key = "test.labels"
        property_mask = runtime.ModuleProperty.BINARY_SERIALIZABLE

        def save_to_binary(self, writer) -> None:
            writer.write_u64(1)

    root = packer.CSourceModule("int f(void) { return 1; }", functions={"f": "int()"})
    root.import_module(Labels())
    found = by_name(packer.export_library(root, tmp_path / "model.so"))["type test.labels"]
    assert found.status == "fail"
    assert "dso_register_loader" in found.remedy


def test_operators_of_a_graph(tmp_path) -> None:
    """A graph passes if its library has the operators; others are named."""
    weights = {"w": np.ones((2, 3), "f4")}
    root = factory(sum_graph(), weights, host())
    found = by_name(packer.export_library(root, tmp_path / "good.so"))
    assert found["operators of the graph"].status == "pass"
    nodes = [null("x"), op("y", "only_in_python", [0])]
    root = factory(graph(nodes, [1]), {}, host())
    found = by_name(packer.export_library(root, tmp_path / "bad.so"))
    assert found["operators of the graph"].status == "fail"
    assert found["operators of the graph"].detail.endswith("has only_in_python")
    assert "dso_register_function" in found["operators of the graph"].remedy


def test_functions_of_bytecode(tmp_path, pack_blob) -> None:
    """Built-in functions are libdso's; one that Python registered is named."""
    for name, status in [("vm.builtin.copy", "pass"), ("test.in_python", "fail")]:
        main = Function("main", ["x"], [call(1, 1, reg(0)), ret(1)], 2)
        payload = Program([main, packed(name)]).payload()
        key = b"relax.VMExecutable"
        blob = (1).to_bytes(8, "little") + len(key).to_bytes(8, "little") + key + payload
        found = by_name(pack_blob(blob))["functions of the bytecode"]
        assert (found.status, name in found.detail) == (status, status == "fail")


def test_python_symbols_and_missing_declarations(compile_library) -> None:
    """An extension module cannot be used, nor can a function without a type."""
    source = "extern void *PyList_New(long);\nvoid *f(void) { return PyList_New(0); }\n"
    found = by_name(compile_library(source))
    assert (found["symbols"].status, found["functions"].status) == ("fail", "fail")
    assert "PyList_New" in found["symbols"].detail
    assert "--function" in found["functions"].remedy


@pytest.mark.parametrize("good", [True, False])
def test_command(good, tmp_path, compile_library) -> None:
    """The exit status and the JSON have these findings beside the others."""
    path = export_reader(tmp_path / "m.so") if good else compile_library("int f(void){return 1;}")
    command = [sys.executable, "-m", "packer", "check", str(path), "--json"]
    plain = subprocess.run(command, capture_output=True, text=True, check=True)
    done = subprocess.run([*command, "--without-python"], capture_output=True, text=True)
    report = json.loads(done.stdout)
    assert (done.returncode == 0) == report["ok"] == good
    assert not has_failed(Finding(**row) for row in json.loads(plain.stdout)["findings"])
    names = {row["name"] for row in report["findings"]}
    assert ("types" in names) and ("machine" in names)
