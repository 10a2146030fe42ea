"""The distributions of this project, built as a publisher does, and environments for them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

from . import needs
from .paths import ROOT

PROJECTS = {
    "dso-runtime": "runtime",
    "dso-packer": ".",
    "dso-packer-numba": "importers/numba",
    "dso-packer-onnx": "importers/onnx",
    "dso-packer-trees": "importers/trees",
}
OURS = ("runtime", "packer", "dso_", "__editable__")


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    """Return the output of a command, which must succeed."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, env={**clean, **env}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def copy_checkout(folder: Path) -> Path:
    """Copy the tracked files: builds write into the folder of their project."""
    ignored = (".git", ".venv*", "build", "dist", "*.egg-info", "*.so", "*.so.0", "*.a", ".*_cache")
    shutil.copytree(ROOT, folder, symlinks=True, ignore=shutil.ignore_patterns(*ignored))
    return folder


def make_environment(folder: Path) -> Path:
    """Make an environment with setuptools that sees the packages of this one, but for ours."""
    run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    run(folder / "bin/pip", "install", "--quiet", "setuptools>=77", cwd=folder.parent)
    outer = folder.parent / "outer"
    outer.mkdir()
    for path in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not path.name.startswith(OURS):
            (outer / path.name).symlink_to(path)
    (next(folder.glob("lib/python*/site-packages")) / "outer.pth").write_text(f"{outer}\n")
    return folder


def make_bare_environment(folder: Path) -> Path:
    """Make an environment without any package."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    return folder


def pip(environment: Path, *arguments: str | Path, cwd: Path, **env: str) -> str:
    """Run the pip of this environment for another one, which sees no index."""
    command = [sys.executable, "-m", "pip", "--python", environment / "bin/python", *arguments]
    return run(*command, cwd=cwd, PIP_NO_INDEX="1", **env)


def _builder(project: Path, environment: Path) -> Any:
    runner = needs.module("pyproject_hooks", "test").quiet_subprocess_runner
    python = str(environment / "bin/python")
    return needs.module("build", "test").ProjectBuilder(project, python, runner)


def build(kind: str, project: Path, environment: Path, folder: Path) -> Path:
    """Build an "sdist" or a "wheel", without isolation: with the setuptools of the environment."""
    return Path(_builder(project, environment).build(kind, folder))


def prepare(project: Path, environment: Path, folder: Path) -> Message:
    """Ask a project for the metadata of its wheel, as pip does before it builds."""
    made = _builder(project, environment).prepare("wheel", folder)
    return Parser().parsestr(Path(made, "METADATA").read_text(encoding="utf-8"))


def unpacked(sdist: Path) -> Path:
    """Return the folder of a source distribution, which is extracted beside it at first."""
    folder = sdist.with_name(sdist.name.removesuffix(".tar.gz"))
    if not folder.exists():
        with tarfile.open(sdist) as archive:
            # Python before 3.11.4 has no filters and ignores the attribute.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)  # type: ignore[attr-defined]
            archive.extractall(sdist.parent)
    return folder


def metadata(wheel: Path) -> Message:
    """Parse the METADATA of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())
