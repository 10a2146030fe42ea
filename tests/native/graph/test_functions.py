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
from ...support.graphs import factory, graph, host, null, op
from ...support.paths import C_SOURCES
from ..calls import assert_equal, by_libdso

SANITIZE = "-fsanitize=address,undefined"
W = np.full(6, 10, "float32")
X = "t0,1,2,3,4,5"
PARAMS = f"x{runtime.save_param_dict({'w': W}).hex()}"
SHAPES = [[6]] * 4

Export = Callable[..., Path]


def sums() -> dict[str, Any]:
    """``total = (x + w) + w`` of six elements."""
    nodes = [null("x"), null("w"), op("first", "add", [0, 1]), op("total", "add", [2, 1])]
    return graph(nodes, [3], SHAPES)


def tensor(*values: float) -> str:
    """As the program prints it."""
    return f"tensor:{np.array(values, 'float32').tobytes().hex()}"


TOTAL = tensor(20, 21, 22, 23, 24, 25)


def test_outputs_in_memory_of_the_caller(export: Export) -> None:
    """A bound output is written by the next runs; an array that is given is copied to."""
    found = assert_equal(
        export(sums(), {"w": W}),
        f"""
        m default
        r0 set_input sx {X}
        r0 run
        r0 debug_get_output sfirst
        r0 set_output_zero_copy i0 r3
        r0 set_input i0 t5,4,3,2,1,0
        r0 run
        m default
        r7 set_input sx r3
        r7 get_input sx
        r0 get_output i0 {X}
        r0 get_output i0 r3
        r0 debug_get_output sfirst {X}
        r0 get_output i0 t1,2
        r0 debug_get_output i2 t1,2
        r0 debug_get_output sfirst t1,2
        r0 set_output_zero_copy i0 t1,2
        r0 set_output_zero_copy i1 r3
        """,
        SANITIZE,
    )
    assert found[9] == tensor(25, 24, 23, 22, 21, 20)


def test_outputs_that_cannot_be_bound(export: Export) -> None:
    """An input, a view, and memory that is only read."""
    nodes = [null("x"), op("sum", "add", [0, 0]), op("flat", "__nop", [1])]
    shapes = [[6], [6], [6]]
    script = f"""
        m default
        r0 set_input sx {X}
        r0 run
        r0 debug_get_output ssum
        r0 set_output_zero_copy i0 r3
        r0 set_output_zero_copy i1 r3
        r0 set_output_zero_copy i2 r3
        r0 run
        r0 get_output i2
        """
    found = assert_equal(export(graph(nodes, [0, 2, 1], shapes, [0, 1, 1])), script)
    assert [line.split(": ")[-1] for line in found[4:7]] == [
        "the output shares another array's memory",
        "the output shares another array's memory",
        "None",
    ]


def test_memory_that_is_only_read(export: Export) -> None:
    """A weight of a file is an input without a copy, and no output."""
    weights = runtime.SafetensorsModule(safetensors(W))
    found = assert_equal(
        export(sums(), {}, host(), weights),
        f"""
        m default
        r0 get_input sw
        r0 set_input sx {X}
        r0 run
        r0 get_output i0
        r0 set_output_zero_copy i0 r1
        r0 get_output i0 r1
        r0 set_input_zero_copy sx r1
        r0 run
        r0 get_output i0
        """,
        SANITIZE,
    )
    assert found[4] == TOTAL
    assert "expected memory aligned" in found[5]
    assert "read-only" in found[6]
    assert found[9] == tensor(*[30] * 6)


def test_a_weight_that_does_not_fit(export: Export) -> None:
    """A weight of the tree is checked as the factory's own parameters are."""
    weights = runtime.SafetensorsModule(safetensors(W[:3]))
    found = assert_equal(export(sums(), {}, host(), weights), "m default")
    assert found[0].startswith("BlobFormatError: ")


def safetensors(array: np.ndarray) -> bytes:
    """A file of ``w``."""
    fields = {"dtype": "F32", "shape": array.shape, "data_offsets": [0, array.nbytes]}
    header = json.dumps({"w": fields}).encode()
    return len(header).to_bytes(8, "little") + header + array.tobytes()


def test_shared_parameters(export: Export) -> None:
    """Two executors have one array; names that either lacks are refused."""
    other = f"x{runtime.save_param_dict({'v': W}).hex()}"
    short = f"x{runtime.save_param_dict({'w': W[:2]}).hex()}"
    found = assert_equal(
        export(sums()),
        f"""
        m default
        m default
        r0 set_input sw {tensor_argument(W)}
        r1 share_params r0 {short}
        r0 set_input sw {X}
        r1 get_input sw
        r1 set_input sx {X}
        r1 run
        r1 get_output i0
        r1 share_params r0 {other}
        r1 load_params {short}
        r1 load_params {PARAMS}
        r1 get_input sw
        r0 get_input sw
        """,
        SANITIZE,
    )
    assert found[5] == found[13] == tensor(0, 1, 2, 3, 4, 5)
    assert found[8] == tensor(0, 3, 6, 9, 12, 15)


def tensor_argument(array: np.ndarray) -> str:
    """A tensor in a script."""
    return f"t{','.join(map(str, array.tolist()))}"


def test_what_share_params_takes(export: Export) -> None:
    """An executor, and the bytes of a file."""
    found = by_libdso(export(sums()), f"m default\nr0 share_params m {PARAMS}\nr0 load_params i1\n")
    assert [line.split(":")[0] for line in found[1:]] == ["TypeError", "TypeError"]


def test_inputs_and_parameters_as_lists(export: Export) -> None:
    """Without a Map in C, arrays of names and values; only inputs that are not parameters."""
    path = export(sums(), {"w": W})
    found = by_libdso(path, "m get_graph_params\nm default\nr1 get_input_info\n", SANITIZE)
    assert found[::2] == [f"(('w',{tensor(*W)},),)", "(('x',(6,),'float32',),)"]


def test_the_factory(export: Export) -> None:
    """Its graph; executors by name, with devices; a factory without parameters."""
    found = assert_equal(
        export(sums(), {"w": W}),
        """
        m get_graph_json
        m debug_create sdefault d1,0
        r1 get_input sw
        m debug_create sother
        m remove_params
        r4 default d1,0
        r5 run
        r4 get_graph_json
        m default d1,3
        """,
        SANITIZE,
    )
    assert json.loads(found[0][1:-1]) == json.loads(found[7][1:-1]) == sums()
    assert found[6].endswith("not set: 'x', 'w'; use set_input")


def test_the_older_type_key(tmp_path: Path) -> None:
    """TVM to 2020 wrote GraphRuntimeFactory."""
    made = factory(sums(), {"w": W}, host())
    made.type_key = "GraphRuntimeFactory"
    packer.export_library(made, tmp_path / "old.so")
    assert b"GraphRuntimeFactory" in (tmp_path / "old.so").read_bytes()
    script = f"m default\nr0 set_input sx {X}\nr0 run\nr0 get_output i0"
    assert assert_equal(tmp_path / "old.so", script)[3] == TOTAL


PACKED = """
#include <stdint.h>
#include <dso_packer.h>
typedef union { int64_t v_int64; double v_float64; void *v_handle; } TVMValue;
DSO_EXPORT int add(TVMValue *args, int *codes, int num_args, TVMValue *ret, int *ret_code,
                   void *h) {
  const float *a = ((DLTensor *)args[0].v_handle)->data, *b = ((DLTensor *)args[1].v_handle)->data;
  float *c = ((DLTensor *)args[2].v_handle)->data;
  (void)ret, (void)ret_code, (void)h;
  if (a[0] < 0) return -1;
  for (int i = 0; i < 6; i++) c[i] = a[i] + b[i];
  return num_args == 3 && codes[0] == 7 && codes[2] == 7 ? 0 : -1;
}
"""


def test_packed_c_functions_are_operators(export: Export) -> None:
    """Operators in TVM's older convention; one that fails without a text."""
    source = packer.CSourceModule(PACKED, functions={"add": "packed"})
    found = assert_equal(
        export(sums(), {"w": W}, source),
        f"""
        m default
        r0 set_input sx {X}
        r0 run
        r0 get_output i0
        r0 set_input sx t-1,0,0,0,0,0
        r0 run
        """,
    )
    assert found[3] == TOTAL
    assert "first" in found[5]


@pytest.mark.parametrize("where", ["linked", "linked + 1", "0"])
def test_linked_parameters(tmp_path: Path, where: str) -> None:
    """The library has them by storage_id, at any address, or has none."""
    source = f"#define LINKED {where}\n{(C_SOURCES / 'aot.c').read_text()}"
    made = runtime.AotExecutorFactory({})
    made.import_module(packer.CSourceModule(source))
    packer.export_library(made, tmp_path / "aot.so")
    script = "m default\nr0 get_num_inputs\nr0 get_input sw\nr0 run"
    assert_equal(tmp_path / "aot.so", script)


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
    """Copies go both ways, and a kernel runs between them."""
    needs.opencl_device()
    info = runtime.FunctionInfo("twice", ("handle", "handle"), ("blockIdx.x", "threadIdx.x"))
    code = packer.CSourceModule(LAUNCH)
    code.import_module(runtime.DeviceModule("opencl", TWICE, "cl", [info]))
    nodes = [null("x"), op("up", "__copy", [0]), op("twice", "launch", [1])]
    fields = graph([*nodes, op("down", "__copy", [2])], [3, 2], SHAPES)
    fields["attrs"]["device_index"] = ["list_int", [1, 4, 4, 1]]
    found = assert_equal(
        export(fields, {}, code),
        f"""
        m default d1,0 d4,0
        r0 set_input sx {X}
        r0 run
        r0 get_output i0
        r0 get_output i1
        r0 debug_get_output sup
        r0 set_input sx o5,4,3,2,1,0
        r0 run
        r0 get_output i0
        r0 set_output_zero_copy i0 r5
        r0 set_output_zero_copy i1 r5
        m default d1,0
        m default d1,0 d4,9
        """,
    )
    assert found[3] == found[4] == tensor(0, 2, 4, 6, 8, 10)
    assert found[8] == tensor(10, 8, 6, 4, 2, 0)
