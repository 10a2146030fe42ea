"""NVIDIA's compiler: find it in PyPI's packages, its options, the CUDA runtime of its code."""

from __future__ import annotations

import functools
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from runtime.error import ToolchainError

from .process import run

# With -objtemp the names of temporary files, which the object contains, are equal in every run.
NVCC_DEFAULTS = (
    *("-O2", "-Xcompiler", "-fPIC"),
    *("-objtemp", "-forward-unknown-to-host-compiler"),
)
# The libraries that the static CUDA runtime needs. It opens the driver when the code runs.
RUNTIME_OPTIONS = ("-lrt", "-lpthread", "-ldl")
_RUNTIME = "libcudart_static.a"
# nvcc splits a value at commas and removes quotes and backslashes.
_ESCAPED = str.maketrans({character: f"\\{character}" for character in '\\,"'})


def find_installed() -> str | None:
    """Return the nvcc that PyPI's ``nvidia-cuda-nvcc`` installed, which is not on PATH."""
    for folder in sys.path:
        for path in Path(folder or ".").glob("nvidia/*/bin/nvcc"):
            return str(path.absolute())
    return None


def options_for_nvcc(options: Sequence[str]) -> Iterator[str]:
    """Yield options as nvcc takes them: it refuses ``-iquote``, which takes the next word."""
    words = iter(options)
    for word in words:
        if word == "-iquote":
            # nvcc gives the value to a shell.
            value = shlex.quote(f"-iquote{next(words, '')}").translate(_ESCAPED)
            yield from ("-Xcompiler", value)
        else:
            yield word


@functools.cache
def static_runtime(nvcc: tuple[str, ...]) -> Path:
    """Return the static CUDA runtime of a compiler.

    Raises
    ------
    ToolchainError
        If it is not installed.
    """
    printed = run([*nvcc, "--dryrun", "-x", "cu", "-c", "/dev/null"], cwd=Path("/")).output
    searched = []
    for line in printed.splitlines():
        name, _, value = line.removeprefix("#$ ").partition("=")
        if name == "LIBRARIES":
            searched += [word[2:] for word in shlex.split(value) if word.startswith("-L")]
    for folder in searched:
        path = Path(folder, _RUNTIME)
        if path.is_file():
            return path.resolve()
    folders = ", ".join(searched) or "no folder"
    raise ToolchainError(
        f"{nvcc[0]}: no CUDA runtime for it: {_RUNTIME} is not in {folders}; install the CUDA "
        "toolkit, or PyPI's nvidia-cuda-runtime"
    )
