"""The functions of factories and executors, called by a C program and from Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime

from ...support import needs
from ...support.dso_script import assert_same, outcomes, run_by_c, tensor, text_of
from ...support.graphs import factory, graph, host, null, op
from ...support.paths import C_SOURCES

W = np.full(6, 10, "float32")
PARAMS = f"x:{runtime.save_param_dict({'w': W}).hex()}"
SHAPES = [[6]] * 4

Export = Callable[..., Path]


def sums() -> dict[str, Any]:
    """``total = (x + w) + w`` of six elements."""
    nodes = [null("x"), null("w"), op("first", "add", [0, 1]), op("total", "add", [2, 1])]
    return graph(nodes, [3], SHAPES)


def floats(*values: float) -> np.ndarray:
    """An array."""
    return np.array(values, "float32")


X, TWO = tensor(floats(*range(6)), "m"), tensor(floats(1, 2), "m")
TOTAL = text_of(floats(20, 21, 22, 23, 24, 25))


def test_outputs_in_memory_of_the_caller(export: Export) -> None:
    """A bound output is written by the next runs; an array that is given is copied to."""
    found = assert_same(
        export(sums(), {"w": W}),
        f"""
        call 0 default
        call 1 set_input s:x {X}
        call 1 run
        keep 1 debug_get_output s:first
        call 1 set_output_zero_copy i:0 o:2
        call 1 set_input i:0 {tensor(floats(5, 4, 3, 2, 1, 0))}
        call 1 run
        call 0 default
        call 3 set_input s:x o:2
        call 3 get_input s:x
        call 1 get_output i:0 {X}
        call 1 get_output i:0 o:2
        call 1 debug_get_output s:first {X}
        call 1 get_output i:0 {TWO}
        call 1 debug_get_output i:2 {TWO}
        call 1 debug_get_output s:first {TWO}
        call 1 set_output_zero_copy i:0 {TWO}
        call 1 set_output_zero_copy i:1 o:2
        call 1 get_output i:9
        call 1 set_input s:q {X}
        call 1 load_params x:00
        """,
        is_sanitized=True,
    )
    assert found[9] == text_of(floats(25, 24, 23, 22, 21, 20))
    assert found[-1].startswith("error BlobFormatError: params at 0x")


def test_outputs_that_cannot_be_bound(export: Export) -> None:
    """An input, a view, and memory that is only read."""
    nodes = [null("x"), op("sum", "add", [0, 0]), op("flat", "__nop", [1])]
    shapes = [[6], [6], [6]]
    script = f"""
        call 0 default
        call 1 set_input s:x {X}
        call 1 run
        keep 1 debug_get_output s:sum
        call 1 set_output_zero_copy i:0 o:2
        call 1 set_output_zero_copy i:1 o:2
        call 1 set_output_zero_copy i:2 o:2
        call 1 run
        call 1 get_output i:2
        """
    found = assert_same(export(graph(nodes, [0, 2, 1], shapes, [0, 1, 1])), script)
    assert [line.split(": ")[-1] for line in found[4:7]] == [
        "the output shares another array's memory",
        "the output shares another array's memory",
        "none",
    ]


def test_memory_that_is_only_read(export: Export) -> None:
    """A weight of a file is an input without a copy, and no output."""
    weights = runtime.SafetensorsModule(safetensors(W))
    found = assert_same(
        export(sums(), {}, host(), weights),
        f"""
        call 0 default
        keep 1 get_input s:w
        call 1 set_input s:x {X}
        call 1 run
        call 1 get_output i:0
        call 1 set_output_zero_copy i:0 o:2
        call 1 get_output i:0 o:2
        call 1 set_input_zero_copy s:x o:2
        call 1 run
        call 1 get_output i:0
        """,
        is_sanitized=True,
    )
    assert found[4] == TOTAL
    assert "expected memory aligned" in found[5]
    assert "read-only" in found[6]
    assert found[9] == text_of(floats(*[30] * 6))


def test_a_weight_that_does_not_fit(export: Export) -> None:
    """A weight of the tree is checked as the factory's own parameters are."""
    weights = runtime.SafetensorsModule(safetensors(W[:3]))
    found = assert_same(export(sums(), {}, host(), weights), "call 0 default")
    assert found[0].startswith("error BlobFormatError: ")


def safetensors(array: np.ndarray) -> bytes:
    """A file of ``w``."""
    fields = {"dtype": "F32", "shape": array.shape, "data_offsets": [0, array.nbytes]}
    header = json.dumps({"w": fields}).encode()
    return len(header).to_bytes(8, "little") + header + array.tobytes()


def test_shared_parameters(export: Export) -> None:
    """Two executors have one array; names that either lacks are refused."""
    other = f"x:{runtime.save_param_dict({'v': W}).hex()}"
    short = f"x:{runtime.save_param_dict({'w': W[:2]}).hex()}"
    found = assert_same(
        export(sums()),
        f"""
        call 0 default
        call 0 default
        call 1 set_input s:w {tensor(W)}
        call 2 share_params o:1 {short}
        call 1 set_input s:w {X}
        call 2 get_input s:w
        call 2 set_input s:x {X}
        call 2 run
        call 2 get_output i:0
        call 2 share_params o:1 {other}
        call 2 load_params {short}
        call 2 load_params {PARAMS}
        call 2 get_input s:w
        call 1 get_input s:w
        """,
        is_sanitized=True,
    )
    assert found[5] == found[13] == text_of(floats(0, 1, 2, 3, 4, 5))
    assert found[8] == text_of(floats(0, 3, 6, 9, 12, 15))


def test_what_share_params_takes(export: Export) -> None:
    """An executor, and the bytes of a file."""
    wrong = (f"call 1 share_params o:0 {PARAMS}", "call 1 load_params i:1")
    printed = run_by_c(f"load {export(sums())}", "call 0 default", *wrong)
    assert [text.split(":")[0] for text in outcomes(printed)[2:]] == ["error TypeError"] * 2


def test_inputs_and_parameters_as_lists(export: Export) -> None:
    """Without a Map in C, arrays of names and values; only inputs that are not parameters."""
    lines = ("call 0 get_graph_params", "call 0 default", "call 1 get_input_info")
    printed = run_by_c(f"load {export(sums(), {'w': W})}", *lines, is_sanitized=True)
    expected = [text_of((("w", W),)), text_of((("x", (6,), "float32"),))]
    assert outcomes(printed)[1::2] == expected


def test_graphs_that_cannot_be_made(export: Export) -> None:
    """Nothing is left of them."""
    for fields in (sums() | {"heads": None}, graph([null("x"), op("y", "lost", [0])], [1])):
        (found,) = assert_same(export(fields), "call 0 default", is_sanitized=True)
        assert found.startswith("error ")


def test_the_factory(export: Export) -> None:
    """Its graph; executors by name, with devices; a factory without parameters."""
    found = assert_same(
        export(sums(), {"w": W}),
        """
        call 0 get_graph_json
        call 0 debug_create s:default d:1:0
        call 1 get_input s:w
        call 0 debug_create s:other
        call 0 remove_params
        call 2 default d:1:0
        call 3 run
        call 2 get_graph_json
        call 0 default d:1:3
        """,
        is_sanitized=True,
    )
    assert found[0] == found[7] == f"text {json.dumps(sums())}"
    assert found[6].endswith("not set: 'x', 'w'; use set_input")


def test_the_older_type_key(tmp_path: Path) -> None:
    """TVM to 2020 wrote GraphRuntimeFactory."""
    made = factory(sums(), {"w": W}, host())
    made.type_key = "GraphRuntimeFactory"
    packer.export_library(made, tmp_path / "old.so")
    assert b"GraphRuntimeFactory" in (tmp_path / "old.so").read_bytes()
    script = f"call 0 default\ncall 1 set_input s:x {X}\ncall 1 run\ncall 1 get_output i:0"
    assert assert_same(tmp_path / "old.so", script)[3] == TOTAL


@pytest.mark.parametrize("where", ["linked", "linked + 1", "0"])
def test_linked_parameters(tmp_path: Path, where: str) -> None:
    """The library has them by storage_id, at any address, or has none."""
    source = f"#define LINKED {where}\n{(C_SOURCES / 'aot.c').read_text()}"
    made = runtime.AotExecutorFactory({})
    made.import_module(packer.CSourceModule(source))
    packer.export_library(made, tmp_path / "aot.so")
    x = tensor(floats(*range(6)).reshape(2, 3))
    script = f"""
        call 0 default
        call 1 get_num_inputs
        call 1 get_input s:w
        call 1 run
        call 1 set_input s:x {x}
        call 1 run
        call 1 get_output i:0
        """
    assert_same(tmp_path / "aot.so", script)


TWICE = """
__kernel void twice(__global const float *x, __global float *y) {
  y[get_global_id(0)] = 2 * x[get_global_id(0)];
}
"""
LAUNCH = """
#include <dso_packer.h>
DSO_EXPORT int __tvm_ffi_launch(void *self, const dso_any *args, int32_t count, dso_any *result) {
  (void)self, (void)count, (void)result;
  return dso_call("twice", 0, args[0], args[1], dso_int(1), dso_int(6));
}
"""


def test_a_graph_over_two_devices(export: Export) -> None:
    """Copies go both ways, a kernel runs between them, a reshape is the same device memory."""
    needs.opencl_device()
    info = runtime.FunctionInfo("twice", ("handle", "handle"), ("blockIdx.x", "threadIdx.x"))
    code = packer.CSourceModule(LAUNCH)
    code.import_module(runtime.DeviceModule("opencl", TWICE, "cl", [info]))
    nodes = [null("x"), op("up", "__copy", [0]), op("twice", "launch", [1])]
    nodes += [op("flat", "__nop", [2]), op("down", "__copy", [3])]
    fields = graph(nodes, [4, 2], [[6], [6], [6], [2, 3], [2, 3]], [0, 1, 2, 2, 3])
    fields["attrs"]["device_index"] = ["list_int", [1, 4, 4, 4, 1]]
    found = assert_same(
        export(fields, {}, code),
        f"""
        call 0 default d:1:0 d:4:0
        call 1 set_input s:x {X}
        call 1 run
        call 1 get_output i:0
        call 1 get_output i:1
        keep 1 debug_get_output s:up
        call 1 set_input s:x {tensor(floats(5, 4, 3, 2, 1, 0), "g")}
        call 1 run
        call 1 get_output i:0
        call 1 set_output_zero_copy i:0 o:3
        call 1 set_output_zero_copy i:1 o:3
        call 0 default d:1:0
        call 0 default d:1:0 d:4:9
        """,
    )
    assert found[3] == text_of(floats(0, 2, 4, 6, 8, 10).reshape(2, 3))
    assert found[8] == text_of(floats(10, 8, 6, 4, 2, 0).reshape(2, 3))
