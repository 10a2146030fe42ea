"""GroupQueryAttention and RotaryEmbedding of ONNX Runtime, beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import packer
import runtime

HEADS, SHARED, SIZE = 4, 2, 32
RANDOM = np.random.default_rng(1)
ANGLES = RANDOM.normal(size=(32, SIZE // 2))
TABLES = [np.cos(ANGLES), np.sin(ANGLES)]
OPEN = {(i, 0): "batch" for i in range(6)} | {(i, 1): "rows" for i in range(3)}
OPEN |= {(3, 2): "past", (4, 2): "past", (9, 0): "batch", (9, 1): "rows"}
OPEN |= {(10, 2): "rows", (10, 3): "past + rows"}


def floats(*shape: int) -> np.ndarray:
    """Random numbers."""
    return RANDOM.normal(size=shape)


def inputs_of(
    rows: int, past: int | None, batch: int = 1, is_packed: bool = False, angles: Any = ()
) -> list[Any]:
    """Return the inputs of GroupQueryAttention, of equal lengths; None is left out."""
    widths = [HEADS * SIZE, SHARED * SIZE, SHARED * SIZE]
    if is_packed:
        new = [floats(batch, rows, sum(widths)), None, None]
    else:
        new = [floats(batch, rows, width) for width in widths]
    shape = (batch, SHARED, past or 0, SIZE)
    caches = [None, None] if past is None else [floats(*shape), floats(*shape)]
    total = rows + (past or 0)
    return [*new, *caches, np.full(batch, total - 1, np.int32), np.int32(total), *angles]


def compared(
    operator: str, inputs: list[Any], folder: Path, dtype: Any = np.float32, **attributes: Any
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the results of both; only the tables of angles are constants, lengths are open."""
    inputs = [None if one is None else np.asarray(one) for one in inputs]
    inputs = [one if one is None or one.dtype != float else one.astype(dtype) for one in inputs]
    is_group = operator == "GroupQueryAttention"
    tables = (7, 8) if is_group else (2, 3)
    names = ["" if one is None else f"v{i}" for i, one in enumerate(inputs)]
    results = ["y", "key", "value"] if is_group else ["y"]
    node = helper.make_node(operator, names, results, "node", domain="com.microsoft", **attributes)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    values, weights, given = [], [], {}
    for i, one in enumerate(inputs):
        if one is not None and i in tables:
            weights.append(numpy_helper.from_array(one, names[i]))
        elif one is not None:
            shape = [OPEN.get((i, axis), n) if is_group else n for axis, n in enumerate(one.shape)]
            given[names[i]] = one
            own = helper.np_dtype_to_tensor_dtype(one.dtype)
            values.append(helper.make_tensor_value_info(names[i], own, shape))
    outputs = [helper.make_tensor_value_info(name, kind, None) for name in results]
    graph = helper.make_graph([node], "g", values, outputs, weights)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    module = packer.from_onnx(proto)
    path = packer.export_library(module, folder / "m.so", build=packer.Build(cpu=()))
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, given)
    found = runtime.load(path)["main"](*given.values())
    return [one.numpy() for one in (found if isinstance(found, tuple) else (found,))], expected


BIAS = [None, floats(1, HEADS, 3, 7)]
CASES: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "rows after others": (inputs_of(3, 4), {}),
    "a token for each batch": (inputs_of(1, 4, batch=3, angles=TABLES), {"do_rotary": 1}),
    "a prompt": (inputs_of(3, 0, angles=TABLES), {"do_rotary": 1, "rotary_interleaved": 1}),
    "without a cache": (inputs_of(3, None, batch=2), {"scale": 0.3, "softcap": 0.5}),
    "packed": (
        inputs_of(3, 4, is_packed=True, angles=[*TABLES, np.array([[2, 5, 3]])]), {"do_rotary": 1},
    ),
    "half of the columns": (
        inputs_of(3, 4, angles=[table[:, :8] for table in TABLES]), {"do_rotary": 1},
    ),
    "a window": (inputs_of(6, 4), {"local_window_size": 3}),
    "a bias": ([*inputs_of(3, 4), None, None, *BIAS], {"softcap": 0.5}),
}  # fmt: skip


GROUP = {"num_heads": HEADS, "kv_num_heads": SHARED}


@pytest.mark.parametrize("kind", CASES)
def test_queries_share_keys_as_in_onnx_runtime(kind: str, tmp_path: Path) -> None:
    """The result and both caches."""
    inputs, attributes = CASES[kind]
    pair = compared("GroupQueryAttention", inputs, tmp_path, **GROUP, **attributes)
    for found, expected in zip(*pair, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_queries_of_halves_share_keys(tmp_path: Path) -> None:
    """To the rounding of float16."""
    inputs = inputs_of(1, 4, batch=2, angles=TABLES)
    pair = compared("GroupQueryAttention", inputs, tmp_path, np.float16, **GROUP, do_rotary=1)
    for found, expected in zip(*pair, strict=True):
        assert found.dtype == np.float16
        np.testing.assert_allclose(found, expected, rtol=0, atol=5e-3)


def test_shorter_texts_of_a_batch_are_a_prompt_only(tmp_path: Path) -> None:
    """Of a prompt the rows of each length count; later the cache has another length than they."""
    inputs = inputs_of(4, 0, batch=2)
    inputs[5] = np.array([3, 1], np.int32)
    (found, _, _), (expected, _, _) = compared("GroupQueryAttention", inputs, tmp_path, **GROUP)
    np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=2e-6)
    np.testing.assert_allclose(found[1, :2], expected[1, :2], rtol=0, atol=2e-6)
    main = runtime.load(tmp_path / "m.so")["main"]
    *floating, _, total = inputs_of(1, 4, batch=2)
    given = [one.astype(np.float32) for one in floating]
    main(*given, np.array([4, 4], np.int32), np.asarray(total))
    for other in (2, 5, -1):
        words = f"GroupQueryAttention: seqlens_k, expected 4 to 4, found {other}$"
        with pytest.raises(IndexError, match=words):
            main(*given, np.array([4, other], np.int32), np.asarray(total))
    prompt = [one.astype(np.float32) for one in inputs[:5]]
    with pytest.raises(IndexError, match="seqlens_k, expected 0 to 3, found 4$"):
        main(*prompt, np.array([4, 1], np.int32), np.asarray(inputs[6]))


def test_a_session_keeps_the_cache(tmp_path: Path) -> None:
    """A prompt, then tokens; attention reads the rows where the session has them."""
    caches = ["past_key_values.0.key", "past_key_values.0.value"]
    text = f"""
    <ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
    decoder (float[1, rows, {(HEADS + 2 * SHARED) * SIZE}] x, int32[1] last, int32 total,
      float[1, {SHARED}, past, {SIZE}] key, float[1, {SHARED}, past, {SIZE}] value)
      => (float[1, rows, {HEADS * SIZE}] y, float[1, {SHARED}, all, {SIZE}] new_key,
          float[1, {SHARED}, all, {SIZE}] new_value)
    {{ y, new_key, new_value = com.microsoft.GroupQueryAttention
         <num_heads = {HEADS}, kv_num_heads = {SHARED}> (x, , , key, value, last, total) }}
    """
    proto = onnx.parser.parse_model(text)
    names = dict(zip(("key", "value"), caches, strict=True))
    names |= {
        f"new_{one}": name.replace("past_key_values", "present") for one, name in names.items()
    }
    for one in (*proto.graph.input, *proto.graph.output):
        one.name = names.get(one.name, one.name)
    (node,) = proto.graph.node
    for values in (node.input, node.output):
        values[:] = [names.get(name, name) for name in values]
    peer = onnxruntime.InferenceSession(proto.SerializeToString())
    module, one_level = packer.from_onnx(proto), packer.Build(cpu=())
    model = runtime.load(packer.export_library(module, tmp_path / "m.so", build=one_level))
    (attention,) = [one for one in model.model_record.nodes if one.op == "dso.Attention"]
    assert attention.inputs[1:3] == ("present.0.key", "present.0.value")
    session = model.session()
    past = [np.zeros((1, SHARED, 0, SIZE), np.float32)] * 2
    for rows in (5, 1, 1):
        (x, *_), total = inputs_of(rows, None, is_packed=True), past[0].shape[2] + rows
        given = [x.astype(np.float32), np.array([total - 1], np.int32), np.array(total, np.int32)]
        inputs = dict(zip(["x", "last", "total", *caches], [*given, *past], strict=True))
        expected, *past = peer.run(None, inputs)
        np.testing.assert_allclose(session["main"](*given).numpy(), expected, rtol=0, atol=2e-6)
    assert session.length == 7


ALL = [[1, 2, 3, 4], [3, 4, 5, 6]]
PART = {"rotary_embedding_dim": 16, "num_heads": 3}


@pytest.mark.parametrize(
    ("rank", "positions", "attributes"),
    [
        (3, [5], {"interleaved": 1, **PART}),
        (3, ALL, {}),
        (3, ALL, {"scale": 0.5, **PART}),
        (4, [5], PART),
        (4, ALL, {"interleaved": 1}),
    ],
)
def test_pairs_of_columns_turn_as_in_onnx_runtime(
    rank: int, positions: list[Any], attributes: dict[str, Any], tmp_path: Path
) -> None:
    """By the first position or by all; ONNX Runtime ignores the scale."""
    x = floats(2, 4, 3 * SIZE) if rank == 3 else floats(2, 3, 4, SIZE)
    half = attributes.get("rotary_embedding_dim", SIZE) // 2
    inputs = [x, np.array(positions), *(table[:, :half] for table in TABLES)]
    (found,), (expected,) = compared("RotaryEmbedding", inputs, tmp_path, **attributes)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"smooth_softmax": 1}, "smooth_softmax"),
        ({"local_window_size": 0}, "local_window_size 0"),
        ({"kv_num_heads": 3}, "num_heads 4 and kv_num_heads 3"),
        ({"causal": 0}, "further inputs, or keys that are not causal"),
    ],
)
def test_another_form_is_refused_by_name(
    attributes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    """ONNX Runtime has it elsewhere, or computes something else."""
    with pytest.raises(packer.ExportError, match=f"'node'.* GroupQueryAttention with {words}"):
        compared("GroupQueryAttention", inputs_of(1, 4), tmp_path, **{**GROUP, **attributes})
