"""Networks that no library has, as kinds that users write: of sound, of pictures and of text."""

from __future__ import annotations

import torch


class First(torch.nn.Module):
    """A network with one result: the first value of a dictionary, a tuple or an object."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Return the first result."""
        made = self.model(*inputs)
        if isinstance(made, dict):
            made = next(iter(made.values()))
        return made[0] if isinstance(made, (tuple, list)) else made


class Tcn(torch.nn.Module):
    """Dilated causal convolutions, as for sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(
            torch.nn.Conv1d(64, 64, 3, padding=2 * 2**i, dilation=2**i) for i in range(8)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the features."""
        for layer in self.layers:
            x = x + torch.relu(layer(x)[..., : x.shape[-1]])
        return x


class TasNet(torch.nn.Module):
    """A separation network: a learned filter bank, depthwise convolutions, the bank's inverse."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.encode = nn.Conv1d(1, 256, 16, 8)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv1d(256, 256, 1), nn.PReLU(), nn.GroupNorm(1, 256),
                nn.Conv1d(256, 256, 3, padding=2**i, dilation=2**i, groups=256), nn.PReLU(),
                nn.GroupNorm(1, 256), nn.Conv1d(256, 256, 1),
            )
            for i in range(6)
        )  # fmt: skip
        self.decode = nn.ConvTranspose1d(256, 1, 16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the waveform."""
        coded = torch.relu(self.encode(x))
        made = coded
        for block in self.blocks:
            made = made + block(made)
        return self.decode(coded * torch.sigmoid(made))


class Edsr(torch.nn.Module):
    """A super-resolution network of residual blocks and a pixel shuffle."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.first = nn.Conv2d(3, 64, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1)
            )
            for _ in range(8)
        )
        self.last = nn.Sequential(
            nn.Conv2d(64, 256, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(64, 3, 3, padding=1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the picture."""
        x = first = self.first(x)
        for block in self.blocks:
            x = x + 0.1 * block(x)
        return self.last(x + first)


class Tagger(torch.nn.Module):
    """Embeddings, an LSTM in both directions and a classifier."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(5000, 128)
        self.layer = getattr(torch.nn, kind)(128, 128, 2, batch_first=True, bidirectional=True)
        self.last = torch.nn.Linear(256, 20)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the scores."""
        return torch.log_softmax(self.last(self.layer(self.table(ids))[0]), -1)


class Spectrum(torch.nn.Module):
    """A spectrogram on a logarithmic scale, and convolutions over it."""

    def __init__(self) -> None:
        super().__init__()
        self.window = torch.nn.Parameter(torch.hann_window(400), requires_grad=False)
        self.bands = torch.nn.Linear(201, 64, bias=False)
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(1, 32, 3, 2), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 3, 2)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the features."""
        made = torch.stft(x, 400, 160, window=self.window, center=False, return_complex=False)
        power = (made**2).sum(-1).transpose(1, 2)
        return self.layers(torch.log(self.bands(power).abs() + 1e-5)[:, None])


class Esrgan(torch.nn.Module):
    """A super-resolution network of dense residual blocks, which doubles the picture twice."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.first, self.last = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 3, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.ModuleList(
                nn.Conv2d(32 + 16 * i, 16 if i < 4 else 32, 3, padding=1) for i in range(5)
            )
            for _ in range(4)
        )
        self.up = nn.ModuleList(nn.Conv2d(32, 32, 3, padding=1) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the picture."""
        x = first = self.first(x)
        for block in self.blocks:
            made = [x]
            for layer in block:
                made.append(torch.nn.functional.leaky_relu(layer(torch.cat(made, 1)), 0.2))
            x = x + 0.2 * made[-1]
        x = x + first
        for layer in self.up:
            x = torch.nn.functional.interpolate(x, scale_factor=2.0)
            x = torch.nn.functional.leaky_relu(layer(x), 0.2)
        return self.last(x)


class Demucs(torch.nn.Module):
    """A separation network: strided convolutions, an LSTM, transposed convolutions, gates."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        widths = [1, 32, 64, 128]
        pairs = list(zip(widths, widths[1:], strict=False))
        self.down = nn.ModuleList(
            nn.Sequential(nn.Conv1d(a, b, 8, 4, 2), nn.ReLU(), nn.Conv1d(b, 2 * b, 1), nn.GLU(1))
            for a, b in pairs
        )
        self.layer = nn.LSTM(128, 128, 1, batch_first=True, bidirectional=True)
        self.middle = nn.Linear(256, 128)
        self.up = nn.ModuleList(
            nn.Sequential(
                nn.Conv1d(b, 2 * b, 3, padding=1), nn.GLU(1), nn.ConvTranspose1d(b, a, 8, 4, 2)
            )
            for a, b in reversed(pairs)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the waveform."""
        kept = []
        for layer in self.down:
            x = layer(x)
            kept.append(x)
        x = self.middle(self.layer(x.transpose(1, 2))[0]).transpose(1, 2)
        for layer in self.up:
            x = layer(x + kept.pop())
        return x


class Generator(torch.nn.Module):
    """A generator of pictures, as DCGAN: transposed convolutions and batch normalizations."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        widths = [100, 256, 128, 64, 32]
        layers: list[torch.nn.Module] = []
        for i, (a, b) in enumerate(zip(widths, widths[1:], strict=False)):
            layers += [nn.ConvTranspose2d(a, b, 4, *((1, 0) if i == 0 else (2, 1)))]
            layers += [nn.BatchNorm2d(b), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the picture."""
        return self.layers(x)
