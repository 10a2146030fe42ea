"""The code and the commands of onnx.md and of the pages about other exporters run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import runtime

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (Path(__file__).parents[1] / "docs/onnx.md").read_text()


def test_the_page_runs(tmp_path: Path) -> None:
    """The Python code in one process, the packer.toml, and each command."""
    program = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    (project,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "packer.toml").write_text(project)
    commands = re.findall(r"^    packer (export .*)$", PAGE, re.MULTILINE)
    (net,) = re.findall(r"```python\n(# net.py\n.*?)```", PAGE, re.DOTALL)
    (tmp_path / "net.py").write_text(net)
    assert len(commands) == 5
    for words in ["export model.so", *commands[1:]]:
        command = [sys.executable, "-m", "packer", *words.split()]
        subprocess.run(command, cwd=tmp_path, check=True)
        assert runtime.load(tmp_path / "model.so").function_names()[0] == "main"


@pytest.mark.parametrize("page", ["coming-from-aotinductor.md", "coming-from-onnxruntime.md"])
def test_both_sides_of_a_page_agree(page: str, tmp_path: Path) -> None:
    """The Python code of the page runs, and its comparisons hold."""
    program = "\n".join(re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL))
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
