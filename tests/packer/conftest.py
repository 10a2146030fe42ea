"""The command line, for tests of packer."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ..support.command_line import CODE, COMMAND, Packer


@pytest.fixture
def packer(tmp_path: Path) -> Packer:
    """``packer(*arguments)``: run it in a folder that holds add.c."""
    (tmp_path / "add.c").write_text(CODE)

    def run(*arguments: str | bytes, **options) -> subprocess.CompletedProcess[str]:
        options = {"cwd": tmp_path, "timeout": 120, "errors": "surrogateescape"} | options
        return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, **options)

    return run
