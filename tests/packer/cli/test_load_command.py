"""packer load: the tree, its imports, and a function called with words as arguments."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from packer import CSourceModule, export_library

from ...support import models
from ...support.command_line import ADD, COMMAND, TWO, Packer, done, refused


def test_load_prints_tree_and_result(packer: Packer) -> None:
    """--quiet leaves the result alone."""
    done(packer("export", "model.so", "add.c", "--function", ADD))
    tree = "model.so\n  library: add\n"
    assert tree == done(packer("load", "model.so"))
    assert f"{tree}add(40, -1) -> 39\n" == done(packer("load", "model.so", "add", "40", "-1"))
    assert done(packer("load", "--quiet", "model.so", "add", "--", "0x28", "-1")) == "39\n"


def test_load_shows_imports(packer: Packer, tmp_path: Path) -> None:
    """A module that two others import is drawn twice, its imports once."""
    (tmp_path / "k.cl").write_text("kernel void k() {}")
    module = "[module.{}]\nkind = 'opencl'\nsources = ['k.cl']\nimports = {}\n"
    (tmp_path / "packer.toml").write_text(
        f"[module.h]\nkind = 'c'\nsources = ['add.c']\nfunctions.add = '{TWO}'\n"
        "imports = ['a', 'b']\n"
        + module.format("a", ["c"])
        + module.format("b", ["c"]).replace("opencl", "hip")
        + module.format("c", ["d"])
        + module.format("d", []).replace("opencl", "cuda")
        + "functions.k = {}\n"
    )
    assert ", 1 function, 5 modules, " in done(packer("export", "m.so"))
    assert done(packer("load", "m.so")).splitlines() == [
        "m.so",
        "  library: add",
        "    opencl: k",
        "      opencl: k",
        "        cuda: k",
        "    hip: k",
        "      opencl (as above)",
    ]


def test_load_shows_a_model_as_a_model(packer: Packer, tmp_path: Path) -> None:
    """The signature and the graph come first; the functions of the operators are counted."""
    model = models.model()
    model.import_module(CSourceModule("int own(int x) { return x; }", functions="auto"))
    export_library(model, tmp_path / "model.so")
    assert done(packer("load", "model.so")).splitlines() == [
        "model.so",
        "  main(x.1: float32[batch, 40]) -> "
        "(scores: float32[batch, 48], hidden: float32[batch, 48])",
        "  graph: 2 operators, 3.89 kFLOP for batch = 1",
        "  relax.VMExecutable: main",
        "    library: own, 2 functions of operators",
        "    safetensors",
    ]


def test_load_shows_the_sets_of_shapes(packer: Packer, tmp_path: Path) -> None:
    """Each further one is a line; a record that cannot be read is a note."""
    record = models.record()
    ends = {"inputs": record["inputs"], "outputs": record["inputs"]}
    record["variants"] = [{"function": f"main_{i}", **ends} for i in range(1, 16)]
    export_library(models.model(record), tmp_path / "model.so")
    lines = done(packer("load", "model.so")).splitlines()
    assert lines[2] == "    also main_2(x.1: float32[batch, 40]) -> x.1: float32[batch, 40]"
    assert lines[14] == "    also 2 more sets of shapes"
    export_library(models.model({"version": 3}), tmp_path / "other.so")
    _, note, tree, *_ = done(packer("load", "other.so")).splitlines()
    assert note.startswith("  note: the graph cannot be read: ")
    assert tree == "  relax.VMExecutable: main"


ARGUMENTS = {
    "int": ("42", 42),
    "negative": ("-7", -7),
    "hexadecimal": ("0x2a", 42),
    "float": ("1e-3", 1e-3),
    "infinite": ("-inf", float("-inf")),
    "true": ("true", True),
    "false": ("False", False),
    "none": ("none", None),
    "text": ("some text", "some text"),
    "empty": ("", ""),
    "quoted": ('"42"', "42"),
}


@pytest.mark.parametrize(("text", "expected"), ARGUMENTS.values(), ids=ARGUMENTS.keys())
def test_argument_is_parsed(text: str, expected: object) -> None:
    """A word of the command line becomes the value that it looks like."""
    from packer.cli.load import parse_argument

    value = parse_argument(text)
    assert (type(expected), expected) == (type(value), value)


def test_profile_lists_operators(packer: Packer, tmp_path: Path) -> None:
    """A model's function, with an array from a file; other functions have no profile."""
    export_library(models.model(), tmp_path / "model.so")
    np.save(tmp_path / "x.npy", np.ones((4, 40), "f4"))
    text = done(packer("load", "--quiet", "--profile", "model.so", "main", "@x.npy"))
    lines = text.splitlines()
    assert lines[0].startswith("main: median of ")
    assert lines[1].split() == [
        "operator",
        "kind",
        "calls",
        "us",
        "%",
        "GFLOP/s",
        "GB/s",
        "function",
    ]
    assert re.match(r"one thread reads \d+\.\d GB/s here; /\S+ reads and writes ", lines[-1])
    assert {line.split()[0] for line in lines[2:]} >= {"/dense/MatMul", "/Mul", "together"}
    wrong = refused(packer("load", "-q", "--profile", "model.so", "main", "1"), 1)
    assert "TypeError: main: input 'x.1' of float32[batch, 40]: expected a tensor" in wrong
    wrong = refused(packer("load", "-q", "--profile", "model.so", "scaled"), 1)
    assert "--profile: 'scaled': expected a function of bytecode, found <Function scaled" in wrong
    assert "--profile needs a function" in refused(packer("load", "--profile", "model.so"), 2)


def test_error_of_a_call_is_one_line(packer: Packer) -> None:
    """Wrong arguments, an unknown function, an array that is not there."""
    done(packer("export", "model.so", "add.c", "--function", ADD))
    assert "packer: TypeError: add: " in refused(packer("load", "model.so", "add", "x", "2"))
    assert "no function 'ad' in its tree; near" in refused(packer("load", "model.so", "ad"))
    text = refused(packer("load", "model.so", "add", "@x.npy", "1"))
    assert "x.npy: cannot be read: No such file" in text


ENDLESS = """
#include <stdio.h>
#include <unistd.h>
static int run(void) { puts("runs"); fflush(stdout); for (;;) sleep(1); return 0; }
int call(void) { return run(); }
"""
CONSTRUCTOR = "__attribute__((constructor)) static void start(void) { run(); }\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("end", ["", CONSTRUCTOR], ids=["call", "constructor"])
def test_a_signal_ends_a_call_of_c(packer: Packer, tmp_path: Path, end: str, number: int) -> None:
    """The process ends by the signal while the C code runs: a shell sees 128 and its number."""
    (tmp_path / "endless.c").write_text(ENDLESS + end)
    done(packer("export", "endless.so", "endless.c", "--function", "call=int()"))
    # Python's own handler of SIGINT is not there if the tests were started by nohup.
    command = [*COMMAND, "load", "--quiet", "endless.so", "call"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: [signal.signal(n, signal.SIG_DFL) for n in (1, 2)],
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "runs\n"
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (-number, "")
