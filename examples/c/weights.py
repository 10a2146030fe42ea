"""The weights of a layer with three inputs and one output: needs NumPy and safetensors."""

import numpy as np
from safetensors.numpy import save

import runtime


def weights():
    """Make the module; for a file, packer.toml has `kind = "safetensors"`."""
    return runtime.SafetensorsModule(save({"layer1.weight": np.float32([0.5, 1, 2])}))
