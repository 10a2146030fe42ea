"""Five kinds of networks from ONNX to a library, small: ONNX Runtime's results, in any process."""

from __future__ import annotations

import json
import math
import os
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import packer
import runtime
from tests.support.libdso import compile_program, run_program
from tests.support.process import run_python

from .support.models import encoder, mobilenet_v2, resnet18, resnet50, sample, unet

# The greatest difference from ONNX Runtime, by the greatest result.
NEAR, NEAR_ENCODER = 1e-5, 1e-4
CASES = {
    "resnet18": (partial(resnet18, 64, 50), NEAR),
    "resnet50": (partial(resnet50, 32, 40), NEAR),
    "mobilenet_v2": (partial(mobilenet_v2, 64, 100), NEAR),
    "encoder": (partial(encoder, 2, 20, 64, 4, 96), NEAR_ENCODER),
    "encoder_of_opset_20": (partial(encoder, 2, 33, 64, 2, 128, decomposed=False), NEAR_ENCODER),
    "unet": (partial(unet, 32, (8, 16, 24)), NEAR),
    "unet_by_resize": (partial(unet, 48, (16, 20), resize=True), NEAR),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For the libraries of this file."""
    return tmp_path_factory.mktemp("networks")


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, folder: Path) -> tuple[str, Path, np.ndarray]:
    """The name of a case, its library, and an input."""
    model = CASES[request.param][0]()
    path = packer.export_library(packer.from_onnx(model), folder / f"{request.param}.so")
    (folder / f"{request.param}.onnx").write_bytes(model.SerializeToString())
    x = sample(model)
    x.tofile(path.with_suffix(".f32"))
    return request.param, path, x


def reference(path: Path, x: np.ndarray) -> np.ndarray:
    """The output of ONNX Runtime."""
    session = onnxruntime.InferenceSession(path.with_suffix(".onnx"))
    (result,) = session.run(None, {"data": x})
    return result


def distance(result: np.ndarray, expected: np.ndarray) -> float:
    """The greatest difference, by the greatest expected value."""
    assert result.shape == expected.shape
    return float(np.abs(result - expected).max() / np.abs(expected).max())


def test_results_are_those_of_onnx_runtime(case: tuple[str, Path, np.ndarray]) -> None:
    """Of the greatest result within 1e-5, of encoders 1e-4."""
    name, path, x = case
    result = runtime.load(path)["main"](x).numpy()
    assert distance(result, reference(path, x)) <= CASES[name][1]


ALONE = """
import json, os, sys
os.environ["TVM_NUM_THREADS"] = sys.argv[3]
import runtime
x = runtime.empty(json.loads(sys.argv[2]), "float32")
with open(sys.argv[1] + ".f32", "rb") as file:
    file.readinto(memoryview(x).cast("B"))
y = runtime.load(sys.argv[1] + ".so")["main"](x)
with open("/proc/self/maps") as maps:
    mapped = {line.split("/")[-1].split(".")[0].strip() for line in maps if "/" in line}
print(json.dumps([bytes(memoryview(y).cast("B")).hex(), sorted(mapped)]))
"""
PACKAGES = (
    "google",
    "numpy",
    "onnx",
    "onnx_ir",
    "onnxruntime",
    "packer",
    "torch",
    "tvm",
    "tvm_ffi",
)


def test_threads_and_a_process_without_packages_give_the_same_bits(
    case: tuple[str, Path, np.ndarray],
) -> None:
    """One thread and two, where neither NumPy nor packer can be imported."""
    _, path, x = case
    expected = runtime.load(path)["main"](x).numpy().tobytes().hex()
    for threads in ("1", "2"):
        arguments = (str(path.with_suffix("")), json.dumps(x.shape), threads)
        bits, mapped = run_python(ALONE, *arguments, blocked=PACKAGES)
        assert bits == expected
        assert not [name for name in mapped if "onnx" in name or "torch" in name or "tvm" in name]


PROGRAM = r"""
#include <dso.h>
#include <stdio.h>
#include <stdlib.h>

/* program MODEL.so INPUT COUNT EXTENT...: writes the output, as it is in memory. */
int main(int argc, char **argv) {
  int64_t shape[8];
  const size_t count = (size_t)atol(argv[3]);
  for (int i = 4; i < argc; i++) shape[i - 4] = atol(argv[i]);
  DLTensor x = {malloc(count * 4), {1, 0}, argc - 4, {2, 32, 1}, shape, NULL, 0};
  FILE *file = fopen(argv[2], "rb");
  if (fread(x.data, 4, count, file) != count) return 2;
  fclose(file);
  dso_any y, argument = dso_tensor(&x);
  dso_module *model = dso_load(argv[1], NULL);
  if (!model || dso_module_call(model, "main", &y, &argument, 1))
    return puts(dso_last_error()), 1;
  const DLTensor *out = dso_tensor_of(&y);
  size_t nbytes = 4;
  for (int i = 0; i < out->ndim; i++) nbytes *= (size_t)out->shape[i];
  for (size_t i = 0; i < nbytes; i++) printf("%02x", ((const unsigned char *)out->data)[i]);
  dso_release(&y);
  dso_module_release(model);
  free(x.data);
  return 0;
}
"""


@pytest.fixture(scope="module")
def program(folder: Path) -> Path:
    """The C program, with libdso."""
    return compile_program(PROGRAM, folder / "program")


def test_a_c_program_gives_the_same_bits(case: tuple[str, Path, np.ndarray], program: Path) -> None:
    """By libdso.a, without Python."""
    _, path, x = case
    expected = runtime.load(path)["main"](x).numpy().tobytes().hex()
    assert run_program(program, path, path.with_suffix(".f32"), x.size, *x.shape) == expected


def test_the_library_is_little_more_than_the_weights(case: tuple[str, Path, np.ndarray]) -> None:
    """At most 1.5 MB more."""
    _, path, _ = case
    model = onnx.load(path.with_suffix(".onnx"))
    weights = sum(4 * math.prod(tensor.dims) for tensor in model.graph.initializer)
    assert os.path.getsize(path) <= weights + 1_500_000
