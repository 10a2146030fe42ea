"""packer export --onnx: wrong options, and a machine without the packages of ONNX."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dso_packer_onnx.read import read_model
from runtime.error import PackerError
from tests.support.command_line import COMMAND, refused

ADVICE = "packer.from_onnx needs the package {}: pip install 'dso-packer[onnx]'"


def _export(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "export", *words]
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


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
        (
            ["--onnx", "m.onnx", "--torch", "net.py:make"],
            "--torch: not allowed with --onnx",
        ),
    ],
)
def test_wrong_options_end_with_2(tmp_path: Path, words: list[str], message: str) -> None:
    """Before anything is read."""
    assert message in refused(_export(tmp_path, "a.so", *words), 2)


def test_a_model_that_is_missing_is_named(tmp_path: Path) -> None:
    """As any other input."""
    message = refused(_export(tmp_path, "a.so", "--onnx", "no.onnx"))
    assert message == "packer: no.onnx: cannot be read: No such file or directory\n"


def test_the_missing_package_is_named(tmp_path: Path) -> None:
    """With the command that installs it, for the option and for packer.toml."""
    (tmp_path / "m.onnx").write_bytes(b"model")
    (tmp_path / "onnx_ir").mkdir()  # as if it were not installed
    (tmp_path / "onnx_ir/__init__.py").write_text("raise ModuleNotFoundError(name='onnx_ir')")
    (tmp_path / "packer.toml").write_text('[module.m]\nkind = "onnx"\nmodel = "m.onnx"\n')
    for words in (("a.so", "--onnx", "m.onnx"), ("a.so",)):
        run = _export(tmp_path, *words, PYTHONPATH=str(tmp_path))
        assert refused(run).endswith(f"{ADVICE.format('onnx_ir')}\n")


def test_a_missing_package_is_named_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """None in sys.modules makes an import fail, installed or not."""
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(PackerError) as caught:
        read_model(b"")
    assert str(caught.value) == ADVICE.format("onnx")
