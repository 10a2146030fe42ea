"""A million mutants of the tables of forests and steps: each is refused or evaluated, no crash.

PYTHONPATH=. .venv-trees/bin/python -P -m importers.trees.tests.stress [--count N] [--seed 1]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import packer
import runtime

from .models import CASES
from .pipelines import PIPELINES
from .test_damaged import mutate

_MODELS = {
    "bins": CASES["xgboost-logistic"],
    "categories": CASES["lightgbm-categories"],
    "linear leaves": CASES["lightgbm-linear"],
    "steps of an encoder": PIPELINES["ordinal"],
    "steps of a kernel": PIPELINES["svr"],
}


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for name, make in _MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            module = packer.from_trees(make().model)
            model = runtime.load(packer.export_library(module, Path(folder, "score.so")))
        start = time.monotonic()
        outcomes = mutate(model, given.count // len(_MODELS), given.seed)
        seconds = time.monotonic() - start
        print(f"{name}: seed {given.seed}, {outcomes}, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
