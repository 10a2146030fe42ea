"""NVIDIA's compiler: find it in PyPI's packages, its options, the CUDA runtime of its code."""

from __future__ import annotations

import functools
import os
import re
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
# The symbols that code of other compilers leaves undefined, and what defines them.
_CUTE = "PyPI's nvidia-cutlass-dsl"
_RUN_TIMES = {
    re.compile(r"(_cuda[A-Z]|cuda_dialect_)\w+"): f"libcuda_dialect_runtime_static.a of {_CUTE}",
    re.compile(r"CuteDSLRT_\w+"): f"libcute_dsl_runtime.so of {_CUTE}",
    re.compile(r"(__)?cuda[A-Z]\w+"): f"{_RUNTIME} of the CUDA toolkit",
    re.compile(r"cu[A-Z]\w+"): "the driver's libcuda.so.1 (-lcuda; the CUDA toolkit has a stub)",
}
_PACKAGES = ("nvidia_cutlass_dsl/lib", "nvidia_cutlass_dsl/*/lib", "nvidia/*/lib")
_TOOLKIT = ("lib64", "lib64/stubs")
# nvcc splits a value at commas and removes quotes and backslashes.
_ESCAPED = str.maketrans({character: f"\\{character}" for character in '\\,"'})


def find_installed() -> str | None:
    """Return the nvcc that PyPI's ``nvidia-cuda-nvcc`` installed, which is not on PATH."""
    for folder in sys.path:
        for path in Path(folder or ".").glob("nvidia/*/bin/nvcc"):
            return str(path.absolute())
    return None


def library_folders() -> Iterator[Path]:
    """Yield the folders of run times that PyPI's packages and the CUDA toolkit installed."""
    for folder in sys.path:
        for pattern in _PACKAGES:
            yield from sorted(Path(folder or ".").absolute().glob(pattern))
    toolkit = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    yield from (path for name in _TOOLKIT if (path := Path(toolkit, name)).is_dir())


def run_time_of(symbol: str) -> str | None:
    """Return the library that defines a symbol of CUDA or of a compiler for it, or None."""
    found = (name for pattern, name in _RUN_TIMES.items() if pattern.fullmatch(symbol))
    return next(found, None)


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

    Raises ToolchainError if it is not installed.
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
