"""Process a photograph with photo.so: needs runtime and numpy, but no packer and no compiler.

python run.py LIBRARY PHOTO.npy RESULT.npz
"""

import sys
from time import perf_counter

import numpy as np
import palette  # noqa: F401  registers the loader of photo.palette

import runtime


def develop(model, photo, exponent, device=None):
    """Return the grey image and the coloured edges, float32 from 0 to 1.

    Parameters
    ----------
    model : runtime.Module
        The loaded library.
    photo : numpy.ndarray
        (height, width, 3) uint8.
    exponent : float
        The exponent of the tone curve: below 1 it brightens dark pixels.
    device : runtime.Device, optional
        The device that convolves; without one the CPU does, in C.
    """
    height, width, _ = photo.shape
    colours = model["colours"]()  # the custom module type, Python
    gray = np.empty((height, width), np.float32)
    responses = np.empty((len(colours), height, width), np.float32)
    edges = np.empty((height, width, 3), np.float32)

    model["gray"](photo, gray, gray.size)  # C
    if device is None:
        model["convolve"](gray, responses, height, width)  # C, with the filters of const_loader
    else:
        responses = convolve_on(device, model, gray, responses.shape)
    model["paint"](responses, colours, edges, gray.size)  # C
    model["gamma"](edges, edges.size, exponent)  # LLVM
    return gray, edges


def convolve_on(device, model, gray, shape):
    """Return the responses that a kernel on a device computes."""
    filters = model["get_const_var_ndarray"]()["filters"]  # const_loader
    image, weights = runtime.tensor(gray, device), runtime.tensor(filters, device)
    responses = runtime.empty(shape, "float32", device)
    model["convolve_on_device"](image, weights, responses)  # C, which launches the OpenCL kernel
    return responses.numpy()


def tree(module):
    """Return the type keys of a module and of its imports."""
    imports = ", ".join(map(tree, module.imported_modules))
    return f"{module.type_key} > {imports}" if imports else module.type_key


if __name__ == "__main__":
    library, photo, result = sys.argv[1:]
    pixels = np.load(photo)
    start = perf_counter()
    model = runtime.load(library)
    loaded = perf_counter()
    gray, edges = develop(model, pixels, exponent=0.7)
    done = perf_counter()
    images = {"gray": gray, "edges": edges}
    print(f"loaded in {1e3 * (loaded - start):.1f} ms, ran in {1e3 * (done - loaded):.0f} ms")
    print("tree:", tree(model))
    try:
        device = runtime.Device("opencl", 0)
        images["edges_on_device"] = develop(model, pixels, exponent=0.7, device=device)[1]
        print(f"kernel ran on {device}: {device.name}")
    except runtime.DeviceError as error:
        print(f"no kernel ran: {error}")
    assert "packer" not in sys.modules
    np.savez(result, **images, colours=model["colours"](), names=model["names"]())
