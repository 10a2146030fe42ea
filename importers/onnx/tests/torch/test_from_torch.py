"""Models of PyTorch beside PyTorch itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import packer
import runtime
import runtime.torch


class Encoder(nn.Module):
    """Embedding, attention, GELU and LayerNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, activation="gelu", batch_first=True)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return (batch, rows, 32)."""
        result: torch.Tensor = self.layer(self.embedding(ids))
        return result


class Two(nn.Module):
    """Two inputs and two outputs."""

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the sum and the product."""
        return left + right, left @ right


def network() -> nn.Sequential:
    """Make a small network of images."""
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.SiLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )


def load(module: Any, path: Path) -> runtime.Module:
    """Export and load."""
    return runtime.load(packer.export_library(module, path))


def assert_close(found: Any, expected: torch.Tensor, tolerance: float = 1e-5) -> None:
    """Compare with the greatest element of the expected result."""
    wanted = expected.detach().numpy()
    found = np.asarray(found)
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= tolerance * np.abs(wanted).max()


def test_a_network_of_images_is_exported_for_inference(tmp_path: Path) -> None:
    """BatchNorm uses its statistics, and the model is in training mode again afterwards."""
    model = network().train()
    library = load(packer.from_torch(model, [torch.zeros(2, 3, 16, 16)]), tmp_path / "a.so")
    assert model.training
    x = torch.randn(2, 3, 16, 16)
    with torch.no_grad():
        assert_close(library["main"](x), model.eval()(x))
    assert set(library.weights) >= {"8.weight", "8.bias"}


def test_an_encoder_takes_any_batch(tmp_path: Path) -> None:
    """The name of the symbol is that of torch's Dim."""
    torch.manual_seed(3)
    model = Encoder().eval()
    shapes = {"ids": {0: torch.export.Dim("sentences", max=64)}}
    module = packer.from_torch(model, [torch.zeros(2, 9, dtype=torch.int64)], shapes)
    library = load(module, tmp_path / "a.so")
    assert library.inputs[0].shape == ("sentences", 9)
    for batch in (1, 2, 7):
        ids = torch.randint(0, 50, (batch, 9))
        with torch.no_grad():
            assert_close(library["main"](ids), model(ids), 1e-4)


def test_packed_module_replaces_the_model(tmp_path: Path) -> None:
    """Tensors in, tensors out; several outputs are a tuple."""
    example = [torch.zeros(4, 4), torch.zeros(4, 4)]
    library = load(packer.from_torch(Two(), example), tmp_path / "a.so")
    packed = runtime.torch.PackedModule(library)
    left, right = torch.randn(4, 4), torch.randn(4, 4)
    added, product = packed(left, right)
    assert isinstance(added, torch.Tensor)
    assert torch.equal(added, left + right)
    assert_close(product, left @ right)


def test_an_exported_program_is_a_model(tmp_path: Path) -> None:
    """Its own example inputs count."""
    program = torch.export.export(nn.Linear(5, 3), (torch.zeros(2, 5),))
    library = load(packer.from_torch(program), tmp_path / "a.so")
    x = torch.randn(2, 5)
    assert_close(library["main"](x), program.module()(x))


class Branch(nn.Module):
    """A result that depends on values."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x or -x."""
        return x if x.sum() > 0 else -x


class Qr(nn.Module):
    """An operator that ONNX does not have."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the orthogonal factor."""
        return torch.linalg.qr(x)[0]


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (Branch(), "torch.export cannot trace Branch: "),
        (Qr(), "torch.onnx has no ONNX operators for the model: "),
        (network(), "torch.export cannot trace Sequential: "),
        (torch.zeros, "expected torch.nn.Module or ExportedProgram, found "),
    ],
    ids=["branch", "operator", "inputs", "function"],
)
def test_a_model_that_torch_cannot_write_is_refused(model: Any, text: str) -> None:
    """The first line of torch's error says why."""
    with pytest.raises(packer.PackerError, match=text):
        packer.from_torch(model, [torch.zeros(3, 3)])


class Positive(nn.Module):
    """A result whose shape depends on values."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the positive elements."""
        return x[x > 0]


def test_values_decide_the_shape_of_a_result(tmp_path: Path) -> None:
    """As many elements as the mask takes, also none."""
    main = load(packer.from_torch(Positive(), [torch.zeros(3, 3)]), tmp_path / "m.so")["main"]
    for x in (torch.randn(3, 3, generator=torch.manual_seed(1)), -torch.ones(3, 3)):
        assert torch.equal(torch.from_numpy(main(x).numpy().copy()), x[x > 0])


class Joined(nn.Module):
    """Two tensors, one of which is twice as long."""

    def forward(self, x: torch.Tensor, long: torch.Tensor) -> torch.Tensor:
        """Return the rows of both."""
        return torch.cat([x.tanh(), long[:, : x.shape[1]], long], 1)


def test_symbols_have_the_names_and_bounds_of_dynamic_shapes(tmp_path: Path) -> None:
    """Also a derived one, 2*seq; each call is checked."""
    batch, seq = torch.export.Dim("batch"), torch.export.Dim("seq", max=64)
    shapes = {"x": {0: batch, 1: seq}, "long": {0: batch, 1: 2 * seq}}
    module = packer.from_torch(Joined(), [torch.zeros(2, 4), torch.zeros(2, 8)], shapes)
    model = load(module, tmp_path / "m.so")
    assert [info.shape for info in model.inputs] == [("batch", "seq"), ("batch", "2*seq")]
    assert [info.shape for info in model.outputs] == [("batch", "4*seq")]
    assert str(model.inputs[0]) == "x: float32[batch, seq <= 64]"
    for rows, length in ((1, 1), (3, 5), (2, 64)):
        x, long = torch.rand(rows, length), torch.rand(rows, 2 * length)
        expected = Joined()(x, long).numpy()
        np.testing.assert_allclose(model["main"](x, long).numpy(), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="extent seq, expected at most 64, found 65"):
        model["main"](torch.rand(1, 65), torch.rand(1, 130))
    with pytest.raises(ValueError, match="extent of axis 1, expected 6, found 7"):
        model["main"](torch.rand(1, 3), torch.rand(1, 7))


class Halved(nn.Module):
    """A picture, halved three times and enlarged again."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(*(nn.Conv2d(2, 2, 3, stride=2, padding=1) for _ in range(3)))

    def forward(self, x: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        """Add the picture, and the first entries of a row of one more than a side."""
        smaller = nn.functional.interpolate(self.down(x), scale_factor=8.0)
        return smaller + x + row[:, None, None, 1:]


def test_a_symbol_that_no_axis_has_alone_is_known_by_its_multiples(tmp_path: Path) -> None:
    """8*h and 8*h + 1 give h, whose range each call checks, as it checks the multiples."""
    h, w = torch.export.Dim("h", min=3, max=9), torch.export.Dim("w", max=9)
    shapes = {"x": {2: 8 * w, 3: 8 * h}, "row": {1: 8 * h + 1}}
    net = Halved().eval()
    module = packer.from_torch(net, [torch.zeros(1, 2, 16, 32), torch.zeros(1, 33)], shapes)
    model = load(module, tmp_path / "m.so")
    assert [info.shape for info in model.inputs] == [(1, 2, "8*w", "8*h"), (1, "8*h + 1")]
    assert [info.shape for info in model.outputs] == [(1, 2, "8*w", "8*h")]
    for rows, columns in ((8, 24), (40, 32), (72, 72)):
        x, row = torch.rand(1, 2, rows, columns), torch.rand(1, columns + 1)
        with torch.no_grad():
            assert_close(model["main"](x, row), net(x, row))
    for sizes, error in (
        ((16, 25, 26), "'x' .*: extent of axis 3, expected 24, found 25"),
        ((16, 24, 26), "'row' .*: extent of axis 1, expected 25, found 26"),
        ((16, 16, 17), r"the model's range: extent h as Max\(3, h\), expected 3, found 2"),
        ((80, 24, 25), "extent w, expected at most 9, found 10"),
    ):
        rows, columns, length = sizes
        with pytest.raises(ValueError, match=error):
            model["main"](torch.rand(1, 2, rows, columns), torch.rand(1, length))


def test_torch_prints_nothing_before_a_refusal(capfd) -> None:
    """It prints the graph so far, in many lines."""
    with pytest.raises(packer.PackerError, match="cannot trace"):
        packer.from_torch(Branch(), [torch.zeros(3, 3)])
    assert capfd.readouterr() == ("", "")
