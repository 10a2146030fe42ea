"""Pack photo.so, send a real photograph through it in a fresh process, and check the result.

`make demo` runs it; the results are written to out/ in this folder.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import reference
from matplotlib import cbook
from matplotlib.figure import Figure
from matplotlib.image import imread

HERE = Path(__file__).parent
OUT = HERE / "out"
LIBRARY, PHOTO, RESULT, PICTURE = (
    OUT / name for name in ("photo.so", "photo.npy", "result.npz", "picture.png")
)
EXPONENT = 0.7  # the same as in run.py
TOLERANCE = 1e-4  # the library computes in float32, NumPy here in float64


def main():
    """Pack, load and run in another process, check, draw, inspect."""
    OUT.mkdir(exist_ok=True)

    print("1. Pack C, LLVM, constants, an OpenCL kernel and a custom module type into one file:")
    packer("export", LIBRARY)

    photo = imread(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False))
    np.save(PHOTO, photo)
    height, width, _ = photo.shape
    print("\n2. Load it in a fresh process without packer, and find the edges of a photograph")
    print(f"   (matplotlib's grace_hopper.jpg, {width} x {height}):")
    run(["python", "run.py"], [sys.executable, "run.py"], LIBRARY, PHOTO, RESULT)

    print("\n3. Compute the same with NumPy:")
    result = np.load(RESULT)
    compare(photo, result)

    print("\n4. Draw photograph and edges side by side:")
    draw(photo, result)
    print(f"   {os.path.relpath(PICTURE)}")

    print("\n5. Inspect the file, without executing any of it:")
    packer("inspect", LIBRARY)


def packer(command, library):
    """Run the packer command of this environment."""
    run(["packer", command], [sys.executable, "-m", "packer", command], library)


def run(shown, command, *paths):
    """Run a command in this folder; print the command and its output."""
    names = [str(path.relative_to(HERE)) for path in paths]
    print("   $", *shown, *names, flush=True)
    done = subprocess.run(
        [*command, *names], cwd=HERE, check=True, stdout=subprocess.PIPE, text=True
    )
    print(textwrap.indent(done.stdout, "     "), end="")


def compare(photo, result):
    """Print the difference to NumPy's images, and stop if it is too large."""
    filters = np.load(HERE / "filters.npy")
    gray, edges = reference.develop(photo, filters, result["colours"], EXPONENT)
    for name, image in {"gray": gray, "edges": edges, "edges_on_device": edges}.items():
        if name not in result:
            print(f"   {name:15}  not computed: there is no device, see above")
            continue
        difference = np.abs(result[name] - image).max()
        print(f"   {name:15}  greatest difference {difference:.1e}, allowed {TOLERANCE:.0e}")
        assert difference <= TOLERANCE, f"{name} differs by {difference}"


def draw(photo, result):
    """Write photograph, grey image and edges as one picture, with the palette's names."""
    figure = Figure(figsize=(12, 5.4), facecolor="black", layout="constrained")
    images = {"photograph": photo, "gray": result["gray"], "edges by direction": result["edges"]}
    for axes, (title, image) in zip(figure.subplots(1, 3), images.items(), strict=True):
        axes.imshow(image, cmap="gray")
        axes.set_title(title, color="white")
        axes.axis("off")
    for i, (name, colour) in enumerate(zip(result["names"], result["colours"], strict=True)):
        x = (i + 0.5) / len(result["names"])
        axes.text(x, -0.05, name, color=colour, ha="center", transform=axes.transAxes)
    figure.savefig(PICTURE)


if __name__ == "__main__":
    main()
