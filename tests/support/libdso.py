"""libdso, compiled from the sources, and C programs that link it."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from runtime.abi import __version__

from .native import INCLUDE, object_name, pure_sources
from .paths import C_SOURCES

FLAGS = ["-O0", "-g", "-fPIC", "-fvisibility=hidden", *(f"-I{folder}" for folder in INCLUDE)]
VERSION = f'-DDSO_VERSION="{__version__}"'
# One set of options, so that the archive is compiled once.
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
LIBRARIES = ["-pthread", "-ldl", "-lm"]


@functools.cache
def archive(*options: str) -> Path:
    """Compile libdso.a once in this process."""
    folder = Path(tempfile.mkdtemp(prefix="libdso-"))
    objects = [folder / object_name(source) for source in pure_sources()]

    def compile_one(pair: tuple[Path, Path]) -> None:
        flags = ["-std=c11", *FLAGS, VERSION, *options]
        command = ["cc", *flags, "-c", str(pair[0]), "-o", str(pair[1])]
        subprocess.run(command, check=True)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_one, zip(pure_sources(), objects, strict=True)))
    path = folder / "libdso.a"
    subprocess.run(["ar", "rcs", str(path), *map(str, objects)], check=True)
    return path


def compile_program(source: str, output: Path, *options: str) -> Path:
    """Compile a C program that links libdso.a, with all warnings as errors."""
    text = output.with_suffix(".c")
    text.write_text(source)
    warnings = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    command = ["cc", *warnings, *FLAGS, f"-I{C_SOURCES}", text, archive(*options), "-o", output]
    subprocess.run([*command, *LIBRARIES, *options], check=True)
    return output


def compile_shared(driver: Path, output: Path, *options: str) -> Path:
    """Make a shared library of a C file and the parts of libdso that it calls."""
    link = ["-shared", "-Wl,-z,defs,-Bsymbolic", str(driver), str(archive()), "-o", str(output)]
    subprocess.run(["cc", "-std=c11", *FLAGS, *options, *link, *LIBRARIES], check=True)
    return output


def run_program(program: Path, *arguments: object) -> str:
    """Run a program that must succeed; return what it printed.

    A sanitizer that is preloaded into these tests would crash one that the program has itself.
    """
    command = ["env", "--unset=LD_PRELOAD", program, *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, f"{ran.returncode}: {ran.stdout}{ran.stderr}"
    return ran.stdout
