"""The libraries of the matrix, made once per run by real TVM in a separate environment."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TVM_PYTHON = os.environ.get("DSO_PACKER_TVM_PYTHON", str(ROOT / ".venv-tvm/bin/python"))
LEGACY_PYTHON = os.environ.get(
    "DSO_PACKER_LEGACY_TVM_PYTHON", str(ROOT / ".venv-tvm-legacy/bin/python")
)

RunScript = Callable[..., str]


@pytest.fixture(scope="session")
def run_script() -> RunScript:
    """``run_script(python, script, *args)``: run a script of this folder; return its output."""

    def run_script(python: str, script: str, *args: object) -> str:
        # Scripts import files of their folder.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"}
        command = [python, str(HERE / script), *map(str, args)]
        run = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=600, check=False
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    return run_script


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory, run_script: RunScript) -> Path:
    """The folder of all libraries, with the outcomes that TVM had."""
    folder = tmp_path_factory.mktemp("tvm")
    run_script(TVM_PYTHON, "make_libraries.py", folder)
    return folder


@pytest.fixture(scope="session")
def compare(libraries: Path, run_script: RunScript) -> Callable[[str, str], tuple[Any, Any]]:
    """``compare(target, name)``: the outcomes of one library, theirs and ours."""

    def compare(target: str, name: str) -> tuple[Any, Any]:
        library = libraries / f"{target}_{name}.so"
        ours = library.with_suffix(".ours")
        if not ours.exists():
            run_script(sys.executable, "run_library.py", library, name, ours)
        made_by = "reference" if target.startswith("opencl") else target
        return read(libraries / f"{made_by}_{name}.outcomes"), read(ours)

    return compare


def read(path: Path) -> Any:
    """Read outcomes, which a script of this folder wrote."""
    return pickle.loads(path.read_bytes())
