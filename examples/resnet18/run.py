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
    """Return the classes with the highest scores, the best first."""
    return sorted(range(len(scores)), key=lambda i: -scores[i])[:n]


def classify(model, rgb):
    """Return an executor that has run on a picture, (224, 224, 3) bytes."""
    picture = memoryview(array("f", bytes(4 * 3 * SIDE * SIDE)))
    model["normalize"](memoryview(rgb), picture, SIDE * SIDE)
    executor = model["default"]()
    executor.set_input("data", picture.cast("B").cast("f", (1, 3, SIDE, SIDE)))
    executor.run()
    return executor


def peak_memory():
    """Return the peak memory of this process, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    library, picture, result = sys.argv[1:]
    start = perf_counter()
    model = runtime.load(library)
    executor = classify(model, Path(picture).read_bytes())
    done = perf_counter()
    executor.run()
    again = perf_counter()
    assert not {"packer", "numpy"} & set(sys.modules)

    scores = executor.get_output(0)
    Path(result).write_bytes(scores)
    print(f"first result {1e3 * (done - start):.0f} ms after the start of the load, ", end="")
    print(f"the next in {1e3 * (again - done):.1f} ms, with {model['instruction_set']()}; ", end="")
    print(f"peak memory {peak_memory():.0f} MiB")
    print("top 5:", *top(memoryview(scores).cast("B").cast("f").tolist()))
