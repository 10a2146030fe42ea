"""Causal models of transformers with their caches among the example inputs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import DynamicCache, StaticCache

import packer
import runtime

from ..support.decoders import check_same, expected, greedy, make

IDS = [5, 17, 33, 4]


@pytest.mark.parametrize("kind", ["llama static", "gpt2 dynamic"])
def test_caches_become_state(kind: str, tmp_path: Path) -> None:
    """Of either kind; `generate` finds the same tokens."""
    name, cache = kind.split()
    model = make(name)
    config = {"config": model.config, "max_cache_len": 64}
    past = StaticCache(**config) if cache == "static" else DynamicCache()
    inputs = (
        torch.zeros(1, 3, dtype=torch.int64),
        *([None, None] if cache == "static" else []),
        past,
    )
    module = packer.from_torch(model, inputs)
    library = runtime.load(packer.export_library(module, tmp_path / "model.so"))
    assert [str(one) for one in library.inputs] == ["input_ids: int64[1, seq]"]
    session = library.session()
    check_same(greedy(session, IDS, 40), expected(model, IDS, 40))
    assert session.length == len(IDS) + 39


def test_a_mask_remains_an_input(tmp_path: Path) -> None:
    """Its length is that of all tokens so far."""
    model = make("qwen2")
    ids = torch.zeros(1, 3, dtype=torch.int64)
    inputs = (ids, torch.ones(1, 8, dtype=torch.int64), None, DynamicCache())
    module = packer.from_torch(model, inputs)
    library = runtime.load(packer.export_library(module, tmp_path / "model.so"))
    assert [one.name for one in library.inputs] == ["input_ids", "attention_mask"]
    tokens = list(runtime.generate(library.session(), IDS, maximum=12))
    assert tokens == expected(model, IDS, 12)[0]


def test_models_without_a_cache_are_refused() -> None:
    """Their forward has no such parameter."""
    inputs = (torch.zeros(1, 3), DynamicCache())
    with pytest.raises(packer.ExportError, match="expected a model with past_key_values"):
        packer.from_torch(torch.nn.Linear(3, 3), inputs)


def test_state_of_another_kind_is_refused() -> None:
    """A recurrent model's layers have no keys."""
    inputs = (torch.zeros(1, 3, dtype=torch.int64), DynamicCache())
    with pytest.raises(packer.ExportError, match="keys and values of each layer, found other"):
        packer.from_torch(make("mamba"), inputs)
