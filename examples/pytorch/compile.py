"""Compile PyTorch networks with TVM: ``python compile.py FOLDER``. Needs torch and apache-tvm.

Writes <name>.so for each network, and <name>.npz: inputs, and the outputs that PyTorch computes.
"""

import sys
from pathlib import Path

import numpy as np
import torch
import tvm
from torch import nn
from tvm.relax.frontend.torch import from_exported_program


def convolutional():
    """Make a small convolutional network for images of 32 x 32 pixels."""
    return nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        nn.Linear(16, 10),
    )


def encoder():
    """Make two layers of a transformer encoder, 32 features wide."""
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


BATCH = torch.export.Dim("batch", min=1, max=64)
# name -> (network, shape of the example input, dynamic extents, shapes to try)
NETWORKS = {
    "convolutional": (convolutional, (1, 3, 32, 32), None, [(1, 3, 32, 32)]),
    "encoder": (encoder, (2, 7, 32), None, [(2, 7, 32)]),
    "dynamic_batch": (
        convolutional,
        (2, 3, 32, 32),
        ({0: BATCH},),
        [(1, 3, 32, 32), (5, 3, 32, 32), (64, 3, 32, 32)],
    ),
}


def main(folder):
    """Compile each network, and store what PyTorch computes."""
    torch.manual_seed(0)
    for name, (make, shape, dynamic_shapes, shapes) in NETWORKS.items():
        network = make().eval()
        program = torch.export.export(network, (torch.randn(shape),), dynamic_shapes=dynamic_shapes)
        executable = tvm.compile(from_exported_program(program), target="llvm")
        executable.export_library(str(folder / f"{name}.so"))

        arrays = {}
        for index, tried in enumerate(shapes):
            x = torch.randn(tried)
            arrays[f"input{index}"] = x.numpy()
            arrays[f"output{index}"] = network(x).detach().numpy()
        np.savez(folder / f"{name}.npz", **arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
