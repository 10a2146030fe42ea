"""Models of PyTorch, compiled by TVM, run here with PyTorch's results (examples/pytorch)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import runtime

from .conftest import TVM_PYTHON, RunScript

EXAMPLE = Path(__file__).parents[2] / "examples" / "pytorch"


def test_networks_compute_the_values_of_pytorch(tmp_path: Path, run_script: RunScript) -> None:
    """A CNN, a transformer encoder and a dynamic batch, in a process without torch and TVM."""
    run_script(TVM_PYTHON, str(EXAMPLE / "compile.py"), tmp_path)
    output = run_script(sys.executable, str(EXAMPLE / "run.py"), tmp_path)
    names = [line.split()[0] for line in output.splitlines()]
    assert names == ["convolutional", "dynamic_batch", "dynamic_batch", "dynamic_batch", "encoder"]


def test_six_lines_of_the_readme_run(tmp_path: Path) -> None:
    """README's code runs in one process that has torch, TVM and runtime."""
    code = (EXAMPLE / "README.md").read_text().split("```python\n")[1].split("```")[0]
    script = tmp_path / "six_lines.py"
    script.write_text(code)
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "runtime").symlink_to(Path(runtime.__file__).parent)
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    subprocess.run([TVM_PYTHON, script], env=environment, cwd=tmp_path, check=True)
    assert (tmp_path / "model.so").exists()
