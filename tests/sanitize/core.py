"""A copy of the packages whose native core is compiled with other flags."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))
from tests.support.native import INCLUDE, NATIVE, pure_sources  # noqa: E402

__all__ = ["NATIVE", "ROOT", "build_packages", "compile_c", "pure_sources"]

FLAGS = ("-std=c11", "-O1", "-g", "-fno-omit-frame-pointer")


def compile_c(sources: list[Path], output: Path, *options: str) -> Path:
    """Compile and link C files, with the core's headers at hand."""
    headers = [f"-I{folder}" for folder in INCLUDE]
    command = ["cc", *FLAGS, *headers, *options, *map(str, sources), "-o", str(output)]
    subprocess.run([*command, "-ldl", "-lm", "-pthread"], check=True)
    return output


def build_packages(folder: Path, *options: str) -> dict[str, str]:
    """Put the packages into a folder, the core compiled there; returns the environment to use."""
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "runtime/runtime", folder / "runtime", ignore=ignored)
    shutil.copytree(ROOT / "runtime/include", folder / "runtime/include", dirs_exist_ok=True)
    # Programs of tests are linked with the installed libdso.
    installed = importlib.util.find_spec("runtime")
    assert installed is not None and installed.origin is not None
    shutil.copytree(Path(installed.origin).parent / "lib", folder / "runtime/lib")
    (folder / "packer").symlink_to(ROOT / "packer")
    output = folder / "runtime" / f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    flags = ("-shared", "-fPIC", "-fvisibility=hidden", f"-I{sysconfig.get_path('include')}")
    compile_c(sorted(NATIVE.rglob("*.c")), output, *flags, *options)
    # PYTHONMALLOC: each object is a separate block that the sanitizer sees.
    ours = {"PYTHONPATH": str(folder), "PYTHONSAFEPATH": "1", "PYTHONMALLOC": "malloc"}
    return {**os.environ, **ours}
