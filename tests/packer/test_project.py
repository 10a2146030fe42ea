"""packer.toml: what it describes is what is exported, and every mistake names its place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import packer
import runtime
from packer.project import Project, project_of_sources, read_project
from packer.project.sources import SourceFileModule, source_of

from .. import graphs

ADD = "#include <stdint.h>\nint64_t add(int64_t a, int64_t b) { return a + b; }\n"
SUB = "#include <stdint.h>\nint64_t sub(int64_t a, int64_t b) { return a - b; }\n"
MUL = "define i64 @mul(i64 %a, i64 %b) { %c = mul i64 %a, %b  ret i64 %c }"
TWO = "int64_t(int64_t a, int64_t b)"
HOST = f'[module.host]\nkind = "c"\nsources = ["add.c"]\nfunctions.add = "{TWO}"\n'
FUNCTIONS = ", ".join(f'{name} = "{type_}"' for name, type_ in graphs.FUNCTIONS.items())
KERNELS = '[module.kernels]\nkind = "opencl"\nsources = ["k.cl"]\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sources of every kind."""
    (tmp_path / "add.c").write_text(ADD)
    (tmp_path / "sub.c").write_text(SUB)
    (tmp_path / "mul.ll").write_text(MUL)
    (tmp_path / "k.cl").write_text("kernel void scale() {}")
    numpy.save(tmp_path / "w.npy", numpy.arange(6, dtype=">f4").reshape(2, 3).T)
    return tmp_path


def project(folder: Path, text: str) -> Project:
    """Read a project file of this text."""
    (folder / "packer.toml").write_text(text)
    return read_project(folder / "packer.toml")


def refusal(folder: Path, text: str) -> str:
    """Read a project file that is refused; give the message behind the file's path."""
    with pytest.raises(packer.ExportError) as caught:
        project(folder, text)
    path, message = str(folder / "packer.toml"), str(caught.value)
    assert message.startswith(f"{path}: ")
    assert caught.value.path == path
    return message.removeprefix(f"{path}: ")


def exported(found: Project, folder: Path) -> runtime.Module:
    """Export a project and load it."""
    return runtime.load(packer.export_library(found.root, folder / "out.so", entry=found.entry))


def test_tree_is_as_described(folder: Path) -> None:
    """Every kind of module becomes what it says, with its imports in order."""
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
    """The current directory does not matter."""
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert exported(project(folder, HOST), folder)["add"](40, 2) == 42


def test_static_library_is_linked(folder: Path) -> None:
    """An object file is host code."""
    subprocess.run(["cc", "-c", "-fPIC", "add.c", "-o", "add.o"], cwd=folder, check=True)
    text = HOST.replace('"c"', '"static_library"').replace("add.c", "add.o")
    assert exported(project(folder, text), folder)["add"](40, 2) == 42


def test_addons_are_linked(folder: Path) -> None:
    """What a module leaves undefined may come from an addon."""
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


MISTAKES = {
    "syntax": ("[library]\noutput = \n", "line 2, column 10: invalid value"),
    "digits": ("x = " + "9" * 5000, "exceeds the limit (4300 digits)"),
    "nesting": ("x = " + "[" * 100_000, "arrays or tables are nested too deep"),
    "top key": (f"[libary]\n{HOST}", "libary: unknown key; near names: 'library'"),
    "library key": (f"[library]\nouput = 'x'\n{HOST}", "[library] ouput: unknown key; near names"),
    "module key": (
        HOST.replace("sources", "surces"),
        "[module.host] surces: unknown key; near names: 'sources'",
    ),
    "key of another kind": (
        HOST.replace("kind", 'fmt = "cl"\nkind'),
        "[module.host] fmt: unknown key",
    ),
    "no modules": ("[library]\n", "has no [module.NAME] table, expected at least one"),
    "no table": ("library = 3\n", "library: expected a table, found 3"),
    "no kind": ("[module.host]\n", "[module.host] kind: missing, expected a string"),
    "kind": (
        KERNELS.replace("opencl", "opencll"),
        "[module.kernels] kind: unknown kind 'opencll'; near names: 'opencl'",
    ),
    "kind of nothing like it": (KERNELS.replace("opencl", "Rust"), "it has: 'aocl', 'c', 'cc',"),
    "kind in capitals": (KERNELS.replace("opencl", "OpenCL"), "near names: 'opencl'"),
    "embed": (
        f"[library]\nembed = 'b'\n{HOST}",
        "[library] embed: expected one of 'auto', 'c', 'llvm', 'segment', found 'b'",
    ),
    "type": (f"[library]\noutput = 3\n{HOST}", "[library] output: expected a string, found 3"),
    "array": (
        HOST.replace('["add.c"]', '"add.c"'),
        "[module.host] sources: expected an array of strings, found 'add.c'",
    ),
    "long value": (
        HOST.replace('["add.c"]', f'"{"a" * 99}"'),
        f"[module.host] sources: expected an array of strings, found '{'a' * 56}...",
    ),
    "no sources": (
        HOST.replace('"add.c"', ""),
        "[module.host] sources: missing, expected an array of paths, one at least",
    ),
    "missing source": (HOST.replace("add.c", "ad.c"), "ad.c: cannot be read: No such file"),
    "folder": (HOST.replace("add.c", "."), "/.: is a folder, expected a regular file"),
    "NUL": (HOST.replace("add.c", "\\u0000"), "no file can have this name"),
    "unknown import": (
        HOST.replace("kind", 'imports = ["kernel"]\nkind') + KERNELS,
        "[module.host] imports: there is no module 'kernel'; near names: 'kernels'",
    ),
    "cycle": (
        HOST.replace("kind", 'imports = ["kernels"]\nkind') + KERNELS + 'imports = ["host"]\n',
        "imports go in a circle: ",
    ),
    "own import": (
        HOST.replace("kind", 'imports = ["host"]\nkind'),
        "imports go in a circle: host -> host",
    ),
    "several roots": (
        HOST + KERNELS,
        "[library] root: nobody imports 'host', 'kernels', so which is the root? name it",
    ),
    "unknown root": (
        f"[library]\nroot = 'hots'\n{HOST}",
        "[library] root: there is no module 'hots'; near names: 'host'",
    ),
    "unreached": (
        f"[library]\nroot = 'host'\n{HOST}{KERNELS}",
        "the root 'host' does not reach 'kernels'",
    ),
    "declaration": (HOST.replace("b)", "struct x b)"), "[module.host]: "),
    "declaration table": (
        HOST.replace("functions.add =", "functions.add.declaratoin ="),
        "[module.host.functions.add] declaratoin: unknown key; near names: 'declaration'",
    ),
    "declaration type": (
        HOST.replace(f'"{TWO}"', "3"),
        "[module.host.functions] add: expected a string, found 3",
    ),
    "gil": (
        HOST.replace(f'"{TWO}"', f'{{ declaration = "{TWO}", gil = "no" }}'),
        "[module.host.functions.add] gil: expected one of 'release', 'keep', found 'no'",
    ),
    "LLVM type": (
        "[module.m]\nkind = 'llvm'\nsources = ['mul.ll']\nfunctions.mul = 'int(int x)'\n",
        "[module.m]: mul: the IR function has type i64 (i64, i64), expected i32 (i32)",
    ),
    "LLVM": (
        "[module.m]\nkind = 'llvm'\nsources = ['add.c']\n",
        "[module.m]: LLVM refuses the IR: ",
    ),
    "two device files": (
        KERNELS.replace('"k.cl"', '"k.cl", "add.c"'),
        "[module.kernels] sources: expected one file, found 2",
    ),
    "kernel's type": (
        f"{KERNELS}functions.scale.arg_types = ['int7x']\n",
        "[module.kernels.functions.scale] arg_types: ",
    ),
    "kernel's key": (
        f"{KERNELS}functions.scale.args = []\n",
        "[module.kernels.functions.scale] args: unknown key; near names: 'arg_types'",
    ),
    "no array": (
        "[module.w]\nkind = 'const_loader'\nconstants = { w = 'add.c' }\n",
        "cannot be read as a .npy array",
    ),
    "constant": (
        "[module.w]\nkind = 'const_loader'\nby_symbol = { conv = ['w'] }\n",
        "[module.w]: const_loader: 'conv' needs constants ['w'] that are not there",
    ),
    "factory": (
        "[module.p]\nkind = 'python'\nfactory = 'build'\n",
        "[module.p] factory: expected 'FILE.py:FUNCTION', found 'build'",
    ),
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistake_names_its_place(folder: Path, text: str, message: str) -> None:
    """File, table and key, what was expected and what was found."""
    assert message in refusal(folder, text)


def test_cycle_is_spelt_in_import_order(folder: Path) -> None:
    """The circle reads as the file does."""
    names = ("a", "b", "c")
    text = "".join(
        f"[module.{a}]\nkind = 'opencl'\nsources = ['k.cl']\nimports = ['{b}']\n"
        for a, b in zip(names, (*names[1:], names[0]), strict=True)
    )
    circle = refusal(folder, text).removeprefix("imports go in a circle: ")
    assert circle in ("a -> b -> c -> a", "b -> c -> a -> b", "c -> a -> b -> c")


def test_file_that_is_no_text_is_refused(folder: Path) -> None:
    """A library in place of the project file is told by its bytes."""
    (folder / "packer.toml").write_bytes(b"\x7fELF\xff")
    with pytest.raises(packer.ExportError, match="byte 0x4: not UTF-8, expected a TOML file"):
        read_project(folder / "packer.toml")


def test_object_array_is_refused(folder: Path) -> None:
    """Nothing is unpickled, and what is no number is refused."""
    text = "[module.w]\nkind = 'const_loader'\nconstants = { w = 'w.npy' }\n"
    numpy.save(folder / "w.npy", numpy.array([{}]), allow_pickle=True)
    assert "cannot be read as a .npy array: Object arrays" in refusal(folder, text)
    numpy.save(folder / "w.npy", numpy.array(["text"]))
    assert "[module.w] constants: a buffer of format" in refusal(folder, text)


def test_array_with_a_damaged_header_is_refused(folder: Path) -> None:
    """The error is ours, whatever numpy's parser raises: here one of tokenize."""
    text = "[module.w]\nkind = 'const_loader'\nconstants = { w = 'w.npy' }\n"
    numpy.save(folder / "w.npy", numpy.ones((2, 3)))
    data = (folder / "w.npy").read_bytes()
    (folder / "w.npy").write_bytes(data.replace(b"}  ", b"} ("))
    message = refusal(folder, text)
    assert "w.npy: cannot be read as a .npy array: " in message
    assert "EOF in multi-line statement" in message


FACTORY = "[module.own]\nkind = 'python'\nfactory = 'build.py:make'\n"


def test_factory_makes_the_module(folder: Path) -> None:
    """It may import what lies beside it; nothing of it stays in the interpreter or the folder."""
    (folder / "beside_build.py").write_text("code = 'kernel void f() {}'\n")
    (folder / "build.py").write_text(
        "from dataclasses import dataclass\nimport beside_build\nimport runtime\n"
        "@dataclass\nclass Kernel:\n    name: str\n"
        "def make():\n    infos = [runtime.FunctionInfo(Kernel('f').name)]\n"
        "    return runtime.DeviceModule('opencl', beside_build.code, 'cl', infos)\n"
    )
    search, before = list(sys.path), sorted(os.listdir(folder))
    found = project(folder, FACTORY + "imports = ['kernels']\n" + KERNELS)
    assert found.root.get_source() == "kernel void f() {}"
    assert [module.type_key for module in found.root.imported_modules] == ["opencl"]
    assert search == sys.path
    assert not {"beside_build", "build", "packer factory"} & set(sys.modules)
    assert sorted([*before, "packer.toml"]) == sorted(os.listdir(folder))


FACTORY_MISTAKES = {
    "raises": ("def make():\n    return 1 // 0\n", ":2: ZeroDivisionError: integer division"),
    "on import": ("\nimport nonesuch\n", ":2: ModuleNotFoundError: No module named 'nonesuch'"),
    "syntax": ("x = 1\ndef make(:\n", ":2: SyntaxError: "),
    "exits": ("import sys\nsys.exit(0)\n", ":2: SystemExit: 0"),
    "other type": ("def make():\n    return []\n", ": make() returns list, expected a runtime.Mo"),
    "other name": ("def mak():\n    pass\n", ": has no function 'make'; near names: 'mak'"),
    "arguments": ("def make(x):\n    pass\n", ": TypeError: make() missing 1 required"),
    "our error": (
        "import packer\ndef make():\n    return packer.CSourceModule('nonesuch.c')\n",
        ":3: nonesuch.c: cannot be read as source",
    ),
}


@pytest.mark.parametrize(
    ("code", "message"), FACTORY_MISTAKES.values(), ids=FACTORY_MISTAKES.keys()
)
def test_factory_mistake_names_its_line(folder: Path, code: str, message: str) -> None:
    """Whatever the user's code does, the error says where in it."""
    (folder / "build.py").write_text(code)
    assert f"[module.own]: {folder}/build.py{message}" in refusal(folder, FACTORY)
    assert "packer factory" not in sys.modules


def test_sources_share_their_declarations(folder: Path) -> None:
    """Each function goes to the LLVM file that defines it, else to C, wherever C has it."""
    subprocess.run(["cc", "-c", "-fPIC", "sub.c", "-o", "sub.o"], cwd=folder, check=True)
    files = [folder / name for name in ("sub.o", "mul.ll", "add.c")]
    found = project_of_sources(files, dict.fromkeys(("sub", "mul", "add"), TWO))
    library = exported(found, folder)
    assert tuple(library[name](*a) for name, a in CALLS.items()) == (42, 40, 20)
    assert found.counts() == (3, 1)


CALLS = {"add": (40, 2), "sub": (42, 2), "mul": (4, 5)}


@pytest.mark.parametrize("order", [("add.c", "sub.c"), ("sub.c", "add.c")])
def test_wrong_declaration_is_a_compile_error_in_any_file(folder: Path, order) -> None:
    """The file that defines the function need not be the first."""
    files = [folder / name for name in order]
    found = project_of_sources(files, {"add": TWO, "sub": "double(double a)"})
    with pytest.raises(packer.ToolchainError, match="conflicting types for 'sub'"):
        packer.export_library(found.root, folder / "out.so")


def test_unknown_suffix_is_refused(folder: Path) -> None:
    """Device code is for the project file."""
    with pytest.raises(packer.ExportError, match=r"suffix '.cl', expected one of .*packer\.toml"):
        source_of(folder / "k.cl")
    assert isinstance(project_of_sources([folder / "add.c"], {}).root, SourceFileModule)


def test_changed_input_is_noticed(folder: Path) -> None:
    """A file that was written again, or is gone, is not what was read."""
    inputs = project(folder, HOST).inputs
    inputs.check_unchanged()
    assert (folder / "packer.toml", folder / "add.c") == inputs.paths
    (folder / "add.c").write_text(ADD + "/* more */")
    with pytest.raises(packer.ExportError, match=r"add\.c: was changed while it was exported"):
        inputs.check_unchanged()
    (folder / "add.c").unlink()
    with pytest.raises(packer.ExportError, match=r"add\.c: cannot be read: No such file"):
        inputs.check_unchanged()


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
    """Row D9: it is checked when the project is read; the message names table and node."""
    table = '[module.model]\nkind = "graph"\ngraph = "graph.json"\n'
    assert "[module.model] graph: missing" in refusal(folder, table.replace("graph = ", "name = "))
    fields = graphs.sum_graph()
    fields["nodes"][2]["inputs"][0] = [3, 0, 0]
    (folder / "graph.json").write_text(json.dumps(fields))
    assert refusal(folder, table).startswith(
        "[module.model]: GraphExecutorFactory 'default': node 2 'first': input 0: node, expected"
    )
    (folder / "graph.json").write_bytes(b"\xff")
    assert refusal(folder, table) == "[module.model] graph: byte 0x0: not UTF-8, expected JSON"


def test_parameters_that_are_no_inputs_of_the_graph(folder: Path) -> None:
    """Row D15: extra names are listed."""
    (folder / "graph.json").write_text(json.dumps(graphs.sum_graph()))
    (folder / "p.params").write_bytes(runtime.save_param_dict({"u": b"1", "v": b"2"}))
    table = '[module.model]\nkind = "graph"\ngraph = "graph.json"\nparams = "p.params"\n'
    assert refusal(folder, table).endswith("'u', 'v' are no inputs of the graph")
