"""Damaged ELF files: inspect, check, diff and extract end with a report or with our error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import packer
import runtime
from packer.inspect import inspect_library, render
from packer.inspect.check import check_library
from packer.inspect.diff import diff_libraries
from packer.inspect.drawing import draw
from packer.inspect.extract import extract_library
from packer.inspect.listing import list_entries, list_sizes
from runtime._core import ElfFile
from runtime.error import PackerError

from .damage import damaged


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    """A packed library with a function and kernels."""
    root = packer.CSourceModule("int f(void) { return 1; }", functions={"f": "int(void)"})
    root.import_module(runtime.DeviceModule("cuda", ".target sm_80", "ptx", []))
    return packer.export_library(root, tmp_path_factory.mktemp("damage") / "model.so")


def test_damaged_files_give_reports_or_our_errors(library, tmp_path) -> None:
    """Cut, flipped and inconsistent files: all parts of the report can be shown."""
    path, shown, refused = tmp_path / "damaged.so", 0, 0
    for name, data in damaged(library.read_bytes()):
        path.write_bytes(data)
        try:
            report = inspect_library(path)
        except PackerError as error:
            assert getattr(error, "path", None) == str(path), name
            refused += 1
            continue
        shown += 1
        assert report.problems or ElfFile(str(path)), name
        assert json.dumps(report.to_dict(), allow_nan=False), name
        assert render(report, colour=True, width=60), name
        assert draw(list_sizes(report)), name
        assert report.blob is None or draw(list_entries(report.blob)), name
    assert shown > 100
    assert refused > 5


@pytest.mark.parametrize(
    "look",
    [
        check_library,
        lambda path: diff_libraries(path, path.parent / "model.so"),
        lambda path: extract_library(path, path.parent / "out", force=True),
    ],
    ids=["check", "diff", "extract"],
)
def test_damaged_files_let_our_errors_out_alone(
    look: Callable[[Path], object], library, tmp_path
) -> None:
    """Every fifth of them, since these look at more."""
    path = tmp_path / "damaged.so"
    (tmp_path / "model.so").write_bytes(library.read_bytes())
    errors = 0
    for _, data in [*damaged(library.read_bytes())][::5]:
        path.write_bytes(data)
        try:
            look(path)
        except PackerError:
            errors += 1
    assert errors
