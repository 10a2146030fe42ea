"""Models of transformers with an encoder: two functions, which share cross attention's cache.

``encoder`` returns the keys and values that cross attention makes of its result, so each is
computed once. ``main`` gets them as inputs, beside the rows of the decoder.
"""

from __future__ import annotations

from typing import Any

from packer import ExportError

from .caches import PAST, Step, cache_of, layers_of, made_layers, rows_of

_IDS, _MASK = "decoder_input_ids", "attention_mask"
_PARTS = ("decoder.key", "decoder.value", "encoder.key", "encoder.value")


def encoder_decoder(
    model: Any, given: dict[str, Any], shapes: Any, name_of_cache: str
) -> dict[str, Step]:
    """Return the steps of both functions; `given` and `shapes` are of the encoder's inputs."""
    import torch

    given.pop(_IDS, None)
    other = next((name for name in given if name.startswith("decoder_")), None)
    if other is not None or not given:
        text = f"inputs of the encoder and a cache, found {other or 'no input'!r}"
        raise ExportError(f"packer.from_torch: {type(model).__name__}: expected {text}")
    first = next(iter(given.values()))
    ids = torch.zeros((first.shape[0], 3), dtype=torch.int64)
    layers = made_layers(model, {**given, _IDS: ids})
    past = [[*rows_of(layer[:2]), *layer[2:]] for layer in layers]
    mask = [given[_MASK]] if _MASK in given else []
    names = [f"{index}.{part}" for index in range(len(past)) for part in _PARTS]
    cross = [f"present.{name}" for name in names if "encoder" in name]
    dim = torch.export.Dim
    open_ids = [{1: dim("source")} if one.ndim == 2 else {} for one in given.values()]
    rows, source = {2: dim("past")}, {2: dim("source")}
    kept = [f"encoder_{_MASK}" for _ in mask]
    encoder = Step(
        _encoder(model, [*given]),
        ([*given.values()],),
        {"inputs": shapes if shapes is not None else open_ids},
        [*given],
        [*cross, *kept],
    )
    main = Step(
        _decoder(model, name_of_cache),
        (ids, past, *mask),
        {
            "ids": {1: dim("seq")},
            "past": [[rows, rows, source, source] for _ in past],
            **({"mask": {1: dim("source")}} if mask else {}),
        },
        ["input_ids", *(f"{PAST}.{name}" for name in names), *kept],
        ["logits", *(f"present.{name}" for name in names if "decoder" in name)],
    )
    return {"main": main, "encoder": encoder}


def _encoder(model: Any, names: list[str]) -> Any:
    import torch

    class Encoder(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, inputs: Any) -> Any:
            named = dict(zip(names, inputs, strict=True))
            ids = torch.zeros((inputs[0].shape[0], 1), dtype=torch.int64)
            made = self.model(**{**named, _IDS: ids}, use_cache=True)
            layers = layers_of(cache_of(made))
            mask = [named[_MASK].clone()] if _MASK in named else []
            return *(one for layer in layers for one in layer[2:]), *mask

    module = Encoder()
    module.train(model.training)
    return module


def _decoder(model: Any, name_of_cache: str) -> Any:
    import torch
    from transformers import DynamicCache, EncoderDecoderCache

    class Decoder(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: Any, past: Any, mask: Any = None) -> Any:
            own, cross = DynamicCache(), DynamicCache()
            for index, (key, value, *others) in enumerate(past):
                own.update(key, value, index)
                cross.update(*others, index)
            cache = EncoderDecoderCache(own, cross)
            cache.is_updated = dict.fromkeys(range(len(past)), True)
            # Only its shape is used: cross attention has its keys and values.
            hidden = past[0][2][:, 0, :, :1].expand(-1, -1, model.config.hidden_size)
            given = {name_of_cache: cache, _MASK: mask, _IDS: ids}
            made = self.model(encoder_outputs=(hidden,), use_cache=True, **given)
            layers = layers_of(cache_of(made))
            return made.logits, *(one for layer in layers for one in layer[:2])

    module = Decoder()
    module.train(model.training)
    return module
