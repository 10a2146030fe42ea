"""Forests from the command line, from packer.toml, and what readers of the library see."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import packer
import runtime
from dso_packer_trees import code

from .models import Case, rows
from .pipelines import PIPELINES


def _packer(folder: Path, *words: object) -> str:
    command = [sys.executable, "-m", "packer", *map(str, words)]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("name", "option"), [("m.ubj", ()), ("m.json", ()), ("m.txt", ()), ("m.bin", ("--trees",))]
)
def test_the_suffix_or_the_option_chooses(
    name: str, option: tuple[str, ...], bins: Case, numbers: Case, tmp_path: Path
) -> None:
    """Of model files of both libraries; the content says which one it is."""
    case = numbers if name in ("m.txt", "m.bin") else bins
    case.model.save_model(tmp_path / name)
    _packer(tmp_path, "export", "score.so", *option, name)
    given = rows(50, 2)
    scores = np.asarray(runtime.load(tmp_path / "score.so")["predict"](given))
    np.testing.assert_array_equal(scores, case.predict(given))


def test_packer_toml_has_the_kind(bins: Case, tmp_path: Path) -> None:
    """With its setting."""
    bins.model.save_model(tmp_path / "m.ubj")
    (tmp_path / "packer.toml").write_text(
        '[module.score]\nkind = "trees"\nmodel = "m.ubj"\nraw = true\n'
    )
    _packer(tmp_path, "export", "score.so")
    row = rows(1, 2)
    score = float(np.asarray(runtime.load(tmp_path / "score.so")["predict"](row))[0])
    assert bins.predict(row)[0] == pytest.approx(1 / (1 + np.exp(-score)))


def test_metadata_has_names_and_counts(tmp_path: Path) -> None:
    """The inputs and outputs, the library's names of features and classes."""
    from sklearn.ensemble import RandomForestClassifier

    x, y = rows(200), np.array(["yes", "no"])[rows(200)[:, 0].astype(int) % 2]
    model = RandomForestClassifier(5, random_state=0).fit(x, y)
    path = packer.export_library(packer.from_trees(model), tmp_path / "score.so")
    loaded = runtime.load(path)
    assert [str(one) for one in (*loaded.inputs, *loaded.outputs)] == [
        "rows: float32[n, 12]",
        "scores: float64[n, 2]",
    ]
    metadata = loaded.imported_modules[-1].metadata
    assert json.loads(metadata["classes"]) == ["no", "yes"]
    assert (metadata["trees"], metadata["library"]) == ("5", "scikit-learn")
    shown = _packer(tmp_path, "inspect", "score.so")
    assert "predict(rows: float32[n, 12]) -> scores: float64[n, 2]" in shown
    assert "1 forest of scikit-learn: 5 trees, depth" in shown
    report = json.loads(_packer(tmp_path, "inspect", "--json", "score.so"))
    drawing = report["graph"]["nodes"][0]["drawing"].splitlines()
    assert drawing[0] == "tree 0 of 5"
    assert re.fullmatch(r"x\[\d+\] <= \S+( or missing)?", drawing[1])
    assert drawing[2].startswith("├ yes: ")
    _packer(tmp_path, "inspect", "--html", "score.html", "score.so")
    assert "tree 0 of 5" in (tmp_path / "score.html").read_text()


def test_two_forests_in_one_library(bins: Case, numbers: Case, tmp_path: Path) -> None:
    """They share the C code, and each finds its tables."""
    root = packer.from_trees(bins.model)
    other = packer.from_trees(numbers.model)
    root.import_module(other)
    loaded = runtime.load(packer.export_library(root, tmp_path / "both.so"))
    given = rows(30, 4)
    np.testing.assert_array_equal(np.asarray(loaded["predict"](given)), bins.predict(given))
    of_other = loaded.imported_modules[-1]["predict"]
    np.testing.assert_array_equal(np.asarray(of_other(given)), numbers.predict(given))


def test_equal_models_give_equal_bytes(bins: Case, tmp_path: Path) -> None:
    """From the object and from each of its files."""
    outputs = set()
    for name in ("", "m.ubj", "m.json"):
        if name:
            bins.model.save_model(tmp_path / name)
        module = packer.from_trees(tmp_path / name if name else bins.model)
        outputs.add(packer.export_library(module, tmp_path / "score.so").read_bytes())
    assert len(outputs) == 1


@pytest.mark.parametrize("name", ["bins", "pipeline"])
def test_an_export_needs_no_compiler(
    name: str, bins: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor any other program: the wheel has the code linked, and its library gets the tables."""
    model = bins.model if name == "bins" else PIPELINES["standard"]().model
    module = packer.from_trees(model)
    with monkeypatch.context() as context:
        context.setenv("PATH", str(tmp_path))
        copied = packer.export_library(module, tmp_path / "copied.so")
        with pytest.raises(packer.ToolchainError, match="compiler"):
            packer.export_library(module, tmp_path / "2.so", output=packer.Output(soname="2.so"))
    linked = packer.export_library(module, tmp_path / "linked.so", options=["-lm"])
    given = rows(300, 2)
    scores = [np.asarray(runtime.load(path)["predict"](given)) for path in (copied, linked)]
    np.testing.assert_array_equal(*scores)


def test_the_objects_of_the_wheel_have_the_bits_of_the_source(
    bins: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An export that links takes them; without them, or for other levels, it compiles."""
    module = packer.from_trees(bins.model)
    given = rows(300, 2)
    scores = []
    for name in ("objects", "source"):
        if name == "source":
            monkeypatch.setattr(code, "_OBJECTS", tmp_path / "none")
        folder = tmp_path / name
        folder.mkdir()
        link = {"options": ["-lm"], "workspace_dir": folder}
        path = packer.export_library(module, tmp_path / "score.so", **link)
        scores.append(np.asarray(runtime.load(path)["predict"](given)).tobytes())
        kept = {file.name for file in folder.rglob("*")}
        assert ("lib0.c" in kept, "lib0.x86-64-v3.o" in kept) == (
            name == "source",
            name != "source",
        )
    assert scores[0] == scores[1]
    path = packer.export_library(module, tmp_path / "2.so", build=packer.Build(cpu=["x86-64-v2"]))
    assert np.asarray(runtime.load(path)["predict"](given)).tobytes() == scores[0]
