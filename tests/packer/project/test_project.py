"""packer.toml: the export has the described tree."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy

import packer
import runtime
from packer.project import read_project

from ...support import graphs
from .projects import HOST, KERNELS, TWO, exported, project, refusal

FUNCTIONS = ", ".join(f'{name} = "{type_}"' for name, type_ in graphs.FUNCTIONS.items())


def test_tree_is_as_described(folder: Path) -> None:
    """Every kind of module is made as described, with its imports in order."""
    found = project(
        folder,
        '[library]\noutput = "model.so"\nentry = "add"\nembed = "c"\noptions = ["-lm"]\n'
        f'{HOST}imports = ["weights", "kernels"]\n'
        '[module.weights]\nkind = "const_loader"\nconstants = { w = "w.npy" }\n'
        'by_symbol = { conv = ["w"] }\nimports = ["kernels"]\n'
        f"{KERNELS}[module.kernels.functions]\n"
        'scale = { arg_types = ["handle", "int32"], launch_param_tags = ["blockIdx.x"] }\n',
    )
    weights, kernels = found.root.imported_modules
    assert [kernels] == weights.imported_modules
    assert (str(folder / "model.so"), "add", "c", ("-lm",)) == (
        found.output,
        found.entry,
        found.embed,
        found.options,
    )
    info = runtime.FunctionInfo("scale", ["handle", "int32"], ["blockIdx.x"])
    assert ("opencl", "cl", {"scale": info}) == (kernels.type_key, kernels.fmt, kernels.functions)
    assert weights.const_vars_by_symbol == {"conv": ("w",)}
    expected = numpy.arange(6, dtype="float32").reshape(2, 3).T
    assert numpy.array_equal(expected, weights.const_vars["w"].numpy())
    assert found.counts() == (1, 3)


def test_described_library_works(folder: Path) -> None:
    """Several sources of a table merge; a function may have a doc and keep the GIL."""
    found = project(
        folder,
        '[library]\nentry = "add"\n[module.host]\nkind = "c"\nsources = ["add.c", "sub.c"]\n'
        'imports = ["more"]\n[module.host.functions]\n'
        f'add = "{TWO}"\nsub = {{ declaration = "{TWO}", doc = "Less.", gil = "keep" }}\n'
        '[module.more]\nkind = "llvm"\nsources = ["mul.ll"]\n'
        f'functions = {{ mul = "{TWO}" }}\n',
    )
    library = exported(found, folder)
    assert found.counts() == (3, 1)
    assert (library(40, 2), library["sub"](4, 5), library["mul"](4, 5)) == (42, -1, 20)
    assert library["sub"].__doc__.endswith("Less.")
    assert library.function_names() == ["add", "main", "mul", "sub"]


def test_paths_are_relative_to_the_file(folder: Path, tmp_path_factory, monkeypatch) -> None:
    """Paths do not depend on the current directory."""
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert exported(project(folder, HOST), folder)["add"](40, 2) == 42


def test_static_library_is_linked(folder: Path) -> None:
    """An object file is host code."""
    subprocess.run(["cc", "-c", "-fPIC", "add.c", "-o", "add.o"], cwd=folder, check=True)
    text = HOST.replace('"c"', '"static_library"').replace("add.c", "add.o")
    assert exported(project(folder, text), folder)["add"](40, 2) == 42


def test_addons_are_linked(folder: Path) -> None:
    """An addon may define a symbol that a module leaves undefined."""
    subprocess.run(["cc", "-c", "-fPIC", "sub.c", "-o", "sub.o"], cwd=folder, check=True)
    (folder / "add.c").write_text(
        "#include <stdint.h>\nint64_t sub(int64_t, int64_t);\n"
        "int64_t add(int64_t a, int64_t b) { return sub(a, -b); }\n"
    )
    found = project(folder, f'[library]\naddons = ["sub.o"]\n{HOST}')
    path = packer.export_library(found.root, folder / "out.so", addons=found.addons)
    assert runtime.load(path)["add"](40, 2) == 42


def test_byte_order_mark_and_crlf_are_accepted(folder: Path) -> None:
    """A file that a Windows editor wrote is read."""
    (folder / "packer.toml").write_bytes(b"\xef\xbb\xbf" + HOST.replace("\n", "\r\n").encode())
    assert read_project(folder / "packer.toml").counts() == (1, 1)


def test_numpy_is_imported_only_for_constants(folder: Path) -> None:
    """A project without constants needs neither numpy nor llvmlite."""
    (folder / "packer.toml").write_text(HOST)
    code = (
        "import sys; from packer.project import read_project; read_project()\n"
        "print({'numpy', 'llvmlite', 'elftools'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


def test_a_graph_with_its_parameters(folder: Path) -> None:
    """``kind = "graph"``: params dict or safetensors, and host code below it; it runs."""
    w = numpy.full((2, 3), 10, "float32")
    (folder / "graph.json").write_text(json.dumps(graphs.sum_graph()))
    (folder / "w.params").write_bytes(runtime.save_param_dict({"w": w}))
    header = b'{"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}'
    weights = len(header).to_bytes(8, "little") + header + w.tobytes()
    (folder / "w.safetensors").write_bytes(weights)
    (folder / "host.c").write_text(graphs.OPERATORS)
    host = f'[module.host]\nkind = "c"\nsources = ["host.c"]\nfunctions = {{ {FUNCTIONS} }}\n'
    x = numpy.ones((2, 3), "float32")
    for params in ("w.params", "w.safetensors"):
        table = f'kind = "graph"\ngraph = "graph.json"\nparams = "{params}"\nname = "sum"\n'
        found = project(folder, f'[module.model]\n{table}imports = ["host"]\n{host}')
        executor = exported(found, folder)["sum"]()
        executor.run(x=x)
        assert numpy.array_equal(executor.get_output(0).numpy(), x + 2 * w)


def test_a_graph_that_is_none(folder: Path) -> None:
    """It is checked when the project is read; the message names table and node."""
    table = '[module.model]\nkind = "graph"\ngraph = "graph.json"\n'
    assert "[module.model] graph: missing" in refusal(folder, table.replace("graph = ", "name = "))
    fields = graphs.sum_graph()
    fields["nodes"][2]["inputs"][0] = [3, 0, 0]
    (folder / "graph.json").write_text(json.dumps(fields))
    assert refusal(folder, table).startswith(
        "[module.model]: GraphExecutorFactory 'default': node 2 'first': input 0: node, expected"
    )
    (folder / "graph.json").write_bytes(b"\xff")
    place = f"[module.model]: {folder / 'graph.json'}"
    assert refusal(folder, table) == f"{place}: byte 0x0: not UTF-8, expected JSON"


def test_parameters_that_are_not_inputs_of_the_graph(folder: Path) -> None:
    """Extra names are listed."""
    (folder / "graph.json").write_text(json.dumps(graphs.sum_graph()))
    (folder / "p.params").write_bytes(runtime.save_param_dict({"u": b"1", "v": b"2"}))
    table = '[module.model]\nkind = "graph"\ngraph = "graph.json"\nparams = "p.params"\n'
    assert refusal(folder, table).endswith("'u', 'v' are not inputs of the graph")
