"""The importer of forests, as packer finds it: its settings and options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packer import Importer, Setting

if TYPE_CHECKING:
    import argparse


def _add_options(group: argparse._ArgumentGroup) -> None:
    text = "scores without the link: margins, not probabilities"
    group.add_argument("--raw", action="store_true", help=text)


def _is_json(first: bytes) -> bool:
    """Return True for XGBoost and CatBoost."""
    names = (b'"learner"', b'"features_info"', b'"oblivious_trees"')
    return first.startswith(b"{") and any(name in first for name in names)


IMPORTER = Importer(
    "trees",
    {".ubj": None, ".json": _is_json, ".txt": lambda first: b"\nversion=v" in first[:64]},
    "dso_packer_trees:from_trees",
    (Setting("raw", "boolean", "Scores without the link: margins, not probabilities."),),
    _add_options,
    title="forests of decision trees; importers/trees/docs/trees.md",
    text="a model of LightGBM, XGBoost, CatBoost, YDF or ONNX-ML; it gets predict and leaves",
    takes_folders=True,
)
