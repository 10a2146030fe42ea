"""Send a photograph through photo.so: needs runtime and numpy, but no packer and no compiler.

python run.py LIBRARY PHOTO.npy RESULT.npz
"""

import sys
from time import perf_counter

import numpy as np
import palette  # noqa: F401  registers the loader of photo.palette

import runtime


def develop(model, photo, exponent):
    """Return the grey image and the coloured edges, float32 from 0 to 1.

    Parameters
    ----------
    model : runtime.Module
        The loaded library.
    photo : numpy.ndarray
        (height, width, 3) uint8.
    exponent : float
        Below 1 it lifts what is dark.
    """
    height, width, _ = photo.shape
    colours = model["colours"]()  # our own module type: Python
    gray = np.empty((height, width), np.float32)
    responses = np.empty((len(colours), height, width), np.float32)
    edges = np.empty((height, width, 3), np.float32)

    model["gray"](photo, gray, gray.size)  # C
    model["convolve"](gray, responses, height, width)  # C, with the constants of const_loader
    model["paint"](responses, colours, edges, gray.size)  # C
    model["gamma"](edges, edges.size, exponent)  # LLVM
    return gray, edges


def tree(module, depth=0):
    """Return the tree below a module as lines of text."""
    lines = [f"{'  ' * depth}{module!r}"]
    for imported in module.imported_modules:
        lines += tree(imported, depth + 1)
    return lines


if __name__ == "__main__":
    library, photo, result = sys.argv[1:]
    pixels = np.load(photo)
    start = perf_counter()
    model = runtime.load(library)
    loaded = perf_counter()
    gray, edges = develop(model, pixels, exponent=0.6)
    done = perf_counter()
    print(f"loaded in {1e3 * (loaded - start):.1f} ms, ran in {1e3 * (done - loaded):.0f} ms")
    print(*tree(model), sep="\n")
    np.savez(result, gray=gray, edges=edges, names=model["names"]())
