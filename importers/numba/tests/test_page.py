"""The code and the commands of docs/coming-from-numba-pycc.md run, and both sides agree."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[3] / "docs/coming-from-numba-pycc.md").read_text()


def test_the_page_runs(tmp_path: Path) -> None:
    """Its files, each of which begins with its name, and its commands in their order."""
    files = re.findall(r"```python\n(# (\w+\.py)\n.*?)```", PAGE, re.DOTALL)
    for code, name in files:
        (tmp_path / name).write_text(code)
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    environment.pop("PYTHONSAFEPATH", None)

    def run(*words: str) -> None:
        subprocess.run([sys.executable, *words], cwd=tmp_path, env=environment, check=True)

    build, *exports = re.findall(
        r"^    (python build_geo.py|packer export .*)$", PAGE, re.MULTILINE
    )
    run(*build.split()[1:])
    for command in exports:
        words = re.findall(r'"([^"]*)"|(\S+)', command.removeprefix("packer "))
        run("-m", "packer", *(quoted or word for quoted, word in words))
    assert [name for _, name in files] == ["build_geo.py", "geo.py", "compare.py", "plain.py"]
    assert len(exports) == 2
    run("compare.py")
    run("plain.py")
