"""Models from ONNX to a library: the results equal ONNX Runtime's, whatever runs it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import packer
import runtime
from tests.support.command_line import COMMAND, digest
from tests.support.dso_script import run_by_c, run_by_python_alone, tensor
from tests.support.process import run_python

from .support.models import encoder, unet

TEXT = """
<ir_version: 10, opset_import: ["" : 23]>
network (float[batch, 3, 8, 8] x, float[batch, 4] z) => (float[batch, 2] y, float[batch, 4] mean) {
  c = Conv<pads = [1, 1, 1, 1]>(x, kernel, bias)
  r = Relu(c)
  axes = Constant<value = int64[2] {2, 3}>()
  mean = ReduceMean<keepdims = 0>(r, axes)
  both = Concat<axis = 1>(mean, z)
  product = MatMul(both, matrix)
  y = Softmax(product)
}
"""


def network() -> onnx.ModelProto:
    """Two inputs, two outputs, and weights."""
    model = onnx.parser.parse_model(TEXT)
    random = np.random.default_rng(1)
    for name, shape in (("kernel", (4, 3, 3, 3)), ("bias", (4,)), ("matrix", (8, 2))):
        array = random.normal(size=shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return model


def arguments(batch: int) -> list[np.ndarray]:
    """The weights of `network`."""
    random = np.random.default_rng(batch)
    return [random.normal(size=(batch, *s)).astype(np.float32) for s in ((3, 8, 8), (4,))]


def expected(model: onnx.ModelProto, args: list[np.ndarray]) -> list[np.ndarray]:
    """The outputs of ONNX Runtime."""
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [value.name for value in model.graph.input]
    return session.run(None, dict(zip(names, args, strict=True)))


def check(model: onnx.ModelProto, library: runtime.Module, args: list[np.ndarray]) -> None:
    """Compare the outputs, by the greatest of each."""
    results = library["main"](*args)
    results = results if isinstance(results, tuple) else (results,)
    for result, wanted in zip(results, expected(model, args), strict=True):
        assert result.shape == wanted.shape
        assert np.abs(np.asarray(result) - wanted).max() <= 1e-5 * np.abs(wanted).max()


def load(model: object, folder: Path, *args: object, **options: object) -> runtime.Module:
    """Export and load."""
    module = packer.from_onnx(model, *args, **options)
    return runtime.load(packer.export_library(module, folder / "model.so"))


def test_a_static_model(tmp_path: Path) -> None:
    """From a file; the weights have their ONNX names."""
    onnx.save(network(), tmp_path / "model.onnx")
    shapes = {"x": (2, 3, 8, 8), "z": (2, 4)}
    library = load(tmp_path / "model.onnx", tmp_path, shapes)
    check(network(), library, arguments(2))
    assert {"bias"} <= set(library.weights) | set(json.loads(record(library))["folded"])
    with pytest.raises(
        ValueError, match=r"main: input 'z' of float32\[2, 4\]: extent of axis 0, expected 2"
    ):
        library["main"](arguments(2)[0], arguments(3)[1])


def record(library: runtime.Module) -> str:
    """The record of the graph."""
    (found,) = (m.metadata["dso.graph"] for m in library.imported_modules if m.metadata)
    return found


def test_a_symbolic_batch(tmp_path: Path) -> None:
    """The name is that of the model."""
    library = load(network(), tmp_path, dynamic=["batch"])
    for batch in (1, 3, 7):
        check(network(), library, arguments(batch))
    assert json.loads(record(library))["outputs"][0]["shape"] == ["batch", 2]


def test_a_set_of_shapes_that_is_given_twice_is_one(tmp_path: Path) -> None:
    """The library has one function, as without the second one."""
    sets = [{"x": (1, 3, 8, 8), "z": (1, 4)}] * 2
    twice, once = load(network(), tmp_path, sets), load(network(), tmp_path, sets[0])
    assert [str(one) for one in twice.inputs] == [str(one) for one in once.inputs]


def test_several_sets_of_shapes_share_the_weights(tmp_path: Path) -> None:
    """Main chooses; the weights are stored once."""
    sets = [{"x": (n, 3, 8, 8), "z": (n, 4)} for n in (1, 4)]
    library = load(network(), tmp_path, sets)
    for batch in (1, 4):
        check(network(), library, arguments(batch))
    text = "expected x=1x3x8x8, z=1x4 or x=4x3x8x8, z=4x4, found x=2x3x8x8, z=2x4"
    with pytest.raises(ValueError, match=text):
        library["main"](*arguments(2))
    alone = load(network(), tmp_path, sets[0])
    nbytes = [sum(w.nbytes for w in one.weights.values()) for one in (library, alone)]
    assert nbytes[0] == nbytes[1]


@pytest.mark.parametrize(
    ("model", "shape"),
    [(unet(side=32, channels=(4, 8)), (1, 3, 32, 32)), (encoder(1, 8, 32, 2, 64), None)],
)
def test_networks(tmp_path: Path, model: onnx.ModelProto, shape: tuple[int, ...] | None) -> None:
    """A small U-Net and one layer of an encoder."""
    dims = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    assert shape is None or list(shape) == dims
    x = np.random.default_rng(1).normal(size=dims).astype(np.float32)
    check(model, load(model, tmp_path), [x])


def test_c_files_and_the_model_are_one_library(tmp_path: Path) -> None:
    """By the command line: functions of the C file are beside main."""
    onnx.save(network(), tmp_path / "m.onnx")
    (tmp_path / "a.c").write_text("int twice(int x) { return 2 * x; }")
    words = ["export", "m.so", "a.c", "--onnx", "m.onnx", "--dynamic", "batch", "-O1"]
    run = subprocess.run([*COMMAND, *words], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0
    assert "CPU level" not in run.stderr
    library = runtime.load(tmp_path / "m.so")
    assert library["twice"](21) == 42
    check(network(), library, arguments(2))


RUN = """
import json, sys
import runtime
from array import array

args = []
for shape, values in json.loads(sys.argv[2]):
    tensor = runtime.empty(shape, "float32")
    memoryview(tensor).cast("B")[:] = memoryview(array("f", values)).cast("B")
    args.append(tensor)
print(json.dumps([memoryview(y).tolist() for y in runtime.load(sys.argv[1])["main"](*args)]))
"""


def test_it_runs_without_any_other_package(tmp_path: Path) -> None:
    """In a process in which NumPy, ONNX and packer cannot be imported."""
    path = packer.export_library(packer.from_onnx(network(), dynamic=["batch"]), tmp_path / "m.so")
    args = arguments(2)
    text = json.dumps([[a.shape, a.ravel().tolist()] for a in args])
    blocked = ("google", "llvmlite", "numpy", "onnx", "onnx_ir", "packer")
    results = run_python(RUN, str(path), text, blocked=blocked)
    for result, wanted in zip(results, expected(network(), args), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-5)


BESIDE_TVM_FFI = """
import json, sys
import numpy as np
import tvm_ffi
import runtime

args = [np.array(values, np.float32).reshape(shape) for shape, values in json.loads(sys.argv[2])]
main = runtime.load(sys.argv[1])["main"]
ours = main(*args)
theirs = main(*map(tvm_ffi.from_dlpack, args))
assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))
shared = [np.from_dlpack(tvm_ffi.from_dlpack(y)) for y in theirs]
called = tvm_ffi.convert(lambda *tensors: list(main(*tensors)))
again = called(*map(tvm_ffi.from_dlpack, args))
assert all(np.array_equal(np.from_dlpack(a), b) for a, b in zip(again, shared, strict=True))
print(json.dumps([y.tolist() for y in shared]))
"""


def test_it_runs_beside_tvm_ffi(tmp_path: Path) -> None:
    """Tensors of tvm_ffi go in, results go to it, and it calls the model as a function."""
    path = packer.export_library(packer.from_onnx(network(), dynamic=["batch"]), tmp_path / "m.so")
    args = arguments(2)
    text = json.dumps([[a.shape, a.ravel().tolist()] for a in args])
    results = run_python(BESIDE_TVM_FFI, str(path), text)
    for result, wanted in zip(results, expected(network(), args), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-5)


def test_a_c_program_has_the_same_bits(tmp_path: Path) -> None:
    """By libdso, with the messages of the checks."""
    path = packer.export_library(packer.from_onnx(network(), dynamic=["batch"]), tmp_path / "m.so")
    calls = [arguments(1), arguments(3), [arguments(1)[0], arguments(2)[1]]]
    lines = [" ".join(["call 0 main", *map(tensor, args)]) for args in calls]
    lines.insert(0, f"load {path}")
    printed = run_by_c(*lines)
    assert "main: input 'z' of float32[batch, 4]: extent of axis 0, expected 1, found 2" in printed
    assert printed == run_by_python_alone(*lines)


def test_two_models_are_one_library(tmp_path: Path) -> None:
    """They share the code of equal operators."""
    root = packer.from_onnx(network(), {"x": (1, 3, 8, 8), "z": (1, 4)})
    other = packer.from_onnx(network(), dynamic=["batch"])
    root.import_module(other)
    library = runtime.load(packer.export_library(root, tmp_path / "m.so"))
    check(network(), library, arguments(1))
    (second,) = (m for m in library.imported_modules if "main" in m.function_names())
    check(network(), second, arguments(3))


def test_the_bytes_are_the_same_each_time(tmp_path: Path) -> None:
    """Of two processes, which hash strings differently."""
    onnx.save(network(), tmp_path / "m.onnx")
    words = [*COMMAND, "export", "m.so", "--onnx", "m.onnx", "--dynamic", "batch"]
    found = []
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        subprocess.run(words, cwd=tmp_path, env=environment, check=True)
        found.append(digest(tmp_path / "m.so"))
    assert found[0] == found[1]
