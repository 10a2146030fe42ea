"""relax.VMExecutable in libdso: the payload, the functions, TVM's protocol."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from ...support.both_readers import assert_equal, mutants
from ...support.vm_assembler import SHAPE, Program, doubling
from ..vm.test_vm_bytecode import BYTECODE_ROWS, TABLE_ROWS, make_program

KEY = "relax.VMExecutable"


def poked() -> list[Program]:
    """Every program that Python's tests refuse."""
    made = []
    for poke, _message in [*BYTECODE_ROWS.values(), *TABLE_ROWS.values()]:
        program = make_program()
        poke(program)
        made.append(program)
    return made


def test_malformed_payloads_are_refused_with_the_same_text() -> None:
    """The lists of Python's tests, and all prefixes of a payload."""
    payload = make_program().payload()
    said = assert_equal(KEY, [program.payload() for program in poked()])
    assert all(text.startswith("BlobFormatError: payload at 0x") for text in said)
    said = assert_equal(KEY, [payload[:size] for size in range(len(payload))])
    assert all(text.startswith("BlobFormatError: ") for text in said)


def test_an_earlier_fault_is_the_one_that_is_reported() -> None:
    """Names and scopes that occur twice, before or after other faults."""
    programs = []
    for poke in (
        lambda p: setattr(p.functions[1], "name", "main"),
        lambda p: p.scopes.extend([(0, "x"), (7, "y")]),
        lambda p: p.scopes.extend([(7, "x"), (-7, "y"), (7, "z")]),
        lambda p: p.constants.append((SHAPE, [*list(range(9)), -1])),
    ):
        program = make_program()
        poke(program)
        programs += [program, copy.deepcopy(program)]
        programs[-1].functions[3].name = ""
    payloads = [program.payload() for program in programs]
    payloads += [payload[:-300] for payload in payloads] + [payload[:150] for payload in payloads]
    assert_equal(KEY, payloads)


@pytest.mark.parametrize("seed", range(4))
def test_mutants_are_read_alike(seed: int) -> None:
    """Random damage is accepted or refused by both, with the same text."""
    said = assert_equal(KEY, mutants(make_program().payload(), 400, seed))
    assert 0 < sum(text.startswith(KEY) for text in said) < 380


def test_good_payloads_are_read_alike() -> None:
    """Functions with their parameters, and weights."""
    program = make_program()
    program.constants.append((70, np.ones((2, 0, 3), "int8")))
    said = assert_equal(KEY, [program.payload(), doubling().payload()])
    assert said[0].split("|")[1:3] == ["main:(x)", "helper:(a, b)"]
    assert said[0].split("|")[3:] == ["constant_0=2,32,1,2,3", "constant_6=0,8,1,2,0,3"]
