"""Run the compiled networks: ``python run.py FOLDER``. Needs runtime and numpy; no torch, no TVM.

Prints the greatest difference to what PyTorch computed.
"""

import sys
from pathlib import Path

import numpy as np

import runtime

TOLERANCE = 1e-5


def main(folder):
    """Load each library, run it on the stored inputs, and compare."""
    for library in sorted(folder.glob("*.so")):
        model = runtime.load(library)
        arrays = np.load(library.with_suffix(".npz"))
        for index in range(len(arrays) // 2):
            x, expected = arrays[f"input{index}"], arrays[f"output{index}"]
            (output,) = model["main"](x)
            difference = np.abs(output.numpy() - expected).max()
            print(f"{library.stem} {x.shape}: greatest difference {difference:.1e}")
            assert difference < TOLERANCE
    assert not {"torch", "tvm"} & set(sys.modules)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
