"""dso_op_recurrent called with NumPy's arrays, and NumPy's result."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_float, c_int, c_int32, c_int64
from dataclasses import dataclass
from typing import Any

import numpy as np

from packer.operators import BLOCK, pack_matmul

from .operators import Floats, pointer, run

GATES = {"lstm": 4, "gru": 3, "gru_reset_after": 3, "rnn_tanh": 1, "rnn_relu": 1}


class Recurrent(Structure):
    """struct dso_op_recurrent."""

    _fields_ = [
        ("kind", c_int),
        *((name, c_int64) for name in ("directions", "steps", "batch", "hidden")),
        ("is_reverse", c_int),
        ("clip", c_float),
        *((name, Floats) for name in ("x", "weight", "bias", "peephole", "h", "c")),
        ("lengths", POINTER(c_int32)),
        *((name, Floats) for name in ("y", "last_h", "last_c", "workspace")),
    ]


@dataclass
class Layer:
    """A layer with random weights and inputs.

    Arrays have the real number of units: x (steps, batch, directions, gates, hidden), weight
    (directions, gates, hidden, hidden).
    """

    kind: str
    directions: int
    steps: int
    batch: int
    hidden: int
    is_reverse: bool = False
    has_peephole: bool = False
    has_states: bool = False
    lengths: np.ndarray | None = None
    clip: float = 0

    def __post_init__(self) -> None:
        random = np.random.default_rng(self.hidden)
        d, n, g = self.directions, self.hidden, GATES[self.kind]

        def some(*shape: int) -> np.ndarray:
            return random.normal(size=shape).astype(np.float32)

        self.x = some(self.steps, self.batch, d, g, n)
        self.weight = some(d, g, n, n) / np.float32(np.sqrt(n) + 1)
        self.bias = some(d, n)
        self.peephole = some(d, 3, n) if self.has_peephole else None
        self.h, self.c = some(2, d, self.batch, n) if self.has_states else (None, None)


def recurrent(library: ctypes.CDLL, layer: Layer) -> dict[str, np.ndarray]:
    """Call the operator; return all its results."""
    state = (layer.directions, layer.batch, layer.hidden)
    shapes = {"y": (layer.steps, *state), "last_h": state, "last_c": state}
    out = {name: np.full(shape, np.nan, np.float32) for name, shape in shapes.items()}
    if layer.kind != "lstm":
        del out["last_c"]
    lengths = layer.lengths
    inputs: dict[str, Any] = {
        "x": _units(layer.x),
        "weight": pack_matmul(layer.weight.swapaxes(2, 3)),
        "bias": _units(layer.bias),
        "peephole": None if layer.peephole is None else _units(layer.peephole),
        "h": layer.h,
        "c": layer.c,
    }
    struct = Recurrent(
        kind=list(GATES).index(layer.kind),
        directions=layer.directions,
        steps=layer.steps,
        batch=layer.batch,
        hidden=layer.hidden,
        is_reverse=layer.is_reverse,
        clip=layer.clip,
        lengths=None if lengths is None else lengths.ctypes.data_as(POINTER(c_int32)),
        **{name: pointer(array) for name, array in {**inputs, **out}.items()},
    )
    run(library, "recurrent", struct)
    return out


def expected(layer: Layer) -> dict[str, np.ndarray]:
    """Compute the same in double precision, one row at a time."""
    state = (layer.directions, layer.batch, layer.hidden)
    y, h, c = np.zeros((layer.steps, *state)), np.zeros(state), np.zeros(state)
    for d in range(layer.directions):
        for b in range(layer.batch):
            length = layer.steps if layer.lengths is None else layer.lengths[b]
            times = range(length)[:: -1 if layer.is_reverse or d else 1]
            if length and layer.h is not None and layer.c is not None:
                h[d, b], c[d, b] = layer.h[d, b], layer.c[d, b]
            for t in times:
                h[d, b], c[d, b] = _step(layer, d, layer.x[t, b, d], h[d, b], c[d, b])
                y[t, d, b] = h[d, b]
    found = {"y": y, "last_h": h, "last_c": c}
    return found if layer.kind == "lstm" else {name: found[name] for name in ("y", "last_h")}


def _step(layer: Layer, d: int, x: Any, h: Any, c: Any) -> tuple[Any, Any]:
    x, weight = x.astype(np.float64), layer.weight[d].astype(np.float64)
    sums = weight @ h
    clip = layer.clip or np.inf

    def limited(argument: Any) -> Any:
        return np.clip(argument, -clip, clip)

    if layer.kind == "lstm":
        looks = np.zeros((3, 1)) if layer.peephole is None else layer.peephole[d]
        entered, forget = (_sigmoid(limited(x[g] + sums[g] + looks[g] * c)) for g in (0, 2))
        c = forget * c + entered * np.tanh(limited(x[3] + sums[3]))
        return _sigmoid(limited(x[1] + sums[1] + looks[1] * c)) * np.tanh(c), c
    if layer.kind.startswith("rnn"):
        return (np.tanh if layer.kind == "rnn_tanh" else _relu)(limited(x[0] + sums[0])), c
    update, reset = _sigmoid(limited(x[:2] + sums[:2]))
    inner = weight[2] @ (reset * h)
    if layer.kind == "gru_reset_after":
        inner = reset * (sums[2] + layer.bias[d])
    return (1 - update) * np.tanh(limited(x[2] + inner)) + update * h, c


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _relu(x: Any) -> Any:
    return np.maximum(x, 0)


def _units(array: np.ndarray) -> np.ndarray:
    """Return an array with zeros after the last axis, to whole blocks."""
    pads = [(0, 0)] * (array.ndim - 1) + [(0, -array.shape[-1] % BLOCK)]
    return np.pad(array, pads)
