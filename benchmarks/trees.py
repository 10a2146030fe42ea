"""Scores of forests on one thread: LightGBM, ONNX Runtime, compilers, and a library of packer.

    .venv-trees/bin/python benchmarks/trees.py [--quick]

Each forest is trained by LightGBM on random rows. All score the same 1,000 different rows, in one
batch and one by one; the figures are microseconds of processor time for a row: the least of the
rounds, in which the subjects take turns. ONNX Runtime gets the forest in float32. The ratio is
that of the fastest peer. YDF scores a forest that it trained.

lleaves and tl2cgen are measured where they are installed, in forests of at most COMPILED trees,
since they compile for minutes. lleaves needs llvmlite<0.42 and numpy<2: an environment with these,
tl2cgen, treelite, lightgbm, onnx, onnxruntime, ydf and this project runs the whole table.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "TVM_NUM_THREADS"):
    os.environ[name] = "1"

import lightgbm  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402

import packer  # noqa: E402
import runtime  # noqa: E402
from dso_packer_trees.read import read_model  # noqa: E402

# Trees, leaves, depth, features.
FORESTS = [
    (10, 8, 3, 10),
    (100, 31, -1, 30),
    (500, 31, -1, 30),
    (500, 64, 6, 30),
    (500, 255, 12, 30),
    (500, 31, -1, 2000),
    (5000, 31, -1, 30),
]
ROWS = 1000
COMPILED = 100
PEERS = ("LightGBM", "ONNX Runtime", "lleaves", "tl2cgen")
Score = Callable[[Any], Any]


def train(trees: int, leaves: int, depth: int, features: int) -> lightgbm.Booster:
    """Train a forest of this size."""
    random = np.random.default_rng(0)
    rows = random.normal(size=(20_000 if features < 100 else 4000, features))
    label = rows[:, 0] * 2 + rows[:, 1] ** 2 + np.sin(rows[:, 2] * 3) * rows[:, 3]
    label += random.normal(size=len(rows))
    options = {"num_leaves": leaves, "max_depth": depth, "verbose": -1, "num_threads": 1}
    return lightgbm.train(options, lightgbm.Dataset(rows.astype(np.float32), label), trees)


def as_onnx(booster: lightgbm.Booster, features: int) -> bytes:
    """Return the forest as a TreeEnsembleRegressor."""
    trees = read_model(booster)[0][0].trees
    count = np.diff(trees.begins)
    tree = np.repeat(np.arange(len(count)), count)
    number = np.arange(len(tree)) - trees.begins[:-1][tree]
    leaf = trees.left < 0
    attributes: dict[str, Any] = {
        "nodes_treeids": tree,
        "nodes_nodeids": number,
        "nodes_featureids": np.where(leaf, 0, trees.feature),
        "nodes_values": np.where(leaf, 0, trees.threshold).astype(np.float32),
        "nodes_truenodeids": np.where(leaf, 0, trees.left),
        "nodes_falsenodeids": np.where(leaf, 0, trees.right),
        "target_treeids": tree[leaf],
        "target_nodeids": number[leaf],
        "target_ids": np.zeros(leaf.sum(), np.int64),
        "target_weights": trees.value[leaf, 0].astype(np.float32),
    }
    lists = {name: array.tolist() for name, array in attributes.items()}
    modes = np.where(leaf, "LEAF", "BRANCH_LEQ").tolist()
    node = onnx.helper.make_node(
        *("TreeEnsembleRegressor", ["x"], ["y"]),
        **{**lists, "nodes_modes": modes, "n_targets": 1, "domain": "ai.onnx.ml"},
    )
    ends = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [None, extent])
        for name, extent in (("x", features), ("y", 1))
    ]
    graph = onnx.helper.make_graph([node], "forest", ends[:1], ends[1:])
    versions = [onnx.helper.make_opsetid("ai.onnx.ml", 3), onnx.helper.make_opsetid("", 15)]
    model = onnx.helper.make_model(graph, opset_imports=versions, ir_version=8)
    return bytes(model.SerializeToString())


def subjects(booster: lightgbm.Booster, features: int, folder: Path) -> dict[str, Score]:
    """Return what scores rows, by name."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(as_onnx(booster, features), options)
    library = packer.export_library(packer.from_trees(booster), folder / "score.so")
    found = {
        "LightGBM": lambda rows: booster.predict(rows, num_threads=1),
        "ONNX Runtime": lambda rows: session.run(None, {"x": rows})[0],
        "dso": runtime.load(library)["predict"],
    }
    return found | (compilers(booster, folder) if booster.num_trees() <= COMPILED else {})


def compilers(booster: lightgbm.Booster, folder: Path) -> dict[str, Score]:
    """Return the compilers that are installed; both compile here."""
    found: dict[str, Score] = {}
    model = folder / "model.txt"
    booster.save_model(model)
    with contextlib.suppress(ImportError):
        import lleaves

        compiled = lleaves.Model(model_file=str(model))
        compiled.compile()
        found["lleaves"] = lambda rows: compiled.predict(rows, n_jobs=1)
    with contextlib.suppress(ImportError):
        import tl2cgen
        import treelite

        options = {"toolchain": "gcc", "libpath": folder / "tl2cgen.so", "params": {}}
        tl2cgen.export_lib(treelite.frontend.load_lightgbm_model(model), **options)
        predictor = tl2cgen.Predictor(folder / "tl2cgen.so", nthread=1)
        found["tl2cgen"] = lambda rows: predictor.predict(tl2cgen.DMatrix(rows))
    return found


def measured(run: Callable[[], object]) -> float:
    """Return the processor time of a call, in microseconds for each of ROWS rows."""
    start = time.thread_time()
    run()
    return (time.thread_time() - start) * 1e6 / ROWS


def times(scores: dict[str, Score], rows: Any, rounds: int) -> dict[str, list[float]]:
    """Return the least time of each subject: of a batch, and of single rows."""
    singles = [rows[i : i + 1].copy() for i in range(ROWS)]

    def one_by_one(score: Score) -> None:
        for row in singles:
            score(row)

    least = {name: [float("inf")] * 2 for name in scores}
    for _ in range(rounds):
        for name, score in scores.items():
            found = measured(partial(score, rows)), measured(partial(one_by_one, score))
            least[name] = [min(pair) for pair in zip(least[name], found, strict=True)]
    return least


def compare_ydf(trees: int, rounds: int) -> None:
    """Print a row for a forest that YDF trains; YDF's call takes a column for each feature."""
    import ydf

    random = np.random.default_rng(0)
    x = random.normal(size=(20_000, 30)).astype(np.float32)
    label = x[:, 0] * 2 + x[:, 1] ** 2 + random.normal(size=len(x))
    columns = {f"x{i}": column for i, column in enumerate(x.T)}
    learner = ydf.GradientBoostedTreesLearner(
        label="y", task=ydf.Task.REGRESSION, num_trees=trees, validation_ratio=0.0, num_threads=1
    )
    model = learner.train({**columns, "y": label}, verbose=0)
    rows = np.random.default_rng(5).normal(size=(ROWS, 30)).astype(np.float32)
    given = {f"x{i}": np.ascontiguousarray(column) for i, column in enumerate(rows.T)}
    with tempfile.TemporaryDirectory() as folder:
        path = packer.export_library(packer.from_trees(model), Path(folder, "score.so"))
        predict = runtime.load(path)["predict"]
    calls = partial(model.predict, given, num_threads=1), partial(predict, rows)
    assert (calls[1]().numpy() == calls[0]()).all()
    least = [min(measured(call) for _ in range(rounds)) for call in calls]
    ratio = least[0] / least[1]
    print(f"| {trees}, 30 | 1,000 | {least[0]:.2f} | {least[1]:.2f} | {ratio:.1f} |")


def main() -> None:
    """Print a row for each forest."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="two small forests, one round")
    quick = parser.parse_args().quick
    print(f"| trees, leaves, features | rows | {' | '.join(PEERS)} | dso | ratio |")
    print(f"|---|---|{'---|' * len(PEERS)}---|---|")
    for trees, leaves, depth, features in FORESTS[: 2 if quick else None]:
        rows = np.random.default_rng(5).normal(size=(ROWS, features)).astype(np.float32)
        with tempfile.TemporaryDirectory() as folder:
            booster = train(trees, leaves, depth, features)
            scores = subjects(booster, features, Path(folder))
            assert (scores["dso"](rows).numpy() == scores["LightGBM"](rows)).all()
            least = times(scores, rows, 1 if quick else 7)
        for i, name in enumerate(("1,000", "one by one")):
            one = {subject: figures[i] for subject, figures in least.items()}
            own = one.pop("dso")
            peers = " | ".join(f"{one[peer]:.2f}" if peer in one else "" for peer in PEERS)
            ratio = min(one.values()) / own
            print(f"| {trees}, {leaves}, {features} | {name} | {peers} | {own:.2f} | {ratio:.1f} |")
            sys.stdout.flush()
    print("\n| trees, features | rows | YDF | dso | ratio |\n|---|---|---|---|---|")
    compare_ydf(10 if quick else 500, 1 if quick else 7)


if __name__ == "__main__":
    main()
