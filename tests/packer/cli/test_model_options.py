"""packer export --onnx: wrong options, and a machine without the packages of ONNX."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ...support.command_line import Packer, refused


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--input-shape", "x=1x3"], "argument --input-shape: needs --onnx"),
        (["--dynamic", "batch"], "argument --dynamic: needs --onnx"),
        (
            ["--onnx", "m.onnx", "--project", "p.toml"],
            "argument --project: not allowed with --onnx",
        ),
        (["--onnx", "m.onnx", "--function", "f=int(void)"], "argument --function: needs SOURCE"),
    ],
)
def test_wrong_options_end_with_2(packer: Packer, words: list[str], message: str) -> None:
    """Before anything is read."""
    assert message in refused(packer("export", "a.so", *words), 2)


def test_a_model_that_is_missing_is_named(packer: Packer, tmp_path: Path) -> None:
    """As any other input."""
    message = refused(packer("export", "a.so", "--onnx", "no.onnx"))
    assert message == "packer: no.onnx: cannot be read: No such file or directory\n"


def test_the_missing_package_is_named(packer: Packer, tmp_path: Path) -> None:
    """With the command that installs it, for the option and for packer.toml."""
    (tmp_path / "m.onnx").write_bytes(b"model")
    (tmp_path / "onnx_ir").mkdir()  # as if it were not installed
    (tmp_path / "onnx_ir/__init__.py").write_text("raise ModuleNotFoundError(name='onnx_ir')")
    (tmp_path / "packer.toml").write_text('[module.m]\nkind = "onnx"\nmodel = "m.onnx"\n')
    advice = "packer.from_onnx needs the package onnx_ir: pip install 'dso-packer[onnx]'\n"
    for words in (("a.so", "--onnx", "m.onnx"), ("a.so",)):
        run = packer("export", *words, env=os.environ | {"PYTHONPATH": str(tmp_path)})
        assert refused(run).endswith(advice)
