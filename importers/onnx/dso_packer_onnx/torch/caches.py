"""Causal models of transformers: a cache among the example inputs becomes state of the library.

torch.onnx has no name for what a DynamicCache holds, and cannot write the tensors that a
StaticCache changes. So the model gets keys and values as lists, in a new cache of rows that grow,
and returns them with the names that decoders have.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from packer import ExportError

_PAST = "past_key_values"
_NAMES = ("cache", _PAST)  # of the parameter and of the result, in newer and older releases


class Step(NamedTuple):
    """A module whose cache is an input and an output, and how it is traced."""

    module: Any
    inputs: tuple[Any, ...]
    shapes: Any
    input_names: list[str]
    output_names: list[str]


def step_of(model: Any, inputs: Sequence[Any], shapes: Any) -> Step | None:
    """Return a step for inputs with a cache of transformers; None for other inputs.

    The inputs before the cache are given by their position, as parameters of the model's
    ``forward``. Raises ExportError if the model does not return a cache.
    """
    caches = sys.modules.get("transformers.cache_utils")
    is_cache = [caches is not None and isinstance(one, caches.Cache) for one in inputs]
    if not any(is_cache):
        return None
    parameters = [*inspect.signature(model.forward).parameters]
    given = {
        name: value
        for name, value, cache in zip(parameters, inputs, is_cache, strict=False)
        if value is not None and not cache
    }
    named = [name for name in _NAMES if name in parameters]
    if is_cache.count(True) != 1 or not named or not given:
        text = f"a model with {_PAST}, example inputs, and one cache"
        raise ExportError(f"packer.from_torch: expected {text}, found {type(model).__name__}")
    past = _rows_of(model, given)
    parts = [f"{index}.{part}" for index in range(len(past)) for part in ("key", "value")]
    return Step(
        _module_of(model, [*given], named[0]),
        ([*given.values()], past),
        shapes if shapes is not None else _open(given, past),
        [*given, *(f"{_PAST}.{part}" for part in parts)],
        ["logits", *(f"present.{part}" for part in parts)],
    )


def _rows_of(model: Any, given: dict[str, Any]) -> list[list[Any]]:
    """Return keys and values as the model makes them, with some earlier rows."""
    import torch

    with torch.no_grad():
        layers = getattr(_cache_of(model(**given, use_cache=True)), "layers", ())
    if not layers or any(getattr(layer, "keys", None) is None for layer in layers):
        name = type(model).__name__
        raise ExportError(f"packer.from_torch: {name}: expected keys and values of each layer")
    rows = 5  # of an example: neither 0 nor 1, which torch.export would keep
    return [
        [one.new_zeros((*one.shape[:2], rows, one.shape[3])) for one in (layer.keys, layer.values)]
        for layer in layers
    ]


def _cache_of(result: Any) -> Any:
    return next((found for name in _NAMES if (found := getattr(result, name, None))), None)


def _open(given: dict[str, Any], past: list[list[Any]]) -> Any:
    import torch

    dim = torch.export.Dim
    first, *others = given.values()
    of_inputs = [{1: dim("seq")}, *({one.ndim - 1: dim.AUTO} for one in others)]
    rows = {2: dim("past")}
    return {
        "inputs": of_inputs if first.ndim > 1 else [{0: dim("seq")}],
        _PAST: [[rows, rows] for _ in past],
    }


def _module_of(model: Any, names: Sequence[str], name_of_cache: str) -> Any:
    import torch
    from transformers import DynamicCache

    class Causal(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, inputs: Any, past_key_values: Any) -> Any:
            cache = DynamicCache()
            for index, (key, value) in enumerate(past_key_values):
                cache.update(key, value, index)
            named = dict(zip(names, inputs, strict=True))
            made = self.model(**named, **{name_of_cache: cache}, use_cache=True)
            layers = _cache_of(made).layers
            return made.logits, *(one for layer in layers for one in (layer.keys, layer.values))

    module = Causal()
    module.train(model.training)
    return module
