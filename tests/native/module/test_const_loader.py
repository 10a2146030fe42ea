"""const_loader in libdso: the payload, and constants that reach host code once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runtime
from runtime.stream import Writer
from runtime.tensors.ndarray import write_named_arrays

from ...support.payloads import assert_equal, mutants

KEY = "const_loader"
CONSTANTS = {"a": np.arange(5, dtype="int8"), "b": np.ones((2, 3), "float32"), "": np.zeros(0)}


def payload(names: Any, lists: Any, **arrays: Any) -> bytes:
    """The bytes of constants, symbols, and the constants of each."""
    writer = Writer()
    tensors = {n: runtime.tensors.tensor.tensor(a) for n, a in arrays.items()}
    write_named_arrays(writer, tensors)
    writer.write_vector(names, writer.write_string)
    writer.write_vector(lists, lambda one: writer.write_vector(one, writer.write_string))
    return b"".join(bytes(chunk) for chunk in writer.finish())


GOOD = payload(["f", "g"], [["b", "a"], []], a=CONSTANTS["a"], b=CONSTANTS["b"])
REFUSED = [
    payload(["f"], [], a=CONSTANTS["a"]),
    payload([], [["a"]], a=CONSTANTS["a"]),
    payload(["f", "g", "f"], [[], [], []]),
    payload(["it's", "it's"], [["zz"]]),
    payload(["f", "g"], [["a", "zz"], ["y"]], a=CONSTANTS["a"]),
    payload(["f", "it's"], [["a"], ["\N{SNOWMAN}", "a", "y\0"]], a=CONSTANTS["a"]),
    payload([], [], **{"": CONSTANTS["a"]}),
]


def test_payloads_are_read_alike() -> None:
    """Constants in wire order; each fault is reported with the same text."""
    (text,) = assert_equal(KEY, [GOOD])
    assert text.split("|")[3:] == ["a=0,8,1,5", "b=2,32,1,2,3"]
    said = assert_equal(KEY, REFUSED)
    assert all(text.startswith("BlobFormatError: payload at 0x") for text in said)
    assert_equal(KEY, [GOOD[:size] for size in range(len(GOOD))])


@pytest.mark.parametrize("seed", range(3))
def test_mutants_are_read_alike(seed: int) -> None:
    """Random damage."""
    made = mutants(GOOD, 300, seed)
    for one in REFUSED:
        made += mutants(one, 50, seed)
    assert_equal(KEY, made)
