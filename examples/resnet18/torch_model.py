"""The network in PyTorch, eager."""

from __future__ import annotations

import torch
from network import EPSILON, POOL, STEM, Arrays, Conv, blocks
from torch.nn import functional


class Network:
    """A function from pictures to scores, (N, 3, 224, 224) to (N, 1000)."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = {name: torch.from_numpy(array) for name, array in arrays.items()}

    @torch.inference_mode()
    def __call__(self, data: torch.Tensor) -> torch.Tensor:
        """Compute the scores."""
        values = {"data": data}
        values[POOL] = functional.max_pool2d(self._conv(STEM, values), 3, stride=2, padding=1)
        for conv in blocks():
            values[conv.name] = self._conv(conv, values)
        features = values[conv.name].mean((2, 3))
        return functional.linear(features, self.arrays["dense.weight"], self.arrays["dense.bias"])

    def _conv(self, conv: Conv, values: dict[str, torch.Tensor]) -> torch.Tensor:
        weight, gamma, beta, mean, variance = (
            self.arrays[f"{conv.name}.{what}"]
            for what in ("weight", "gamma", "beta", "mean", "variance")
        )
        result = functional.conv2d(
            values[conv.source], weight, stride=conv.stride, padding=conv.padding
        )
        result = functional.batch_norm(result, mean, variance, gamma, beta, eps=EPSILON)
        if conv.residual:
            result += values[conv.residual]
        return functional.relu(result) if conv.relu else result
