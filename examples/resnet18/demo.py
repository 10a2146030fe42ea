"""Pack ResNet-18 into one library, run it in a fresh process, and compare with ONNX Runtime.

`make resnet18` runs it; the results are written to out/ in this folder.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from statistics import median
from time import perf_counter

import network
import numpy as np
import onnxruntime
from matplotlib import cbook
from onnx_model import onnx_model
from PIL import Image
from run import top

import runtime

HERE = Path(__file__).parent
OUT = HERE / "out"
LIBRARY, OPENCL, PICTURE, SCORES = (
    OUT / name for name in ("deploy.so", "opencl.so", "picture.rgb", "scores.f32")
)
EXPORT = ["-m", "packer", "export"]
INPUTS, ROUNDS = 16, 15
TOLERANCE = 1e-4


def main():
    """Pack, load and run in another process, compare, time, inspect."""
    OUT.mkdir(exist_ok=True)
    parameters = network.parameters()
    print(f"ResNet-18, {network.count(parameters):,} random parameters: the class of a picture has")
    print("no meaning; the demo shows that ONNX Runtime computes the same scores.")

    print("\n1. Pack graph, C kernels and weights into one file:")
    run(["packer", "export"], [sys.executable, *EXPORT], LIBRARY)
    print(f"     {LIBRARY.stat().st_size / 1e6:.1f} MB")

    print(
        "\n2. Load it in a fresh process and classify a photograph (matplotlib's grace_hopper.jpg):"
    )
    PICTURE.write_bytes(photograph().tobytes())
    run(["python", "run.py"], [sys.executable, "run.py"], LIBRARY, PICTURE, SCORES)

    print("\n3. Compare with ONNX Runtime, both on one thread:")
    session = onnx_session(parameters)
    executor = runtime.load(LIBRARY)["default"]()
    photo = normalized(photograph())
    compare_photograph(session, photo)
    compare_inputs(session, executor)
    compare_times(session, executor, photo)

    print("\n4. The same tree with OpenCL kernels, which the driver compiles at the first launch:")
    project = ["--project", "opencl.toml"]
    run(["packer", "export", *project], [sys.executable, *EXPORT, *project], OPENCL)
    compare_opencl(session, photo)

    print("\n5. Inspect the file, without executing any of it:")
    run(["packer", "inspect"], [sys.executable, "-m", "packer", "inspect"], LIBRARY)


def run(shown, command, *paths):
    """Run a command in this folder; print the command and its output."""
    names = [str(path.relative_to(HERE)) for path in paths]
    print("   $", *shown, *names, flush=True)
    done = subprocess.run(
        [*command, *names], cwd=HERE, check=True, stdout=subprocess.PIPE, text=True
    )
    print(textwrap.indent(done.stdout, "     "), end="")


def photograph():
    """Return the middle of the photograph, (224, 224, 3) uint8."""
    with Image.open(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False)) as image:
        side = min(image.size)
        left, upper = ((extent - side) // 2 for extent in image.size)
        square = image.resize((network.SIDE,) * 2, box=(left, upper, left + side, upper + side))
    return np.asarray(square)


def normalized(rgb):
    """Return the result of the kernel `normalize`, (1, 3, 224, 224) float32."""
    mean, deviation = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    pixels = (rgb / np.float32(255) - mean) / deviation
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])


def onnx_session(parameters):
    """Load the same network into ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(
        onnx_model(parameters), options, providers=["CPUExecutionProvider"]
    )


def scores_of(session, data):
    """Return ONNX Runtime's scores."""
    return session.run(None, {"data": data})[0].ravel()


def compare_photograph(session, photo):
    """Print the best classes of both, and stop if they differ."""
    ours, theirs = np.fromfile(SCORES, np.float32), scores_of(session, photo)
    print("   class   deploy.so   ONNX Runtime")
    for i in top(theirs):
        print(f"   {i:5}   {ours[i]:9.5f}   {theirs[i]:12.5f}")
    check(ours, theirs)


def compare_inputs(session, executor):
    """Print the greatest difference on random inputs."""
    random = np.random.default_rng(16)
    worst = 0.0
    for _ in range(INPUTS):
        data = random.normal(size=(1, 3, network.SIDE, network.SIDE)).astype(np.float32)
        executor.set_input("data", data)
        executor.run()
        ours = np.from_dlpack(executor.get_output(0)).ravel()
        worst = max(worst, check(ours, scores_of(session, data)))
    print(f"   same top 5 on {INPUTS} further inputs; greatest difference {worst:.1e}, ", end="")
    print(f"allowed {TOLERANCE:.0e}")


def check(ours, theirs):
    """Return the greatest difference; stop if it is too great."""
    difference = np.abs(ours - theirs).max()
    assert difference <= TOLERANCE, f"scores differ by {difference}"
    assert top(ours) == top(theirs)
    return difference


def compare_times(session, executor, photo):
    """Print the time of a picture, measured alternately."""
    executor.set_input("data", photo)
    times = {executor.run: [], lambda: scores_of(session, photo): []}
    for _ in range(ROUNDS):
        for call, taken in times.items():
            start = perf_counter()
            call()
            taken.append(1e3 * (perf_counter() - start))
    ours, theirs = map(median, times.values())
    print(f"   a picture: {ours:.1f} ms, ONNX Runtime {theirs:.1f} ms: {ours / theirs:.2f} x")


def compare_opencl(session, photo):
    """Print the difference on the first OpenCL device, if there is one."""
    device = runtime.Device("opencl", 0)
    if not device.exist:
        print("   not run: this machine has no OpenCL device")
        return
    executor = runtime.load(OPENCL)["default"](device)
    executor.run(data=photo)
    start = perf_counter()
    executor.run()
    scores = executor.get_output(0).numpy().ravel()  # waits for the device
    took = 1e3 * (perf_counter() - start)
    difference = check(scores, scores_of(session, photo))
    print(f"   {device.name}: same top 5, greatest difference {difference:.1e}; {took:.0f} ms")


if __name__ == "__main__":
    os.chdir(HERE)
    main()
