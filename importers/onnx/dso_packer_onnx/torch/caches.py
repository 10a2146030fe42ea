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

PAST = "past_key_values"
_NAMES = ("cache", PAST)  # of the parameter and of the result, in newer and older releases


class Step(NamedTuple):
    """A module whose cache is an input and an output, and how it is traced."""

    module: Any
    inputs: tuple[Any, ...]
    shapes: Any
    input_names: list[str]
    output_names: list[str]


def steps_of(model: Any, inputs: Sequence[Any], shapes: Any) -> dict[str, Step]:
    """Return the functions of a model that gets a cache of transformers; {} for other inputs.

    They are main, and the encoder of a model with one. The inputs before the cache are given by
    their position, as parameters of the model's ``forward``. Raises ExportError if the model does
    not return a cache.
    """
    caches = sys.modules.get("transformers.cache_utils")
    is_cache = [caches is not None and isinstance(one, caches.Cache) for one in inputs]
    if not any(is_cache):
        return {}
    parameters = [*inspect.signature(model.forward).parameters]
    given = {
        name: value
        for name, value, cache in zip(parameters, inputs, is_cache, strict=False)
        if value is not None and not cache
    }
    named = [name for name in _NAMES if name in parameters]
    if is_cache.count(True) != 1 or not named or not given:
        text = f"a model with {PAST}, example inputs, and one cache"
        raise ExportError(f"packer.from_torch: expected {text}, found {type(model).__name__}")
    if getattr(model.config, "is_encoder_decoder", False):
        from .encoders import encoder_decoder

        return encoder_decoder(model, given, shapes, named[0])
    past = [rows_of(pair) for pair in made_layers(model, given)]
    parts = [f"{index}.{part}" for index in range(len(past)) for part in ("key", "value")]
    main = Step(
        _module_of(model, [*given], named[0]),
        ([*given.values()], past),
        shapes if shapes is not None else _open(given, past),
        [*given, *(f"{PAST}.{part}" for part in parts)],
        ["logits", *(f"present.{part}" for part in parts)],
    )
    return {"main": main}


def made_layers(model: Any, given: dict[str, Any]) -> list[list[Any]]:
    """Return keys and values of each layer as the model makes them, then of cross attention."""
    import torch

    with torch.no_grad():
        layers = layers_of(cache_of(model(**given, use_cache=True)))
    if not layers or None in (one for layer in layers for one in layer):
        name = type(model).__name__
        text = (
            "expected keys and values of each layer, found other state; export an ONNX file with it"
        )
        raise ExportError(f"packer.from_torch: {name}: {text} as inputs and outputs, for --state")
    return layers


def layers_of(cache: Any) -> list[list[Any]]:
    """Return keys and values of each layer of a cache, then of cross attention."""
    if not hasattr(cache, "cross_attention_cache"):
        names = ("keys", "values")  # a layer of a recurrent model has neither
        return [[getattr(one, n, None) for n in names] for one in getattr(cache, "layers", ())]
    own, cross = layers_of(cache.self_attention_cache), layers_of(cache.cross_attention_cache)
    return [[*one, *other] for one, other in zip(own, cross, strict=True)]


def rows_of(tensors: Sequence[Any]) -> list[Any]:
    """Return keys and values of an example with some earlier rows."""
    rows = 5  # neither 0 nor 1, which torch.export would keep
    return [one.new_zeros((*one.shape[:2], rows, one.shape[3])) for one in tensors]


def cache_of(result: Any) -> Any:
    """Return the cache that a model returns, or None."""
    return next((found for name in _NAMES if (found := getattr(result, name, None))), None)


def _open(given: dict[str, Any], past: list[list[Any]]) -> Any:
    import torch

    dim = torch.export.Dim
    first, *others = given.values()
    of_inputs = [{1: dim("seq")}, *({one.ndim - 1: dim.AUTO} for one in others)]
    rows = {2: dim("past")}
    return {
        "inputs": of_inputs if first.ndim > 1 else [{0: dim("seq")}],
        PAST: [[rows, rows] for _ in past],
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
            return made.logits, *(one for layer in layers_of(cache_of(made)) for one in layer)

    module = Causal()
    module.train(model.training)
    return module
