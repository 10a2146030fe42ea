"""Small causal models of transformers with a cache, as torch.onnx exports them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

import runtime

from .architectures import OTHERS, SIZES


def make(name: str) -> Any:
    """Make a model with random weights, in evaluation mode."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    known = AutoConfig.for_model(name)
    fixed = vars(type(known))  # a property has no setter
    taken = (key for key in SIZES if hasattr(known, key))
    sizes = {key: SIZES[key] for key in taken if not isinstance(fixed.get(key), property)}
    longer = ("max_position_embeddings", "max_seq_len", "n_positions")
    sizes |= {key: 320 for key in longer if key in sizes}
    config = AutoConfig.for_model(name, **{**sizes, **OTHERS.get(name, {})})
    return AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()


def export(model: Any, path: Path, batch: int = 1) -> Path:
    """Write a decoder with its cache as inputs and outputs; a batch above 1 is open."""
    import torch
    from transformers import DynamicCache

    class Step(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, past: Any) -> Any:
            cache = DynamicCache()
            for index, (key, value) in enumerate(past):
                cache.update(key, value, index)
            made = self.model(input_ids=input_ids, past_key_values=cache, use_cache=True)
            layers = made.past_key_values.layers
            return made.logits, *(one for layer in layers for one in (layer.keys, layer.values))

    with torch.no_grad():
        first = model(torch.zeros(1, 3, dtype=torch.long), use_cache=True).past_key_values
    shapes = [[one.shape for one in (layer.keys, layer.values)] for layer in first.layers]
    past = [[torch.zeros(batch, one[1], 5, one[3]) for one in pair] for pair in shapes]
    of_batch = {0: torch.export.Dim("batch")} if batch > 1 else {}
    of_past = {**of_batch, 2: torch.export.Dim("past")}
    axes = {
        "input_ids": {**of_batch, 1: torch.export.Dim("seq")},
        "past": [[of_past, of_past] for _ in shapes],
    }
    parts = [f"{index}.{part}" for index in range(len(shapes)) for part in ("key", "value")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            *(Step().eval(), (torch.randint(3, 99, (batch, 3)), past), path),
            dynamo=True,
            dynamic_shapes=axes,
            input_names=["input_ids", *(f"past_key_values.{part}" for part in parts)],
            output_names=["logits", *(f"present.{part}" for part in parts)],
            verbose=False,
        )
    return path


def greedy(session: runtime.Session, ids: Any, count: int) -> tuple[list[int], Any]:
    """Choose the best token `count` times; return the tokens, and the logits of each step."""
    given, tokens, logits = np.asarray([ids], np.int64), [], []
    for _ in range(count):
        logits.append(session["main"](given).numpy()[0, -1])
        tokens.append(int(logits[-1].argmax()))
        given = np.array([tokens[-1:]], np.int64)
    return tokens, np.array(logits)


def expected(model: Any, ids: Any, count: int) -> tuple[list[int], Any]:
    """The same by `generate` of transformers."""
    import torch

    made = model.generate(
        torch.tensor([ids]),
        max_new_tokens=count,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
        output_logits=True,
        return_dict_in_generate=True,
    )
    logits = np.array([one[0].numpy() for one in made.logits])
    return made.sequences[0, len(ids) :].tolist(), logits


def check_same(found: tuple[list[int], Any], right: tuple[list[int], Any]) -> None:
    """Tokens are equal up to a step whose two best logits are as good as equal."""
    for step, (token, other) in enumerate(zip(found[0], right[0], strict=True)):
        if token != other:
            second, first = np.sort(right[1][step])[-2:]
            assert first - second < 1e-4, f"step {step}: {token}, expected {other}"
            np.testing.assert_allclose(found[1][step], right[1][step], atol=1e-4)
            return
    np.testing.assert_allclose(found[1], right[1], atol=1e-4)
