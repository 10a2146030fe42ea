"""Transformers with open batch and length beside ONNX Runtime; all_architectures.py has more."""

from __future__ import annotations

from pathlib import Path

import pytest

import runtime

from ..support.architectures import compare

TEN = (
    *("bert", "distilbert", "roberta", "gpt2", "llama", "qwen2", "mobilebert", "deberta", "gemma2"),
    "bloom",
)


@pytest.mark.parametrize("name", TEN)
def test_a_transformer_takes_any_batch_and_length(name: str, tmp_path: Path) -> None:
    """As torch.onnx exports it; random shapes, half of them with padding."""
    compared = compare(name, tmp_path, num_shapes=6)
    assert compared.worst < 1e-4
    ids, mask = compared.model.inputs
    assert (ids.shape, mask.shape) == (("batch", "seq"), ("batch", "seq"))
    assert isinstance(compared.model, runtime.Module)
