"""packer.toml: every mistake names its place."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest

import packer
from packer.project import read_project

from .projects import HOST, KERNELS, TWO, refusal

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
        "circular imports: ",
    ),
    "own import": (
        HOST.replace("kind", 'imports = ["host"]\nkind'),
        "circular imports: host -> host",
    ),
    "several roots": (
        HOST + KERNELS,
        "[library] root: no module imports 'host', 'kernels'; name one of them as the root",
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
        "[module.w]: const_loader: 'conv' needs unknown constants ['w']",
    ),
    "factory": (
        "[module.p]\nkind = 'python'\nfactory = 'build'\n",
        "[module.p] factory: expected 'FILE.py:FUNCTION', found 'build'",
    ),
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistake_names_its_place(folder: Path, text: str, message: str) -> None:
    """File, table and key, the expected value and the value found."""
    assert message in refusal(folder, text)


def test_cycle_is_spelt_in_import_order(folder: Path) -> None:
    """The cycle is shown in the order of the file."""
    names = ("a", "b", "c")
    text = "".join(
        f"[module.{a}]\nkind = 'opencl'\nsources = ['k.cl']\nimports = ['{b}']\n"
        for a, b in zip(names, (*names[1:], names[0]), strict=True)
    )
    circle = refusal(folder, text).removeprefix("circular imports: ")
    assert circle in ("a -> b -> c -> a", "b -> c -> a -> b", "c -> a -> b -> c")


def test_file_that_is_not_text_is_refused(folder: Path) -> None:
    """A library in place of the project file is detected by its bytes."""
    (folder / "packer.toml").write_bytes(b"\x7fELF\xff")
    with pytest.raises(packer.ExportError, match="byte 0x4: not UTF-8, expected a TOML file"):
        read_project(folder / "packer.toml")


def test_object_array_is_refused(folder: Path) -> None:
    """Nothing is unpickled, and an array that is not numeric is refused."""
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
