"""Models of other packages' test suites: how many are equal, refused and other.

PYTHONPATH=. .venv-trees/bin/python -P -m importers.trees.tests.suites

The source distributions of skl2onnx and lleaves are downloaded to build/suites. Each model that a
test of skl2onnx gives to ONNX Runtime is compared with ONNX Runtime (`recorded`); each model file
of lleaves with LightGBM, for rows around its thresholds.
Scores in float32 are equal up to rounding.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np

import packer
import runtime

from .models import Array

_FOLDER = Path("build/suites").resolve()
_WITHOUT = ("text", "tfidf", "vectorizer", "hasher", "documentation", "investigate", "benchmark")
_ROWS = 20_000


def main() -> None:
    """Print the number of each outcome."""
    for path in sorted(_unpacked("lleaves").glob("tests/models/*/model.txt")):
        print(f"lleaves: {path.parent.name}: {_outcome(path)}", flush=True)
    lines = _recorded(_unpacked("skl2onnx") / "tests")
    for (words, _), count in Counter(line[:2] for line in lines).most_common():
        print(f"skl2onnx: {count} {words}")
    for outcome, _, test in lines:
        if not outcome.startswith(("equal", "refused")):
            print(f"skl2onnx: {test}: {outcome}")


def _unpacked(name: str) -> Path:
    """Download and unpack a source distribution."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    if not (found := sorted(_FOLDER.glob(f"{name}-*.tar.gz"))):
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", name, name]
        subprocess.run(command, cwd=_FOLDER, check=True)
        found = sorted(_FOLDER.glob(f"{name}-*.tar.gz"))
    with tarfile.open(found[-1]) as archive:
        archive.extractall(_FOLDER, filter="data")
    return _FOLDER / found[-1].name.removesuffix(".tar.gz")


def _recorded(tests: Path) -> list[tuple[str, str, str]]:
    """Run tests with the plugin; return the outcome of each model, and the test."""
    output = _FOLDER / "recorded.txt"
    output.unlink(missing_ok=True)
    files = [p.name for p in tests.glob("test_*.py") if not any(x in p.name for x in _WITHOUT)]
    plugin = ["-p", "importers.trees.tests.recorded", "-p", "no:cacheprovider", "--rootdir", "."]
    paths = {"PYTHONPATH": str(Path.cwd()), "PYTHONSAFEPATH": "", "RECORDED": str(output)}
    command = [sys.executable, "-m", "pytest", "-q", *plugin, *sorted(files)]
    subprocess.run(command, cwd=tests, env={**os.environ, **paths}, check=False)
    rows = (line.split("\t") for line in output.read_text().splitlines())
    return [(outcome, outcome.partition(", expected")[0], test) for outcome, test in rows]


def _outcome(path: Path) -> str:
    booster = lightgbm.Booster(model_file=path)
    library = packer.export_library(packer.from_trees(path), _FOLDER / "score.so")
    given = _near(booster)
    found = np.asarray(runtime.load(library)["predict"](given))
    return "equal" if (found == booster.predict(given)).all() else "other scores"


def _near(booster: Any) -> Array:
    """Return rows of thresholds and categories, of numbers next to them, and missing ones."""
    random = np.random.default_rng(0)
    given = random.normal(size=(_ROWS, booster.num_feature()))
    nodes = booster.trees_to_dataframe()
    for column, name in enumerate(booster.feature_name()):
        of_column = nodes[nodes["split_feature"] == name]["threshold"].astype(str)
        values = [float(x) for text in of_column for x in text.split("||")]
        if values:
            near = random.choice(values, _ROWS)
            further = np.nextafter(near, random.choice([-np.inf, np.inf], _ROWS))
            others = [near, further, near + random.integers(-3, 4, _ROWS), near * np.nan]
            given[:, column] = np.choose(random.integers(0, 4, _ROWS), others)
    return given


if __name__ == "__main__":
    main()
