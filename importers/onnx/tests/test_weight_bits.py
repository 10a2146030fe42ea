"""Products with weights of 4 and 8 bits, beside ONNX Runtime's MatMulNBits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import packer
import runtime
from packer.operators import quantize_matmul

from .small_models import model, node, unknown, value, weight

INNER, MIDDLE, COLUMNS = 100, 64, 70
RANDOM = np.random.default_rng(0)
FIRST = RANDOM.normal(size=(INNER, MIDDLE)).astype(np.float32)
SECOND = RANDOM.normal(size=(COLUMNS, MIDDLE)).astype(np.float32)
BIAS = RANDOM.normal(size=COLUMNS).astype(np.float32)


def network() -> onnx.ModelProto:
    """Two products, the second with a transposed weight, a bias and Relu."""
    nodes = [
        node("MatMul", "x first", "middle"),
        node("Gemm", "middle second bias", "sum", transB=1),
        node("Relu", "sum", "y"),
    ]
    weights = [weight("first", FIRST), weight("second", SECOND), weight("bias", BIAS)]
    return model(nodes, [value("x", "rows", INNER)], [unknown("y")], weights)


def rounded(matrix: np.ndarray, bits: int, block: int) -> np.ndarray:
    """A weight as it is stored."""
    integers, scales = quantize_matmul(matrix, bits, block)
    return integers * np.repeat(scales, block, 0)[: len(matrix)]


@pytest.mark.parametrize(("bits", "block"), [(4, 32), (8, 32), (4, 128), (8, 16)])
def test_products_are_those_of_rounded_weights(bits: int, block: int, tmp_path: Path) -> None:
    """For one row and for many; the library shows the weights that it has."""
    module = packer.from_onnx(network(), weight_bits=bits, block=block)
    loaded = runtime.load(packer.export_library(module, tmp_path / "model.so"))
    first, second = rounded(FIRST, bits, block), rounded(SECOND.T, bits, block)
    for rows in (1, 2, 33):
        x = RANDOM.normal(size=(rows, INNER)).astype(np.float32)
        right = np.maximum(x @ first @ second + BIAS, 0)
        np.testing.assert_allclose(loaded["main"](x).numpy(), right, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(loaded.weights["first"].numpy(), first, rtol=1e-6)
    np.testing.assert_allclose(loaded.weights["second"].numpy(), second.T, rtol=1e-6)


def peer(bits: int, weights: dict[str, np.ndarray], block: int = 32) -> onnx.ModelProto:
    """One MatMulNBits with inputs by name."""
    inner, columns = INNER, MIDDLE
    names = ["x", *(name if name in weights else "" for name in ("w", "s", "z", "g", "b"))]
    while not names[-1]:
        names.pop()
    attributes = {"K": inner, "N": columns, "bits": bits, "block_size": block}
    made = onnx.helper.make_node("MatMulNBits", names, ["y"], domain="com.microsoft", **attributes)
    ends = [
        onnx.helper.make_tensor_value_info(name, 1, ["rows", count])
        for name, count in (("x", inner), ("y", columns))
    ]
    arrays = [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = onnx.helper.make_graph([made], "peer", ends[:1], ends[1:], arrays)
    domains = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("com.microsoft", 1)]
    return onnx.helper.make_model(graph, opset_imports=domains, ir_version=10)


def check_peer(library: runtime.Module, model_of_peer: onnx.ModelProto) -> None:
    """ONNX Runtime's results, for one row and for several."""
    session = onnxruntime.InferenceSession(model_of_peer.SerializeToString())
    for rows in (1, 5):
        x = RANDOM.normal(size=(rows, INNER)).astype(np.float32)
        (right,) = session.run(None, {"x": x})
        np.testing.assert_allclose(library["main"](x).numpy(), right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bits", [4, 8])
def test_one_product_is_that_of_onnx_runtime(bits: int, tmp_path: Path) -> None:
    """MatMulNBits of accuracy level 0, with the same integers and scales."""
    nodes = [node("MatMul", "x first", "y")]
    made = model(nodes, [value("x", "rows", INNER)], [unknown("y")], [weight("first", FIRST)])
    module = packer.from_onnx(made, weight_bits=bits)
    loaded = runtime.load(packer.export_library(module, tmp_path / "model.so"))
    integers, scales = quantize_matmul(FIRST, bits)
    blocks = len(scales)
    whole = np.full((blocks * 32, MIDDLE), 1 << (bits - 1), np.uint8)
    whole[:INNER] = integers.astype(int) + (1 << (bits - 1))
    columns = whole.T.reshape(MIDDLE, blocks, 32)
    stored = columns[..., ::2] | columns[..., 1::2] << 4 if bits == 4 else columns
    weights = {"w": np.ascontiguousarray(stored), "s": np.ascontiguousarray(scales.T)}
    check_peer(loaded, peer(bits, weights))


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("extra", ["", "z", "b", "zb"])
def test_matmul_nbits_is_imported(bits: int, extra: str, tmp_path: Path) -> None:
    """With zeros and a bias too; without zeros the library keeps the integers."""
    blocks = 4
    weights = {
        "w": RANDOM.integers(0, 256, (MIDDLE, blocks, 4 * bits)).astype(np.uint8),
        "s": RANDOM.normal(size=(MIDDLE, blocks)).astype(np.float32) / (1 << bits),
    }
    if "z" in extra:
        weights["z"] = RANDOM.integers(0, 256, (MIDDLE, blocks * bits // 8)).astype(np.uint8)
    if "b" in extra:
        weights["b"] = RANDOM.normal(size=MIDDLE).astype(np.float32)
    made = peer(bits, weights)
    loaded = runtime.load(packer.export_library(packer.from_onnx(made), tmp_path / "model.so"))
    check_peer(loaded, made)
    kinds = {one.op for one in loaded.model_record.nodes}
    assert ("dso.MatMulBits" in kinds) == ("z" not in extra)


@pytest.mark.parametrize(
    ("changed", "refused"),
    [
        ({"g": np.zeros(INNER, np.int32)}, "expected no g_idx"),
        ({"s": np.zeros(3, np.float32)}, "scales, expected a constant of 256 elements, found 's'"),
        ({"w": np.zeros((2, 2), np.uint8)}, "b, expected a constant of 4096 elements, found 'w'"),
    ],
)
def test_other_forms_of_matmul_nbits_are_refused(changed, refused) -> None:
    """With the node."""
    weights = {"w": np.zeros((MIDDLE, 4, 16), np.uint8), "s": np.ones((MIDDLE, 4), np.float32)}
    with pytest.raises(packer.ExportError, match=refused):
        packer.from_onnx(peer(4, {**weights, **changed}))


def test_note_has_the_largest_error_of_each_weight() -> None:
    """By its name; a model without such a weight is said to have none."""
    (note, *_) = packer.from_onnx(network(), weight_bits=4)._imported_code.notes
    error = np.abs(rounded(FIRST, 4, 32) - FIRST).max()
    assert f"2 weights of 4 bits in blocks of 32; the largest error of each: first {error:.2g}" in (
        note
    )
    plain = model([node("Relu", "x", "y")], [value("x", 3)], [unknown("y")])
    (note, *_) = packer.from_onnx(plain, weight_bits=8)._imported_code.notes
    assert note.endswith("no product has a constant matrix of float32")


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({"weight_bits": 3}, "weight_bits, expected one of 4, 8, found 3"),
        ({"weight_bits": 4, "block": 20}, "block, expected one of 16, 32, .*, found 20"),
        ({"block": 32}, "block 32 without weight_bits"),
    ],
)
def test_other_numbers_are_refused(options, refused) -> None:
    """Before anything is made."""
    with pytest.raises(packer.ExportError, match=refused):
        packer.from_onnx(network(), **options)


def test_command_stores_fewer_bytes(tmp_path: Path) -> None:
    """--weight-bits and --block; a wrong number ends with status 1."""
    onnx.save(network(), tmp_path / "model.onnx")
    sizes = {}
    for words in ([], ["--weight-bits", "8"], ["--weight-bits", "4", "--block", "64"]):
        command = [sys.executable, "-m", "packer", "export", "m.so", "model.onnx", *words]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
        loaded = runtime.load(tmp_path / "m.so")
        sizes[len(words)] = sum(
            len(memoryview(tensor.raw).cast("B"))
            for module in loaded.imported_modules
            for tensor in module.own_weights.values()
        )
    assert sizes[4] < 0.6 * sizes[2] < 0.3 * sizes[0]
    command = [sys.executable, "-m", "packer", "export", "m.so", "model.onnx", "--weight-bits", "x"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "weight bits: expected a number, found 'x'" in done.stderr
