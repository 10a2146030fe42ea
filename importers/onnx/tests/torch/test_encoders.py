"""Encoders and decoders of transformers by `from_torch`, beside `generate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime

from ..support.decoders import check_same, greedy

START, COUNT = 1, 64
SIZES = {
    **dict.fromkeys(("encoder_layers", "decoder_layers", "num_layers"), 2),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads", "num_heads"), 4),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim", "d_ff"), 64),
    "d_model": 32,
    "d_kv": 8,
    "vocab_size": 99,
    "num_mel_bins": 16,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "max_source_positions": 50,
    "max_target_positions": 128,
}


def make(name: str) -> Any:
    """Make a model with random weights, whose tokens differ."""
    import torch
    from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoModelForSpeechSeq2Seq

    torch.manual_seed(0)
    known = AutoConfig.for_model(name)
    config = AutoConfig.for_model(name, **{k: v for k, v in SIZES.items() if hasattr(known, k)})
    kind = AutoModelForSpeechSeq2Seq if name == "whisper" else AutoModelForSeq2SeqLM
    model = kind.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    return model


def expected(model: Any, given: dict[str, Any]) -> tuple[list[int], Any]:
    """Greedy tokens and logits of transformers, with its cache."""
    import torch

    tokens, logits, cache = [START], [], None
    with torch.no_grad():
        encoded = model.get_encoder()(**given)
        for _ in range(COUNT):
            ids = torch.tensor([tokens[-1:]])
            mask = {key: one for key, one in given.items() if key == "attention_mask"}
            made = model(
                encoder_outputs=encoded, decoder_input_ids=ids, cache=cache, use_cache=True, **mask
            )
            cache = made.cache
            logits.append(made.logits[0, -1].numpy())
            tokens.append(int(logits[-1].argmax()))
    return tokens[1:], np.array(logits)


@pytest.mark.parametrize("name", ["t5", "whisper"])
def test_64_greedy_tokens_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    """Cross attention's cache is the encoder's; forks and resets keep and forget it."""
    import torch
    from transformers import DynamicCache

    model = make(name)
    if name == "whisper":
        given = {"input_features": torch.randn(1, 16, 100)}
    else:
        given = {
            "input_ids": torch.tensor([[5, 17, 33, 4]]),
            "attention_mask": torch.ones(1, 4).long(),
        }
    module = packer.from_torch(model, (*given.values(), DynamicCache()))
    library = runtime.load(packer.export_library(module, tmp_path / "model.so"))
    assert [one.function for one in library.model_record.variants] == ["main", "encoder"]
    assert [str(one) for one in library.inputs] == ["input_ids: int64[1, seq]"]
    if name == "t5":
        longer = torch.tensor([[9, 3, 5, 8, 60, 2]]), torch.tensor([[1, 1, 1, 0, 1, 1]])
        given = dict(zip(given, longer, strict=True))
    right = expected(model, given)
    assert len(set(right[0])) > 1
    greatest = np.abs(right[1]).max()
    session = library.session(maximum=80)
    for _ in range(2):
        session["encoder"](*(one.numpy() for one in given.values()))
        fork = session.fork()
        for one in (session, fork):
            tokens, logits = greedy(one, [START], COUNT)
            check_same((tokens, logits / greatest), (right[0], right[1] / greatest))
        session.reset()


def test_inputs_of_the_decoder_are_refused() -> None:
    """But for decoder_input_ids: they are main's."""
    import torch
    from transformers import DynamicCache

    ids = torch.tensor([[5, 17]])
    with pytest.raises(packer.ExportError, match="encoder and a cache, found 'decoder_attention"):
        packer.from_torch(make("t5"), (ids, None, ids, ids, DynamicCache()))
