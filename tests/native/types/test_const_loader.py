"""const_loader in libdso: the payload, and constants that reach host code once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime
from runtime.serial.stream import Writer
from runtime.tensors.ndarray import write_named_arrays

from ...support.dso_script import assert_same, text_of
from ...support.payloads import described

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


def test_payloads() -> None:
    """Constants in wire order, and faults."""
    (text,) = described(KEY, [GOOD])
    assert text.split("|")[3:] == ["a=0,8,1,5", "b=2,32,1,2,3"]
    said = described(KEY, REFUSED)
    assert all(text.startswith("BlobFormatError: payload at 0x") for text in said)
    described(KEY, [GOOD[:size] for size in range(len(GOOD))])


SOURCE = """
static const float *weights;
static int calls;
int __init_conv(const float *w) { weights = w; calls++; return 0; }
float conv(float x) { return weights ? x * weights[1] + calls : -1; }
float plain(float x) { return x; }
int __init_fails(const float *w) { return 3 + (w == 0); }
float fails(float x) { return x; }
"""
FUNCTIONS = {
    "__init_conv": "int(const float *w)",
    "conv": "float(float x)",
    "plain": "float(float x)",
    "__init_fails": "int(const float *w)",
    "fails": "float(float x)",
}


@pytest.mark.parametrize("dialect", ["tvm", "tvm-ffi"])
def test_constants_reach_host_code_once(tmp_path: Path, dialect: str) -> None:
    """At the first look-up; an unsuccessful initialisation is reported."""
    below = runtime.ConstLoaderModule({"w": np.array([2, 3, 4], "float32")}, {"conv": ["w"]})
    below.import_module(packer.CSourceModule(SOURCE, functions=FUNCTIONS))
    root = runtime.ConstLoaderModule({"v": np.ones(2, "float32")}, {"fails": ["v"], "none": ["v"]})
    root.import_module(below)
    packer.export_library(root, tmp_path / "model.so", format=dialect)
    script = """
        call 0 plain f:5
        call 0 conv f:5
        call 0 conv f:5
        call 0 fails f:1
        call 0 get_const_var_ndarray
        call 0 get_const_var_tensor
    """
    found = assert_same(tmp_path / "model.so", script)
    assert found[:3] == [text_of(value) for value in (5.0, 16.0, 16.0)]
    assert found[3] == "error PackerError: const_loader: __init_fails returned 3, expected 0"
    assert "text v\ntensor 2.32.1 (2) 0000803f0000803f" in found[4]
