"""examples/resnet18: its kernels against NumPy, its memory plan, the whole network."""

from __future__ import annotations

import importlib
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import packer
import runtime
from packer.project import read_project

from .support import needs
from .support.each_level import each_level
from .support.paths import DOCS, EXAMPLES

FOLDER = EXAMPLES / "resnet18"
# The levels of packer.toml, and the instruction set that the kernels use at each.
INSTRUCTION_SETS = {
    "x86-64-v1": "baseline", "x86-64-v3": "avx2", "x86-64-v4": "avx512", "armv8-a": "baseline",
}  # fmt: skip
RANDOM = np.random.default_rng(7)


@pytest.fixture(scope="module")
def example() -> Iterator[dict[str, ModuleType]]:
    """The example's own Python files, which import each other by their names."""
    names = ("network", "lower", "build")
    sys.path.insert(0, str(FOLDER))
    try:
        yield {name: importlib.import_module(name) for name in names}
    finally:
        sys.path.remove(str(FOLDER))
        for name in names:
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole network in one library, as packer.toml describes it."""
    project = read_project(FOLDER / "packer.toml")
    output = tmp_path_factory.mktemp("resnet18") / "deploy.so"
    return packer.export_library(project.root, output, build=packer.Build(cpu=project.cpu))


@pytest.fixture(scope="module")
def deployed(library: Path) -> runtime.Module:
    """The library, loaded."""
    return runtime.load(library)


@pytest.fixture(scope="module")
def at_levels(library: Path) -> dict[str, runtime.Module]:
    """The library, loaded at each level that runs here."""
    levels = packer.inspect_library(library).cpu
    assert levels is not None
    return dict(each_level(library, levels.levels))


def values(*shape: int) -> np.ndarray:
    """Random numbers around zero."""
    return RANDOM.normal(size=shape).astype(np.float32)


def framed(array: np.ndarray, frame: int = 1, block: int = 16) -> np.ndarray:
    """Turn (C, H, W) into the kernels' (C/block, H + 2 frame, W + 2 frame, block)."""
    _channels, height, width = array.shape
    blocks = array.reshape(-1, block, height, width).transpose(0, 2, 3, 1)
    return np.pad(blocks, ((0, 0), (frame, frame), (frame, frame), (0, 0)))


def convolved(data: np.ndarray, weight: np.ndarray, bias: np.ndarray, stride: int) -> np.ndarray:
    """Convolve (C, H, W) in double precision, with a padding of half the window."""
    half = weight.shape[2] // 2
    padded = np.pad(data.astype(np.float64), ((0, 0), (half, half), (half, half)))
    windows = sliding_window_view(padded, weight.shape[2:], (1, 2))[:, ::stride, ::stride]
    summed = np.tensordot(weight.astype(np.float64), windows, ((1, 2, 3), (0, 3, 4)))
    return summed + bias[:, None, None]


def scores(network: ModuleType, arrays: dict[str, np.ndarray], picture: np.ndarray) -> np.ndarray:
    """Run the network layer by layer in double precision, nothing fused, nothing folded."""

    def layer(conv: Any) -> np.ndarray:
        of = {what: arrays[f"{conv.name}.{what}"].astype(np.float64) for what in
              ("weight", "gamma", "beta", "mean", "variance")}  # fmt: skip
        gamma, beta, mean, variance = (of[what][:, None, None] for what in list(of)[1:])
        plain = convolved(results[conv.source], of["weight"], np.zeros(len(mean)), conv.stride)
        result = (plain - mean) / np.sqrt(variance + network.EPSILON) * gamma + beta
        result += results[conv.residual] if conv.residual else 0
        return np.maximum(result, 0) if conv.relu else result

    results = {"data": picture}
    stem = np.pad(layer(network.STEM), ((0, 0), (1, 1), (1, 1)))
    results["pool"] = sliding_window_view(stem, (3, 3), (1, 2))[:, ::2, ::2].max((3, 4))
    for conv in network.blocks():
        results[conv.name] = layer(conv)
    features = results[conv.name].mean((1, 2))
    return arrays["dense.weight"] @ features + arrays["dense.bias"]


def garbage(shape: tuple[int, ...]) -> np.ndarray:
    """Memory that another operator has used before."""
    return np.full(shape, np.nan, np.float32)


def test_parameters(example: dict[str, ModuleType]) -> None:
    """The network has as many parameters as every ResNet-18, the same ones each time."""
    network = example["network"]
    first, second = network.parameters(), network.parameters()
    assert network.count(first) == network.PARAMETERS == 11_689_512
    assert all((first[name] == second[name]).all() for name in first)


@pytest.mark.parametrize(
    ("inputs", "outputs", "kernel", "stride", "side"),
    [(3, 32, 7, 2, 14), (16, 64, 3, 1, 7), (32, 32, 3, 2, 14), (32, 64, 1, 2, 7)],
)
def test_convolution(
    example: dict[str, ModuleType],
    at_levels: dict[str, runtime.Module],
    inputs: int,
    outputs: int,
    kernel: int,
    stride: int,
    side: int,
) -> None:
    """Every window, stride and parity gives NumPy's sums, at each level."""
    data = values(inputs, stride * side, stride * side)
    weight, bias = values(outputs, inputs, kernel, kernel), values(outputs)
    residual = values(outputs, side, side)
    plain = convolved(data, weight, bias, stride)
    expected = {
        "conv": plain,
        "conv_relu": np.maximum(plain, 0),
        "conv_add_relu": np.maximum(plain + residual, 0),
    }
    block = 1 if inputs == 3 else 16
    arguments = (framed(data, 3 if inputs == 3 else 1, block), example["lower"].pack(weight), bias)
    for name, model in at_levels.items():
        for function, result in expected.items():
            out = garbage(framed(residual).shape)
            more = (framed(residual),) if "add" in function else ()
            model[function](*arguments, *more, out)
            np.testing.assert_allclose(
                out, framed(result.astype(np.float32)), rtol=1e-4, atol=1e-4, err_msg=name
            )


def test_each_level_has_its_instruction_set(
    deployed: runtime.Module, at_levels: dict[str, runtime.Module]
) -> None:
    """The library chooses the best level that runs here."""
    found = {name: model["instruction_set"]() for name, model in at_levels.items()}
    assert found == {name: INSTRUCTION_SETS[name] for name in found}
    assert deployed["instruction_set"]() == list(found.values())[-1]


def test_pools_and_dense(deployed: runtime.Module) -> None:
    """The operators that are not convolutions give NumPy's results."""
    data = np.maximum(values(32, 14, 28), 0)
    windows = sliding_window_view(np.pad(data, ((0, 0), (1, 1), (1, 1))), (3, 3), (1, 2))
    pooled = garbage((2, 9, 16, 16))
    deployed["max_pool"](framed(data), pooled)
    np.testing.assert_array_equal(pooled, framed(windows[:, ::2, ::2].max((3, 4))))

    average = garbage((1, 32))
    deployed["average_pool"](framed(data), average)
    np.testing.assert_allclose(average[0], data.mean((1, 2)), rtol=1e-5)

    weight, bias, out = values(32, 10), values(10), garbage((1, 10))
    deployed["dense"](average, weight, bias, out)
    np.testing.assert_allclose(out, average @ weight + bias, rtol=1e-4, atol=1e-5)


def test_picture(deployed: runtime.Module) -> None:
    """Bytes become normalised planes, and these get a frame of three zeros."""
    rgb = RANDOM.integers(0, 256, (4, 6, 3), np.uint8)
    picture, out = garbage((1, 3, 4, 6)), garbage((3, 10, 12, 1))
    deployed["normalize"](rgb, picture, 24)
    expected = (rgb / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    np.testing.assert_allclose(picture[0], expected.transpose(2, 0, 1), rtol=1e-4, atol=1e-5)
    deployed["frame_picture"](picture, out)
    np.testing.assert_array_equal(out, framed(picture[0], 3, 1))


def test_network(example: dict[str, ModuleType], at_levels: dict[str, runtime.Module]) -> None:
    """All layers together give NumPy's scores and top 5, at each level."""
    arrays = example["network"].parameters()
    picture = values(3, 224, 224)
    expected = scores(example["network"], arrays, picture)
    for name, model in at_levels.items():
        executor = model["default"]()
        executor.set_input("data", picture[None])
        executor.run()
        found = np.asarray(executor.get_output(0))[0]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4, err_msg=name)
        assert list(np.argsort(-found)[:5]) == list(np.argsort(-expected)[:5])


def test_weights_are_not_copied(library: Path, deployed: runtime.Module) -> None:
    """The kernels read the library's mapping."""
    executor = deployed["default"]()
    mapped = [
        [int(address, 16) for address in line.split()[0].split("-")]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if line.endswith(str(library))
    ]
    for name in deployed.weights:
        array = np.asarray(executor.get_input(name))
        assert any(start <= array.ctypes.data < end for start, end in mapped), name


def test_fresh_process(library: Path, deployed: runtime.Module, tmp_path: Path) -> None:
    """run.py does without NumPy, and its scores equal an executor's here."""
    rgb = RANDOM.integers(0, 256, (224, 224, 3), np.uint8)
    (tmp_path / "picture.rgb").write_bytes(rgb.tobytes())
    command = [sys.executable, FOLDER / "run.py", library, "picture.rgb", "scores.f32"]
    environment = {**os.environ, "PYTHONPATH": str(Path(packer.__file__).parents[1])}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    picture, executor = garbage((1, 3, 224, 224)), deployed["default"]()
    deployed["normalize"](rgb, picture, 224 * 224)
    executor.set_input("data", picture)
    executor.run()
    found = np.fromfile(tmp_path / "scores.f32", np.float32)
    np.testing.assert_array_equal(found, np.asarray(executor.get_output(0))[0])
    top = " ".join(map(str, np.argsort(-found)[:5]))
    assert done.stdout.splitlines()[-1] == f"top 5: {top}"


PROGRAM = """
#include <cstdio>
#include <dso.hpp>
int main(int, char **paths) {
  std::vector<float> picture(3 * 224 * 224);
  FILE *input = std::fopen(paths[2], "rb"), *output = std::fopen(paths[3], "wb");
  if (std::fread(picture.data(), 4, picture.size(), input) != picture.size()) return 1;
  const dso::Module executor = dso::Module::load(paths[1])["default"]();
  executor["set_input"]("data", dso::tensor(picture, {1, 3, 224, 224}));
  executor["run"]();
  const std::vector<float> scores = executor["get_output"](0);
  const bool is_written = std::fwrite(scores.data(), 4, scores.size(), output) == scores.size();
  return std::fclose(output) || !is_written;
}
"""


def test_program_without_python_computes_the_same_scores(
    library: Path, deployed: runtime.Module, tmp_path: Path
) -> None:
    """All thousand scores of a C++ program equal Python's, bit for bit."""
    home = Path(runtime.__file__).parent
    source, program, given, found = (
        tmp_path / name for name in ("program.cc", "program", "picture.f32", "scores.f32")
    )
    source.write_text(PROGRAM)
    libraries = [home / "lib/libdso.a", "-pthread", "-ldl", "-lm"]
    command = ["c++", "-std=c++11", f"-I{home / 'include'}", source, *libraries, "-o", program]
    subprocess.run(command, check=True, timeout=120)
    picture = values(1, 3, 224, 224)
    picture.tofile(given)
    subprocess.run([program, library, given, found], check=True, timeout=120)
    executor = deployed["default"]()
    executor.set_input("data", picture)
    executor.run()
    assert found.read_bytes() == executor.get_output(0).numpy().tobytes()


def test_figure_of_the_docs_is_the_output_of_its_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """The committed picture is that of the example."""
    monkeypatch.syspath_prepend(DOCS)
    drawn = runpy.run_path(str(DOCS / "make_resnet18_figure.py"))["resnet18_figure"]()
    monkeypatch.delitem(sys.modules, "make_figures")
    assert drawn == (DOCS / "resnet18.svg").read_text(encoding="utf-8")


def test_opencl(deployed: runtime.Module, tmp_path: Path) -> None:
    """The same tree with OpenCL kernels, all arrays on the device, gives the same scores."""
    needs.opencl_device()
    root = read_project(FOLDER / "opencl.toml").root
    model = runtime.load(packer.export_library(root, tmp_path / "opencl.so"))
    picture, found = values(1, 3, 224, 224), []
    for executor in (deployed["default"](), model["default"](runtime.Device("opencl", 0))):
        executor.run(data=picture)
        found.append(executor.get_output(0).numpy())
    np.testing.assert_allclose(*found, rtol=0, atol=1e-4)


def test_storage_is_not_shared_too_early(example: dict[str, ModuleType]) -> None:
    """An operator's input still holds its value when it is read; few storages serve all."""
    graph_json, weights = example["lower"].lower(example["network"].parameters())
    graph = json.loads(graph_json)
    storage = graph["attrs"]["storage_id"][1]
    holds: dict[int, int] = {}
    for i, node in enumerate(graph["nodes"]):
        assert all(holds[storage[source]] == source for source, _, _ in node["inputs"])
        assert storage[i] not in {storage[source] for source, _, _ in node["inputs"]}
        assert node["op"] == "tvm_op" or storage[i] not in holds
        holds[storage[i]] = i
    called = {storage[i] for i, node in enumerate(graph["nodes"]) if node["op"] == "tvm_op"}
    assert len(called) == 3
    assert len(storage) - len(weights) > 20


def test_a_data_loader_scores_a_folder_of_pictures(
    library: Path, deployed: runtime.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """examples/scale in a worker of PyTorch; tests/scale has the other scripts."""
    needs.importable("torch", "torch")
    scale = EXAMPLES / "scale"
    monkeypatch.syspath_prepend(str(scale))
    monkeypatch.setenv("DSO_CACHE", str(tmp_path / "store"))
    scoring = importlib.import_module("scoring")
    for number in range(3):
        rgb = RANDOM.integers(0, 256, (5, 5, 3), np.uint8)
        scoring.Image.fromarray(rgb).resize((300, 200)).save(tmp_path / f"{number}.png")
    found = [scoring.score(deployed, path) for path in scoring.pictures(tmp_path)]
    lines = [f"{name}: class {best}, score {value:.5f}" for name, best, value in found]
    environment = {**os.environ, "PYTHONPATH": str(Path(packer.__file__).parents[1])}
    environment.pop("PYTHONSAFEPATH", None)
    command = [sys.executable, "on_loader.py", str(library), str(tmp_path), "--workers", "1"]
    printed = subprocess.check_output(command, cwd=scale, env=environment, text=True)
    assert printed.splitlines() == lines
    sys.modules.pop("scoring")
