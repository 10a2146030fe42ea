"""Products with weights of 4 and 8 bits, beside ONNX Runtime's MatMulNBits."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import packer
import runtime
from packer.inspect.drawing import draw
from packer.inspect.listing import list_sizes
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
    """With zeros and a bias too; the library keeps the integers."""
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
    assert "dso.MatMulBits" in {one.op for one in loaded.model_record.nodes}
    integers = unpacked(weights["w"].reshape(MIDDLE, -1), bits)[:, :INNER] - float(1 << bits - 1)
    if "z" in extra:
        zeros = unpacked(weights["z"], bits)[:, :blocks] - float(1 << bits - 1)
        integers -= np.repeat(zeros, 32, 1)[:, :INNER]
    right = integers * np.repeat(weights["s"], 32, 1)[:, :INNER]
    np.testing.assert_allclose(loaded.weights["w"].numpy(), right.T, rtol=1e-6)


def unpacked(rows: np.ndarray, bits: int) -> np.ndarray:
    """Integers of bytes; of two in a byte the first is in the low bits."""
    return rows if bits == 8 else np.stack([rows & 15, rows >> 4], -1).reshape(len(rows), -1)


@pytest.mark.parametrize("kind", ["INT4", "UINT4", "INT8", "UINT8"])
@pytest.mark.parametrize("has_zeros", [False, True])
def test_integers_of_qdq_are_kept(kind: str, has_zeros: bool, tmp_path: Path) -> None:
    """DequantizeLinear in blocks before MatMul, signed or not."""
    bits, low = int(kind[-1]), 0 if kind[0] == "U" else -(1 << int(kind[-1]) - 1)
    w, z = (RANDOM.integers(low, low + (1 << bits), (rows, MIDDLE)) for rows in (64, 2))
    z *= has_zeros
    scales = RANDOM.uniform(0.01, 0.1, (2, MIDDLE)).astype(np.float32)
    right = (w - np.repeat(z, 32, 0)) * np.repeat(scales, 32, 0)
    data_type, tensor = getattr(onnx.TensorProto, kind), onnx.helper.make_tensor
    parts = [tensor("w", data_type, w.shape, w.ravel()), weight("s", scales)]
    parts += [tensor("z", data_type, z.shape, z.ravel())] if has_zeros else []
    nodes = [
        node("DequantizeLinear", " ".join(one.name for one in parts), "f", axis=0, block_size=32),
        node("MatMul", "x f", "y"),
    ]
    made = packer.from_onnx(model(nodes, [value("x", "rows", 64)], [unknown("y")], parts))
    build = packer.Build(cpu="native")
    loaded = runtime.load(packer.export_library(made, tmp_path / "model.so", build=build))
    for rows in (1, 5):
        x = RANDOM.normal(size=(rows, 64)).astype(np.float32)
        np.testing.assert_allclose(loaded["main"](x).numpy(), x @ right, rtol=1e-4, atol=1e-4)
    assert "dso.MatMulBits" in {one.op for one in loaded.model_record.nodes}


@pytest.mark.parametrize("form", ["Gather", "Gemm", "Transpose"])
@pytest.mark.parametrize("has_zeros", [False, True])
def test_integers_of_rows_are_kept(form: str, has_zeros: bool, tmp_path: Path) -> None:
    """Blocks along rows: of a table, of a Gemm, and of a weight that a Transpose turns."""
    w, z = (RANDOM.integers(0, 16, (MIDDLE, columns)) for columns in (64, 2))
    z = z * has_zeros
    scales = RANDOM.uniform(0.01, 0.1, (MIDDLE, 2)).astype(np.float32)
    table = ((w - np.repeat(z, 32, 1)) * np.repeat(scales, 32, 1)).astype(np.float32)
    bias = RANDOM.normal(size=MIDDLE).astype(np.float32)
    data_type, tensor = onnx.TensorProto.UINT4, onnx.helper.make_tensor
    parts = [tensor("w", data_type, w.shape, w.ravel()), weight("s", scales)]
    parts += [tensor("z", data_type, z.shape, z.ravel())] if has_zeros else []
    names = " ".join(one.name for one in parts)
    nodes = [node("DequantizeLinear", names, "f", axis=1, block_size=32)]
    x = value("x", "rows", dtype=7) if form == "Gather" else value("x", "rows", 64)
    given = RANDOM.normal(size=(5, 64)).astype(np.float32)
    expected = given @ table.T
    if form == "Gather":
        nodes += [node("Gather", "f x", "y")]
        given = np.array([3, -1, 0])
        expected = table[given]
    elif form == "Gemm":
        nodes += [node("Gemm", "x f bias", "y", transB=1)]
        parts += [weight("bias", bias)]
        expected = expected + bias
    else:
        nodes += [node("Transpose", "f", "t", perm=[1, 0]), node("MatMul", "x t", "y")]
    made = packer.from_onnx(model(nodes, [x], [unknown("y")], parts))
    loaded = runtime.load(
        packer.export_library(made, tmp_path / "m.so", build=packer.Build(cpu=()))
    )
    np.testing.assert_allclose(loaded["main"](given).numpy(), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(loaded.weights["w"].numpy(), table, rtol=1e-6)
    kind = "dso.RowsBits" if form == "Gather" else "dso.MatMulBits"
    assert [one.op for one in loaded.model_record.nodes] == [kind]


def test_a_table_and_its_product_share_a_weight(tmp_path: Path) -> None:
    """Rows of a wide table have few bits; indices that it does not have are refused."""
    table = RANDOM.normal(size=(64, 300)).astype(np.float32)
    nodes = [node("Gather", "table i", "row"), node("Gemm", "row table", "y", transB=1)]
    made = model(
        nodes, [value("i", "n", dtype=7)], [unknown("y"), unknown("row")], [weight("table", table)]
    )
    module = packer.from_onnx(made, weight_bits=8)
    loaded = runtime.load(packer.export_library(module, tmp_path / "model.so"))
    right = rounded(table.T, 8, 32).T
    products, rows = loaded["main"](np.array([3, 39, -64, -1]))
    np.testing.assert_array_equal(rows.numpy(), right[[3, 39, 0, 63]])
    np.testing.assert_allclose(products.numpy(), rows.numpy() @ right.T, rtol=1e-4, atol=1e-3)
    assert [one.op for one in loaded.model_record.nodes] == ["dso.RowsBits", "dso.MatMulBits"]
    (packed,) = [x for one in loaded.imported_modules for x in one.own_weights.values()]
    assert packed.nbytes < 0.4 * table.nbytes
    text = draw(list_sizes(packer.inspect_library(tmp_path / "model.so")))
    assert "1 of 8 bits in blocks of 32, 19,200 elements" in text
    for index in (64, -65):
        with pytest.raises(IndexError, match=f"expected -64 to 63, found {index}"):
            loaded["main"](np.array([index]))


@pytest.mark.parametrize("bits", [4, 8])
def test_activations_of_8_bits(bits: int, tmp_path: Path) -> None:
    """Equal bits at each level and for each number of rows; near the float32 results."""
    module = packer.from_onnx(network(), weight_bits=bits, activation_bits=8)
    assert "2 products round what they multiply to 8 bits" in module._imported_code.notes
    loaded = runtime.load(packer.export_library(module, tmp_path / "model.so"))
    first, second = rounded(FIRST, bits, 32), rounded(SECOND.T, bits, 32)
    x = RANDOM.normal(size=(33, INNER)).astype(np.float32)
    every = loaded["main"](x).numpy()
    right = np.maximum(x @ first @ second + BIAS, 0)
    assert np.abs(every - right).max() < 0.02 * np.abs(right).max()
    for rows in (1, 2, 5):
        np.testing.assert_array_equal(loaded["main"](x[:rows]).numpy(), every[:rows])
    for level in ("x86-64-v1", "x86-64-v3") if platform.machine() == "x86_64" else ():
        build = packer.Build(cpu=level)
        other = runtime.load(packer.export_library(module, tmp_path / level, build=build))
        np.testing.assert_array_equal(other["main"](x).numpy(), every)


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
        ({"activation_bits": 4}, "activation_bits, expected one of 8, found 4"),
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
