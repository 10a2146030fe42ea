"""Profiles of bytecode: each call instruction is an operator with its node, time and flops."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime
from runtime.graph.extent import extent_at
from runtime.graph.profile import OperatorTime, Profile
from runtime.relax.vm import VirtualMachine

from ...support import models
from ...support.vm_assembler import VOID, Code, Program, branch, call, goto, imm, packed, reg, ret
from ...support.vm_programs import make


@pytest.fixture(scope="module")
def model(tmp_path_factory: Any) -> Any:
    """The model, loaded."""
    path: Path = tmp_path_factory.mktemp("model") / "m.so"
    return runtime.load(packer.export_library(models.model(), path))


def test_operators_have_the_names_of_their_nodes(model: Any) -> None:
    """In the order of the code, with the flops of this batch; then the machine's own functions."""
    x = np.ones((5, 40), "f4")
    profile = VirtualMachine(model).profile("main", x, number=3)
    first, second, *others = profile
    assert first[:2] == ("/dense/MatMul", "dense_relu")
    assert first[3:6] == ("dso.MatMul", 1, 5 * 2 * 40 * 48)
    assert second[:2] == ("/Mul", "scaled")
    assert second.flops == 5 * 48
    assert first.nbytes > 4 * 5 * (40 + 48)
    assert second.nbytes == 4 * (2 * 5 * 48 + 48)  # and the factors
    calls = {row.name: row.calls for row in others}
    assert calls["dso.weight"] == 3
    assert calls["vm.builtin.alloc_tensor"] == 2
    assert all(row.seconds > 0 for row in profile)
    assert profile.seconds == pytest.approx(sum(row.seconds for row in profile))


def test_the_text_is_a_table(model: Any) -> None:
    """Longest first, with kinds, calls, shares and GFLOP/s; the sum is its last line."""
    text = str(VirtualMachine(model).profile("main", np.ones((200, 40), "f4")))
    lines = [line.split() for line in text.splitlines()]
    assert lines[0] == ["operator", "kind", "calls", "us", "%", "GFLOP/s", "GB/s", "function"]
    assert lines[1][:3] == ["/dense/MatMul", "dso.MatMul", "1"]
    assert lines[1][-1] == "dense_relu"
    assert float(lines[1][5]) > 0
    assert lines[-1][0] == "together"
    assert lines[-1][2] == "100.0"


def test_operators_without_a_count_show_no_speed() -> None:
    """Nor operators that count few elements, such as a Gather, and their sum."""
    few, none = OperatorTime("a", "f", 0.5, "Gather", 1, 8), OperatorTime("b", "g", 0.25, "Cast")
    assert "GFLOP/s" in str(Profile([few, none]))
    assert "0.0" not in str(Profile([few, none])).split()
    many = OperatorTime("c", "h", 0.25, "MatMul", 1, 10**9)
    assert str(Profile([few, none, many])).splitlines()[-1].split()[-1] == "1.0"


def test_times_are_those_of_the_calls() -> None:
    """Loops call an instruction several times; functions of the code add what they call."""
    code = [
        call(1, 2, reg(0)),
        call(VOID, 3, imm(1)),
        call(0, 4, reg(0)),
        branch(0, 2),
        goto(-3),
        ret(1),
    ]
    inner = Code("inner", ["n"], [call(1, 3, imm(2)), ret(0)], 2)
    functions = [Code("main", ["n"], code, 2), inner, packed("copied"), packed("nap")]
    slept = {"nap": lambda k: time.sleep(0.002 * k), "copied": lambda n: n, "less": lambda n: n - 1}
    executable = make(Program([*functions, packed("less")]), **slept)
    rows = {(row.name, row.calls): row for row in VirtualMachine(executable).profile("main", 4)}
    assert set(rows) == {("copied", 1), ("nap", 4), ("less", 4)}
    assert 0.008 <= rows["nap", 4].seconds < 0.2
    assert rows["nap", 4].op == ""
    assert rows["nap", 4].flops == 0
    (nap,) = VirtualMachine(executable).profile("inner", 1, number=2)
    assert nap.seconds >= 0.004


def test_nodes_that_share_a_function_keep_their_order() -> None:
    """Equal operators are one function; each instruction is the next node that calls it."""
    record = models.record()
    node = record["nodes"][1]
    record["nodes"] = [{**node, "name": name, "function": "f"} for name in ("a", "b")]
    code = [call(VOID, 1, reg(0)), call(VOID, 1, reg(0)), call(VOID, 1, reg(0)), ret(0)]
    executable = make(Program([Code("main", ["x"], code, 1), packed("f")]), f=lambda x: None)
    executable.import_module(models.weights(record))
    profile = VirtualMachine(executable).profile("main", np.ones((2, 40), "f4"), number=1)
    assert [row.name for row in profile] == ["a", "b", "f"]
    assert [row.flops for row in profile] == [2 * 48, 2 * 48, 0]


def test_extents_of_a_record_are_expressions() -> None:
    """Texts that are not expressions have no value, nor unknown names."""
    known = {"h": 7, "seq": 3}
    texts = {"4*seq": 12, "floor((h - 1)/2) + 1": 4, "Max(0, -h + 2)": 0, "Mod(h, 4)": 3, "h": 7}
    assert {text: extent_at(text, known) for text in texts} == texts
    bad = ("other", "h/2", "h**999999", "h h", "f(h)", "h/0", "(" * 5000, "-" * 20_000)
    assert [extent_at(text, known) for text in bad] == [None] * len(bad)


def test_functions_that_no_node_calls_are_one_row() -> None:
    """The steps between the operators of a model, such as products of extents."""
    code = [call(VOID, 1, reg(0)), call(VOID, 1, reg(0)), call(VOID, 2, reg(0)), ret(0)]
    functions = [Code("main", ["x"], code, 1), packed("step"), packed("scaled")]
    executable = make(Program(functions), step=lambda x: None, scaled=lambda x: None)
    executable.import_module(models.weights())
    profile = VirtualMachine(executable).profile("main", np.ones((2, 40), "f4"), number=2)
    assert [(row.name, row.calls) for row in profile] == [("/Mul", 1), ("step", 2)]


def test_a_profile_needs_a_function_and_a_number(model: Any) -> None:
    """A call raises the function's errors."""
    machine = VirtualMachine(model)
    with pytest.raises(runtime.FunctionNotFoundError, match="has no function 'mian'"):
        machine.profile("mian")
    with pytest.raises(ValueError, match="number 0, expected at least 1"):
        machine.profile("main", np.ones((1, 40), "f4"), number=0)
    with pytest.raises(ValueError, match="extent of axis 1, expected 40"):
        machine.profile("main", np.ones((1, 41), "f4"))


def test_a_machine_that_does_not_measure_keeps_no_costs(model: Any) -> None:
    """The model's machine stays as it was."""
    x = np.ones((1, 40), "f4")
    VirtualMachine(model).profile("main", x, number=1)
    model["main"](x)
    assert model._machine.costs() == []
