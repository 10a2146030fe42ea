"""The code and the commands of trees.md and of the page about other compilers of trees run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = {
    "trees": Path(__file__).parents[1] / "docs/trees.md",
    "treelite": Path(__file__).parents[3] / "docs/coming-from-treelite.md",
}


@pytest.mark.parametrize("page", PAGES)
def test_the_page_runs(page: str, tmp_path: Path) -> None:
    """Its Python code in one process; its commands for models of the names in them."""
    text = PAGES[page].read_text()
    program = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    if page == "trees":
        program += '\nbooster.save_model("model.txt")\nbooster.save_model("model.ubj")\n'
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    commands = re.findall(r"^    packer (export .*)$", text, re.MULTILINE)
    assert len(commands) == (2 if page == "trees" else 0)
    for words in commands:
        command = [sys.executable, "-m", "packer", *words.split()]
        subprocess.run(command, cwd=tmp_path, check=True)
    for project in re.findall(r"```toml\n(.*?)```", text, re.DOTALL):
        (tmp_path / "packer.toml").write_text(project)
        command = [sys.executable, "-m", "packer", "export", "score.so"]
        subprocess.run(command, cwd=tmp_path, check=True)
