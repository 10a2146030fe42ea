"""The native core without Python as a library, for functions that only C code reaches."""

from __future__ import annotations

import subprocess
from pathlib import Path

from .paths import NATIVE

INCLUDE = (NATIVE, NATIVE.parent / "include")


def pure_sources() -> list[Path]:
    """Return the C files that do not use Python: all outside python/."""
    files = sorted(NATIVE.rglob("*.c"))
    return [path for path in files if path.relative_to(NATIVE).parts[0] != "python"]


def object_name(source: Path) -> str:
    """Return a name for the object file of a source: folders have files of equal names."""
    return "_".join(source.relative_to(NATIVE).with_suffix(".o").parts)


def compile_part(driver: Path, output: Path, *options: str) -> Path:
    """Make a shared library of a C file and the parts of the core that it uses."""
    flags = ["-std=c11", "-O1", "-g", "-fPIC", "-fvisibility=hidden", "-ffunction-sections"]
    flags += ["-fdata-sections", *(f"-I{folder}" for folder in INCLUDE)]
    # An archive: the linker takes only the parts that the driver reaches.
    folder = output.parent / "objects"
    folder.mkdir(exist_ok=True)
    objects = []
    for source in pure_sources():
        objects.append(str(folder / object_name(source)))
        subprocess.run(["cc", *flags, "-c", str(source), "-o", objects[-1]], check=True)
    subprocess.run(["ar", "rcs", "core.a", *objects], cwd=folder, check=True)
    link = ["-shared", "-Wl,--gc-sections,-z,defs,-Bsymbolic", "-pthread", "-ldl", "-lm"]
    command = ["cc", *flags, str(driver), str(folder / "core.a"), "-o", str(output)]
    subprocess.run([*command, *link, *options], check=True)
    return output
