"""Modules as PyTorch's exporter writes them, rewritten."""

from __future__ import annotations

import io
import logging
import warnings
from collections import Counter
from typing import Any

import onnx
import onnx_ir as ir
import pytest

from dso_packer_onnx.read import read_model, with_shapes
from dso_packer_onnx.rewrite import rewrite
from tests.support import needs

from ..support.rewriting import Rewritten, rewritten

torch: Any = needs.module("torch", "torch")


def exported(module: Any, x: Any, version: int) -> Rewritten:
    """Export a module for inference, rewrite it, and compare the results."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            program = torch.onnx.export(
                module.eval(), (x,), dynamo=True, verbose=False, opset_version=version
            )
        finally:
            logging.disable(logging.NOTSET)
    file = io.BytesIO()
    onnx.save(program.model_proto, file)
    shaped = with_shapes(read_model(file.getvalue()))
    return rewritten(ir.to_proto(shaped), rewrite)


class Residual(torch.nn.Module):  # type: ignore[misc]
    """Two convolutions with normalization, and a projection beside them."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.first = nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16))
        self.second = nn.Sequential(nn.Conv2d(16, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16))
        self.beside = nn.Sequential(nn.Conv2d(8, 16, 1, 2, bias=False), nn.BatchNorm2d(16))

    def forward(self, x: Any) -> Any:
        """Return the activation of the sum."""
        y = self.second(torch.relu(self.first(x)))
        return torch.relu(y + self.beside(x))


class Inverted(torch.nn.Module):  # type: ignore[misc]
    """The inverted residual of MobileNetV2."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.layers = nn.Sequential(
            *(nn.Conv2d(8, 24, 1, bias=False), nn.BatchNorm2d(24), nn.ReLU6()),
            *(nn.Conv2d(24, 24, 3, 1, 1, groups=24, bias=False), nn.BatchNorm2d(24), nn.ReLU6()),
            *(nn.Conv2d(24, 8, 1, bias=False), nn.BatchNorm2d(8)),
        )

    def forward(self, x: Any) -> Any:
        """Return the sum of the input and the layers."""
        return x + self.layers(x)


@pytest.mark.parametrize("version", [18, 23])
@pytest.mark.parametrize("module", [Residual, Inverted])
def test_a_block_of_convolutions_is_three_operators(module: Any, version: int) -> None:
    """Each with its normalization, its activation and the residual."""
    found = exported(module(), torch.randn(2, 8, 10, 10), version)
    assert found.kinds == ["dso.Conv"] * 3


@pytest.mark.parametrize("version", [18, 23])
@pytest.mark.parametrize("rows", [1, 2])
def test_a_layer_of_an_encoder_has_no_transposes(version: int, rows: int) -> None:
    """The projection of q, k and v is split, and rows are computed as they are given."""
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu")
    found = exported(layer, torch.randn(rows, 5, 32), version)
    assert Counter(found.kinds) == {"dso.MatMul": 6, "dso.Attention": 1, "dso.Normalize": 2}
    assert found.attributes("Attention")["out_layout"] == "bsh"
