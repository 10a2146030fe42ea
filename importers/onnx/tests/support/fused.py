"""The operators of the domain dso for ONNX's reference evaluator, in NumPy and in double precision.

`run` evaluates a rewritten model, `run_original` the model before with ONNX Runtime.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops import load_op
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented

Array = np.ndarray[Any, np.dtype[Any]]


def standard(kind: str, *inputs: Array | None, **attributes: Any) -> Array:
    """Evaluate an operator of ONNX."""
    return np.asarray(load_op("", kind, 23).eval(*inputs, **attributes))


def finish(
    total: Array,
    bias: Array | None,
    residual: Array | None,
    axis: int,
    activation: str,
    low: float,
    high: float,
) -> Array:
    """Compute activation(total + bias + residual)."""
    if bias is not None:
        shape = [1] * total.ndim
        shape[axis] = total.shape[axis]
        assert bias.shape == (total.shape[axis],)
        total = total + bias.reshape(shape)
    if residual is not None:
        assert residual.shape == total.shape
        total = total + residual
    erf = np.vectorize(math.erf, otypes=[np.float64])
    functions: dict[str, Callable[[Array], Array]] = {
        "": lambda x: x,
        "relu": lambda x: np.maximum(x, 0),
        "clip": lambda x: np.clip(x, low, high),
        "gelu": lambda x: x / 2 * (1 + erf(x / math.sqrt(2))),
        "gelu_tanh": lambda x: (
            x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        ),
    }
    return functions[activation](total).astype(np.float32)


class Conv(OpRun):
    """Convolution of images, or of volumes whose depths are images."""

    op_domain = "dso"

    def _run(self, x, w, b=None, residual=None, depth=None, **attributes):  # type: ignore[no-untyped-def]
        after = {key: attributes.pop(key) for key in ("activation", "low", "high")}
        x, w = x.astype(np.float64), w.astype(np.float64)
        if depth is not None:
            x, w, attributes = volumes(x, w, attributes, *map(int, depth))
        total = standard("Conv", x, w, **attributes)
        if depth is not None:
            total = total.swapaxes(1, 2).reshape(-1, total.shape[1], *total.shape[3:])
        return (finish(total, b, residual, 1, **after),)


def volumes(  # type: ignore[no-untyped-def]
    x, w, attributes, before, after, kernel, stride, dilation, pad
):
    """Return the inputs and the attributes of a Conv along three axes."""
    end = (after - 1) * stride + (kernel - 1) * dilation + 1 - pad - before
    pads = attributes["pads"]
    made = {
        "group": attributes["group"],
        "strides": [stride, *attributes["strides"]],
        "dilations": [dilation, *attributes["dilations"]],
        "pads": [pad, *pads[:2], max(end, 0), *pads[2:]],
    }
    x = x.reshape(-1, before, *x.shape[1:]).swapaxes(1, 2)
    return x[:, :, : before + min(end, 0)], w.reshape(*w.shape[:2], kernel, -1, w.shape[3]), made


def centred(a: Array, b: Array, *rest: Array | None) -> tuple[Array, Array]:
    """Return two factors in double precision, less their zeros."""
    zeros = (*rest, *[None] * 6)[4:6]
    return tuple(
        x.astype(np.float64) - (0 if zero is None else zero.astype(np.float64))
        for x, zero in zip((a, b), zeros, strict=True)
    )  # type: ignore[return-value]


def rescaled(
    total: Array, rest: tuple[Array | None, ...], axis: int, to: int, **after: Any
) -> Array:
    """Compute what dso.LowpMatMul and dso.LowpConv do after the sums."""
    bias, residual, added, scale, _, _, zero = (*rest, *[None] * 7)[:7]

    def along(value: Array | None, neutral: float) -> Array | float:
        shape = [1] * total.ndim
        shape[axis] = -1
        return neutral if value is None else value.astype(np.float64).reshape(shape)

    dtype = onnx.helper.tensor_dtype_to_np_dtype(to)
    total = (total + along(added, 0)) * along(scale, 1)
    if dtype == np.int32:
        return total.astype(np.int32)
    found = finish(total, bias, residual, axis, **after)
    if dtype not in (np.int8, np.uint8):
        return found.astype(dtype)
    rounded = np.rint(found) + (0 if zero is None else zero.astype(np.float32))
    return np.clip(rounded, np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)


class Interleave(OpRun):
    """Channels (window y, window x, output) of all inputs placed as pixels, cut at four sides."""

    op_domain = "dso"

    def _run(self, *images, window=None, crop=None):  # type: ignore[no-untyped-def]
        tall, wide = window
        each = tall * wide // len(images)
        phases = [phase for image in images for phase in np.split(image, each, axis=1)]
        height, width = (max(phase.shape[axis] for phase in phases) for axis in (2, 3))
        whole = np.zeros((*phases[0].shape[:2], height * tall, width * wide), np.float32)
        for index, phase in enumerate(phases):
            y, x = divmod(index, wide)
            rows, columns = phase.shape[2:]
            whole[:, :, y::tall, x::wide][:, :, :rows, :columns] = phase
        top, left, bottom, right = crop
        return (whole[:, :, top : height * tall - bottom, left : width * wide - right],)


class Elementwise(OpRun):
    """A loop over the elements."""

    op_domain = "dso"

    def _run(self, *inputs, graph=None, attributes=None):  # type: ignore[no-untyped-def]
        return tuple(graph.run(None, dict(zip(graph.input_names, inputs, strict=True))))


class MatMul(OpRun):
    """Product of matrices."""

    op_domain = "dso"

    def _run(self, a, b, bias=None, residual=None, trans_a=0, trans_b=0, **after):  # type: ignore[no-untyped-def]
        a, b = a.astype(np.float64), b.astype(np.float64)
        total = (a.swapaxes(-1, -2) if trans_a else a) @ (b.swapaxes(-1, -2) if trans_b else b)
        return (finish(total, bias, residual, -1, **after),)


class DoubleMatMul(OpRun):
    """Product of matrices of float64."""

    op_domain = "dso"

    def _run(self, a, b, trans_a=0, trans_b=0):  # type: ignore[no-untyped-def]
        return ((a.swapaxes(-1, -2) if trans_a else a) @ (b.swapaxes(-1, -2) if trans_b else b),)


class Attention(OpRun):
    """Softmax of q and k times v, for each head."""

    op_domain = "dso"

    def _run(self, q, k, v, mask=None, layout="", out_layout="", **attributes):  # type: ignore[no-untyped-def]
        heads, shared = attributes["num_heads"], attributes["kv_num_heads"]
        counts = (heads, shared, shared)
        if layout == "bsh":
            q, k, v = (
                x.reshape(*x.shape[:2], count, -1).swapaxes(1, 2)
                for x, count in zip((q, k, v), counts, strict=True)
            )
        assert [x.shape[1] for x in (q, k, v)] == list(counts)
        k, v = (np.repeat(x, heads // shared, axis=1) for x in (k, v))
        scores = attributes["scale"] * (q.astype(np.float64) @ k.swapaxes(-1, -2))
        scores = scores + (0 if mask is None else mask)
        if attributes["is_causal"]:
            scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
        top = scores.max(axis=-1, keepdims=True)
        powers = np.exp(scores - np.where(np.isfinite(top), top, 0))
        total = powers.sum(axis=-1, keepdims=True)
        result = (powers / np.where(total == 0, 1, total)) @ v
        if out_layout == "bsh":
            result = result.swapaxes(1, 2).reshape(result.shape[0], result.shape[2], -1)
        return (result.astype(np.float32),)


class LowpConv(OpRun):
    """Convolution of integers."""

    op_domain = "dso"

    def _run(self, x, w, *rest, to=0, **attributes):  # type: ignore[no-untyped-def]
        after = {key: attributes.pop(key) for key in ("activation", "low", "high")}
        zeros = (*rest, *[None] * 6)[4:6]
        if zeros[1] is not None and zeros[1].size > 1:
            rest = (*rest[:5], zeros[1].reshape(-1, 1, 1, 1), *rest[6:])
        total = standard("Conv", *centred(x, w, *rest), **attributes)
        return (rescaled(total, rest, 1, to, **after),)


class LowpMatMul(OpRun):
    """Product of integers or bfloat16."""

    op_domain = "dso"

    def _run(self, a, b, *rest, trans_a=0, trans_b=0, to=0, **after):  # type: ignore[no-untyped-def]
        a, b = centred(a, b, *rest)
        total = (a.swapaxes(-1, -2) if trans_a else a) @ (b.swapaxes(-1, -2) if trans_b else b)
        return (rescaled(total, rest, -1, to, **after),)


class Normalize(OpRun):
    """Rows that are normalized."""

    op_domain = "dso"

    def _run(self, x, scale=None, bias=None, kind="", axis=-1, epsilon=0.0):  # type: ignore[no-untyped-def]
        axes = tuple(range(axis, x.ndim))
        rows = x.astype(np.float64)
        if kind.endswith("softmax"):
            less = rows - rows.max(axis=axes, keepdims=True)
            total = np.exp(less).sum(axis=axes, keepdims=True)
            found = less - np.log(total) if kind == "log_softmax" else np.exp(less) / total
            return (found.astype(np.float32),)
        if kind == "layer":
            rows = rows - rows.mean(axis=axes, keepdims=True)
        result = rows / np.sqrt((rows**2).mean(axis=axes, keepdims=True) + epsilon)
        for factor, function in ((scale, np.multiply), (bias, np.add)):
            if factor is not None:
                result = function(result, factor.reshape(x.shape[axis:]))
        return (result.astype(np.float32),)


class Pooling(OpRun):
    """Windows of images."""

    op_domain = "dso"

    def _run(self, x, kind="", kernel=(), **attributes):  # type: ignore[no-untyped-def]
        name = "MaxPool" if kind == "max" else "AveragePool"
        if kind == "max":
            attributes.pop("count_include_pad")
        window = list(kernel or x.shape[2:])
        found = load_op("", name, 22).eval(x, kernel_shape=window, **attributes)
        return (np.asarray(found[0] if isinstance(found, tuple) else found, np.float32),)


class Recurrent(OpRun):
    """The steps of LSTM, GRU and RNN, one row of the batch at a time."""

    op_domain = "dso"

    def _run(  # type: ignore[no-untyped-def]
        self,
        x,
        weight,
        bias=None,
        peephole=None,
        lengths=None,
        h=None,
        c=None,
        kind="",
        results=(),
        reverse=0,
    ):
        steps, batch, _ = x.shape
        directions, gates, hidden, _ = weight.shape
        x = x.reshape(steps, batch, directions, gates, -1).astype(np.float64)
        assert x.shape[-1] == -(-hidden // 16) * 16
        assert not x[..., hidden:].any()
        states = np.zeros((2, directions, batch, hidden))
        y = np.zeros((steps, directions, batch, hidden))
        for d, b in np.ndindex(directions, batch):
            length = steps if lengths is None else lengths[b]
            state = [0 if s is None or not length else s[d, b].astype(np.float64) for s in (h, c)]
            parts = [None if p is None else p[d][..., :hidden] for p in (bias, peephole)]
            for t in range(length)[:: -1 if reverse or d else 1]:
                state = recurrent_step(kind, x[t, b, d, :, :hidden], weight[d], *parts, *state)
                y[t, d, b] = state[0]
            states[:, d, b] = np.stack([np.broadcast_to(s, hidden) for s in state])
        found = {"y": y, "h": states[0], "c": states[1]}
        return tuple(found[name].astype(np.float32) for name in results)


def sigmoid(x: Array) -> Array:
    """Compute the logistic function."""
    return np.asarray(1 / (1 + np.exp(-x)))


def recurrent_step(
    kind: str,
    x: Array,
    weight: Array,
    bias: Array | None,
    peephole: Array | None,
    h: Array,
    c: Array,
) -> list[Array]:
    """Compute the states after one step of one row."""
    sums = weight.astype(np.float64) @ np.broadcast_to(h, weight.shape[-1])
    if kind == "lstm":
        looks = np.zeros((3, 1)) if peephole is None else peephole
        entered, forget = (sigmoid(x[g] + sums[g] + looks[g] * c) for g in (0, 2))
        c = forget * c + entered * np.tanh(x[3] + sums[3])
        return [sigmoid(x[1] + sums[1] + looks[1] * c) * np.tanh(c), c]
    if kind.startswith("rnn"):
        total = x[0] + sums[0]
        return [np.tanh(total) if kind == "rnn_tanh" else np.maximum(total, 0), c]
    update, reset = sigmoid(x[:2] + sums[:2])
    if kind == "gru_reset_after":
        assert bias is not None
        inner = reset * (sums[2] + bias)
    else:
        inner = weight[2] @ (reset * h)
    return [(1 - update) * np.tanh(x[2] + inner) + update * h, c]


OPERATORS = [
    Attention,
    Conv,
    DoubleMatMul,
    Elementwise,
    Interleave,
    MatMul,
    LowpConv,
    LowpMatMul,
    Normalize,
    Pooling,
    Recurrent,
]


def run(model: ir.Model, inputs: dict[str, Array]) -> list[Array]:
    """Evaluate a model with operators of the domain dso."""
    if not any(node.domain == "dso" for node in model.graph):
        return run_original(ir.to_proto(model), inputs)
    evaluator = ReferenceEvaluator(ir.to_proto(model), new_ops=OPERATORS)
    return list(evaluator.run(None, inputs))


def run_original(model: onnx.ModelProto, inputs: dict[str, Array]) -> list[Array]:
    """Evaluate a model with ONNX Runtime, without its optimizations.

    ONNX's reference evaluator replaces it for the few operators that it does not have.
    """
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        return list(session.run(None, inputs))
    except NotImplemented:
        return list(ReferenceEvaluator(model).run(None, inputs))
