"""Classify a picture with deploy.so: needs runtime, but no packer, no compiler and no NumPy.

python run.py LIBRARY PICTURE.rgb SCORES.f32
"""

import sys
from array import array
from pathlib import Path
from time import perf_counter

import runtime

SIDE = 224


def top(scores, n=5):
    """Return the classes with the greatest scores, the best first."""
    return sorted(range(len(scores)), key=lambda i: -scores[i])[:n]


if __name__ == "__main__":
    library, picture, result = sys.argv[1:]
    start = perf_counter()
    model = runtime.load(library)
    rgb = memoryview(Path(picture).read_bytes())
    data = memoryview(array("f", bytes(4 * 3 * SIDE * SIDE)))
    model["normalize"](rgb, data, SIDE * SIDE)
    executor = model["default"]()
    executor.set_input("data", data.cast("B").cast("f", (1, 3, SIDE, SIDE)))
    executor.run()
    scores = executor.get_output(0)
    done = perf_counter()
    assert not {"packer", "numpy"} & set(sys.modules)

    executor.run()
    warm = perf_counter()
    Path(result).write_bytes(scores)
    print(f"first result {1e3 * (done - start):.0f} ms after the start of the load, ", end="")
    print(f"the next in {1e3 * (warm - done):.1f} ms, with {model['instruction_set']()}")
    print("top 5:", *top(memoryview(scores).cast("B").cast("f").tolist()))
