"""`import packer` where the user's files hide the package runtime."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FILES = {
    "empty": "",
    "of a version": "__version__ = '1'\n",
    "that imports packer": "import packer\nprint(packer.__version__)\n",
    "that fails": "1 / 0\n",
}


def last_line(folder: Path, *arguments: str) -> str:
    """Run Python in a folder; it must fail."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONSAFEPATH"}
    command = [sys.executable, *arguments]
    run = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    return run.stderr.splitlines()[-1]


@pytest.mark.parametrize("text", FILES.values(), ids=FILES.keys())
def test_a_file_of_the_user_is_named(tmp_path: Path, text: str) -> None:
    """With the cure; whatever the file contains."""
    path = tmp_path / "runtime.py"
    path.write_text(text)
    for arguments in (["-c", "import packer"], ["-m", "packer", "--version"]):
        assert last_line(tmp_path, *arguments) == (
            f"ImportError: packer: import runtime found {str(path)!r}, expected the package runtime"
            " of dso-runtime: rename that file or folder, or run Python with another first entry"
            " of sys.path"
        )


def test_a_script_named_runtime_is_named(tmp_path: Path) -> None:
    """A script imports packer, which imports the script."""
    (tmp_path / "runtime.py").write_text("import packer\npacker.export_library\n")
    assert "found '" in last_line(tmp_path, "runtime.py")


def test_a_package_of_the_user_is_named(tmp_path: Path) -> None:
    """A folder with an __init__.py."""
    (tmp_path / "runtime").mkdir()
    (tmp_path / "runtime/__init__.py").write_text("")
    found = str(tmp_path / "runtime/__init__.py")
    assert f"import runtime found {found!r}" in last_line(tmp_path, "-c", "import packer")
