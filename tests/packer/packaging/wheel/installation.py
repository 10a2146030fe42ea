"""Fresh environments, and the installed runtime as a wheel, to install what tests make."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

from ....support import needs


def run(*command: str | Path, cwd: Path | None = None, **variables: str) -> str:
    """Return the output of a command, which must succeed."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False,
        env={**environment, "PYTHONSAFEPATH": "1", **variables},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def runtime_wheel(folder: Path) -> Path:
    """Make a wheel of the runtime that is installed here: it is what the tests are about."""
    distribution = importlib.metadata.distribution("dso-runtime")
    info = Path(str(distribution.locate_file(""))) / f"dso_runtime-{distribution.version}.dist-info"
    tag = (info / "WHEEL").read_text().split("Tag: ")[1].split()[0]
    wheel = folder / f"dso_runtime-{distribution.version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in distribution.files or ():
            if "__pycache__" not in path.parts:
                archive.write(str(path.locate()), str(path))
    return wheel


def fresh_environment(folder: Path, python: str | Path = sys.executable) -> Path:
    """Make an environment without packages, not even pip, and return its interpreter."""
    if Path(python) == Path(sys.executable):
        venv.create(folder, symlinks=True)
    else:
        run(python, "-m", "venv", "--without-pip", folder)
    return folder / "bin" / "python"


def install(python: Path, *arguments: str | Path) -> None:
    """Install into an environment with the pip of this one."""
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    run(*pip, "--disable-pip-version-check", *arguments)


def tool(module: str, *arguments: str | Path, group: str = "wheel-tools") -> str:
    """Run a tool of a dependency group, and return its output."""
    needs.importable(module, group)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return run(sys.executable, "-m", module, *arguments, PATH=path)
