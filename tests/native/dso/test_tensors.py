"""A C program allocates tensors, copies them to a device and back, and runs kernels on them."""

from __future__ import annotations

from pathlib import Path

import pytest

import packer
import runtime

from ...support.libdso import SANITIZE, compile_program, run_program
from ...support.opencl_kernels import SCALE, SCALE_SOURCE, kernels

START = """
#include <stdio.h>
#include "dso.h"
int main(int argc, char **argv) {
  const DLDevice cpu = {1, 0}, opencl = {4, 0}, nowhere = {99, 0};
  const DLDataType float32 = {2, 32, 1}, float64 = {2, 64, 1};
  const int64_t three[] = {3}, four[] = {4}, negative[] = {-1};
  float data[] = {1, 2, 3};
  int64_t shape[] = {3};
  DLTensor x = {data, {1, 0}, 1, {2, 32, 1}, shape, NULL, 0};
  dso_any made;
  (void)argc, (void)argv, (void)cpu, (void)opencl, (void)nowhere, (void)float64;
  (void)four, (void)negative, (void)three, (void)float32, (void)x, (void)made;
"""


def run(folder: Path, body: str, *arguments: object) -> list[str]:
    """Compile and run main's body; return the lines that it prints."""
    program = compile_program(f"{START}{body}  return 0;\n}}\n", folder / "program", *SANITIZE)
    return run_program(program, *arguments).splitlines()


def test_tensors_on_the_cpu(tmp_path: Path) -> None:
    """They are aligned, and what cannot be made or copied is refused in words."""
    body = """
      if (dso_tensor_new(&made, cpu, float32, 1, three)) return 1;
      DLTensor *y = dso_tensor_of(&made);
      if (dso_tensor_copy(y, &x)) return 1;
      printf("%g %d\\n", ((float *)y->data)[2], (int)((uintptr_t)y->data % 64));
      dso_release(&made);

      printf("%d ", dso_tensor_new(&made, nowhere, float32, 1, three));
      printf("%s\\n", dso_last_error());
      printf("%d ", made.type_index);
      printf("%d\\n", dso_tensor_new(&made, cpu, float32, 1, negative));
      printf("%s\\n", dso_last_error());
      printf("%d\\n", dso_tensor_new(&made, cpu, float32, 65, three));
      if (dso_tensor_new(&made, cpu, float64, 1, three)) return 1;
      printf("%d ", dso_tensor_copy(&x, dso_tensor_of(&made)));
      printf("%s\\n", dso_last_error());
      dso_release(&made);
      if (dso_tensor_new(&made, cpu, float32, 1, four)) return 1;
      printf("%d\\n", dso_tensor_copy(dso_tensor_of(&made), &x));
      dso_release(&made);
    """
    lines = run(tmp_path, body)
    assert lines[0] == "3 0"
    assert lines[1].startswith("-1 DeviceError: ")
    assert lines[2] == "0 -1"
    assert lines[3].startswith("ValueError: tensor: the shape has a negative extent")
    different = "ValueError: copy: expected tensors of the same shape and data type"
    assert lines[4:] == ["-1", f"-1 {different}", "-1"]


@pytest.mark.usefixtures("opencl_device")
def test_kernel_on_a_device(tmp_path: Path) -> None:
    """The error about a tensor on the CPU says what a C program does."""
    packer.export_library(kernels(SCALE_SOURCE, SCALE), tmp_path / "kernels.so")
    body = """
      dso_module *m = dso_load(argv[1], NULL);
      dso_any args[5];
      args[0] = dso_tensor(&x), args[1] = dso_float(3), args[2] = dso_int(3);
      args[3] = dso_int(1), args[4] = dso_int(4);
      if (!m) return 1;
      printf("%d ", dso_module_call(m, "scale", NULL, args, 5));
      printf("%s\\n", dso_last_error());
      if (dso_tensor_new(&made, opencl, float32, 1, three)) return puts(dso_last_error()), 1;
      if (dso_tensor_copy(dso_tensor_of(&made), &x)) return puts(dso_last_error()), 1;
      args[0] = made;
      if (dso_module_call(m, "scale", NULL, args, 5)) return puts(dso_last_error()), 1;
      if (dso_tensor_copy(&x, dso_tensor_of(&made))) return puts(dso_last_error()), 1;
      printf("%g %g %g\\n", data[0], data[1], data[2]);
      dso_release(&made);
      dso_module_release(m);
    """
    # A driver keeps private memory until the process ends.
    program = compile_program(f"{START}{body}  return 0;\n}}\n", tmp_path / "program")
    refused, result = run_program(program, tmp_path / "kernels.so").splitlines()
    assert refused.startswith("-1 ValueError: scale: argument 1: expected a tensor on opencl, ")
    assert "dso_tensor_copy" in refused
    assert result == "3 6 9"


def test_weight_is_not_passed_to_a_function_that_writes(tmp_path: Path) -> None:
    """Its memory is that of the file, which cannot be written."""
    source = "void twice(const float *x, float *y, long n) { while (n--) y[n] = 2 * x[n]; }"
    host = packer.CSourceModule(
        source, functions={"twice": "void(const float *x, float *y, long n)"}
    )
    header = b'{"w": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}}'
    file = len(header).to_bytes(8, "little") + header + bytes(12)
    host.import_module(runtime.SafetensorsModule(file))
    packer.export_library(host, tmp_path / "weights.so")
    body = """
      dso_module *m = dso_load(argv[1], NULL);
      DLTensor w;
      if (!m || dso_module_weight(m, "w", &w)) return puts(dso_last_error()), 1;
      dso_any good[] = {dso_tensor(&w), dso_tensor(&x), dso_int(3)};
      dso_any bad[] = {dso_tensor(&x), dso_tensor(&w), dso_int(3)};
      printf("%d ", dso_module_call(m, "twice", NULL, good, 3));
      printf("%g\\n%d ", data[0], dso_module_call(m, "twice", NULL, bad, 3));
      printf("%s\\n", dso_last_error());
      dso_module_release(m);
    """
    good, bad = run(tmp_path, body, tmp_path / "weights.so")
    assert good == "0 0"
    expected = "argument 2 'y': expected a writable tensor, found a read-only one"
    assert bad == f"-1 ValueError: twice: {expected}"
