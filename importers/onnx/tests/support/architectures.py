"""Small models of transformers, by the name of their architecture, with random weights."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime

import packer
import runtime

# A configuration takes the sizes that it has.
SIZES = {
    **dict.fromkeys(
        ("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "word_embed_proj_dim"), 32
    ),
    **dict.fromkeys(
        ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers"), 2
    ),
    **dict.fromkeys(("decoder_layers", "num_decoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), 4),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads", "attention_heads"), 4),
    **dict.fromkeys(
        ("intermediate_size", "ffn_dim", "hidden_dim", "d_ff", "n_inner", "d_inner"), 64
    ),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim", "ffn_hidden_size"), 64),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx"), 128),
    **dict.fromkeys(("vocab_size", "n_words"), 99),
    "num_key_value_heads": 2,
    "head_dim": 8,
    "d_kv": 8,
    "embedding_size": 32,
    "rotary_dim": 8,
    "emb_dim": 32,
    "true_hidden_size": 32,
    "intra_bottleneck_size": 32,
    "window_size": 8,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "sliding_window": 64,
}
# Settings that a class wants beside these.
OTHERS: dict[str, dict[str, Any]] = {
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "big_bird": {"attention_type": "original_full"},
    "deberta": {"pos_att_type": []},
    "mobilebert": {"use_bottleneck": True},
    "squeezebert": dict.fromkeys(
        ("q_groups", "k_groups", "v_groups", "post_attention_groups", "intermediate_groups"), 2
    ),
}
TEXT = (
    *(
        "bert",
        "distilbert",
        "roberta",
        "gpt2",
        "llama",
        "qwen2",
        "electra",
        "albert",
        "mpnet",
        "opt",
    ),
    *(
        "camembert",
        "xlm-roberta",
        "ernie",
        "layoutlm",
        "megatron-bert",
        "rembert",
        "roc_bert",
        "esm",
    ),
    *(
        "data2vec-text",
        "ibert",
        "nystromformer",
        "modernbert",
        "mobilebert",
        "squeezebert",
        "deberta",
    ),
    *("deberta-v2", "roformer", "convbert", "splinter", "xlm", "flaubert", "fnet", "big_bird"),
    *("gpt_neo", "gpt_neox", "gptj", "bloom", "mistral", "qwen3", "gemma", "gemma2", "phi", "phi3"),
    *("falcon", "stablelm", "olmo", "cohere", "starcoder2", "codegen", "biogpt", "xglm", "granite"),
)


# Of the benchmark.
LARGER = {key: 8 * value if value in (32, 64) else value for key, value in SIZES.items()} | {
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers"), 4),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "hidden_dim", "n_inner"), 1024),
    "head_dim": 64,
    "vocab_size": 1000,
    "sliding_window": 128,
}


def make(name: str, all_sizes: Mapping[str, int] = SIZES) -> Any:
    """Make a model in evaluation mode."""
    import torch
    from transformers import AutoConfig, AutoModel

    torch.manual_seed(0)
    known = AutoConfig.for_model(name)
    fixed = vars(type(known))  # a property has no setter
    taken = (key for key in all_sizes if hasattr(known, key))
    sizes = {key: all_sizes[key] for key in taken if not isinstance(fixed.get(key), property)}
    config = AutoConfig.for_model(name, **{**sizes, **OTHERS.get(name, {})})
    config.use_cache = False
    return AutoModel.from_config(config, attn_implementation="eager").eval()


def export(name: str, path: Path, sizes: Mapping[str, int] = SIZES) -> None:
    """Write a model with open batch and length, as torch.onnx exports it."""
    import torch

    model = make(name, sizes)

    class Text(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.model(input_ids=input_ids, attention_mask=attention_mask)[0]

    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("seq", max=128)}
    inputs = (torch.randint(3, 99, (2, 7)), torch.ones(2, 7, dtype=torch.int64))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            *(Text().eval(), inputs, path),
            dynamo=True,
            dynamic_shapes={"input_ids": axes, "attention_mask": axes},
            input_names=["input_ids", "attention_mask"],
            output_names=["y"],
            verbose=False,
        )


class Compared(NamedTuple):
    """A library beside ONNX Runtime."""

    model: runtime.Module
    worst: float  # the greatest difference of a result, of its greatest value
    num_shapes: int


def compare(name: str, folder: Path, *, num_shapes: int) -> Compared:
    """Export a model, and compare results for random shapes, every second one with padded rows."""
    path = folder / f"{name}.onnx"
    export(name, path)
    model = runtime.load(packer.export_library(packer.from_onnx(path), folder / f"{name}.so"))
    session = onnxruntime.InferenceSession(str(path))
    random = np.random.default_rng(len(name))
    worst = 0.0
    for number in range(num_shapes):
        batch, length = int(random.integers(1, 6)), int(random.integers(1, 120))
        mask = np.ones((batch, length), np.int64)
        for row in mask if number % 2 else ():
            row[random.integers(1, length + 1) :] = 0
        given = {"input_ids": random.integers(3, 99, (batch, length)), "attention_mask": mask}
        given = {each.name: given[each.name] for each in session.get_inputs()}
        (expected,) = session.run(None, given)
        found = model["main"](*given.values()).numpy()
        assert found.shape == expected.shape
        known = np.isfinite(expected)
        greatest = max(float(np.abs(expected[known]).max()), 1e-9)
        worst = max(worst, float(np.abs(np.where(known, found - expected, 0)).max()) / greatest)
    return Compared(model, worst, num_shapes)
