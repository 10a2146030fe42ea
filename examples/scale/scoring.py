"""Score pictures with the library of examples/resnet18: what every worker runs."""

from __future__ import annotations

import argparse
import os
import threading
from pathlib import Path

import numpy as np
from PIL import Image

import runtime

# One thread for each worker, as Dask and Ray set it; read at the first run.
os.environ.setdefault("OMP_NUM_THREADS", "1")

SIDE = 224
_thread = threading.local()


def pictures(folder):
    """Return the pictures of a folder, by name."""
    kinds = {".jpg", ".jpeg", ".png"}
    return sorted(path for path in Path(folder).iterdir() if path.suffix.lower() in kinds)


def score(module, path):
    """Return the name of a picture, its best class, and that class's score."""
    with Image.open(path) as image:
        rgb = np.asarray(image.convert("RGB").resize((SIDE, SIDE)))
    picture = np.empty((1, 3, SIDE, SIDE), np.float32)
    module["normalize"](np.ascontiguousarray(rgb), picture, SIDE * SIDE)
    executor = executor_of(module)
    executor.run(data=picture)
    scores = executor.get_output(0).numpy().ravel()
    best = int(scores.argmax())
    return Path(path).name, best, float(scores[best])


def executor_of(module):
    """Return this thread's executor: its buffers are made once, and the weights are the file's."""
    if getattr(_thread, "module", None) is not module:
        _thread.module, _thread.executor = module, module["default"]()
    return _thread.executor


def arguments(description):
    """Parse the command line of a script: the module by reference, the pictures, the workers."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("library", help="deploy.so of examples/resnet18")
    parser.add_argument("folder", help="pictures: .jpg, .png")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--fetch", help="a URL of the library, for workers that do not have it")
    given = parser.parse_args()
    module = runtime.by_reference(runtime.load(given.library), fetch=given.fetch)
    return module, pictures(given.folder), given.workers


def show(results):
    """Print a line for each picture."""
    for name, best, value in results:
        print(f"{name}: class {best}, score {value:.5f}")
