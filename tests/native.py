"""Parts of the native core as a library of their own, for what only C code reaches."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

NATIVE = Path(__file__).parent.parent / "runtime" / "native"


def pure_sources() -> list[Path]:
    """The C files that neither include Python.h nor a header that does."""
    return [path for path in sorted(NATIVE.glob("*.c")) if not _needs_python(path)]


def _needs_python(path: Path) -> bool:
    text = path.read_text()
    headers = [path.parent / name for name in re.findall(r'#include "([^"]+)"', text)]
    return "#include <Python.h>" in text or any(map(_needs_python, headers))


def compile_part(driver: Path, output: Path, *options: str) -> Path:
    """Make a shared library of a C file and of what it uses of the core."""
    flags = ["-std=c11", "-O1", "-g", "-fPIC", "-fvisibility=hidden", "-ffunction-sections"]
    # -iquote: the core's elf.h must not stand for the system's <elf.h>.
    flags += ["-fdata-sections", "-iquote", str(NATIVE)]
    # An archive: what the driver does not reach stays out, and with it what wants the rest of the
    # core, or is exported.
    folder = output.parent / "objects"
    folder.mkdir(exist_ok=True)
    sources = list(map(str, pure_sources()))
    subprocess.run(["cc", *flags, "-c", *sources], cwd=folder, check=True)
    objects = sorted(map(str, folder.glob("*.o")))
    subprocess.run(["ar", "rcs", "core.a", *objects], cwd=folder, check=True)
    link = ["-shared", "-Wl,--gc-sections,-z,defs,-Bsymbolic", "-pthread", "-ldl", "-lm"]
    command = ["cc", *flags, str(driver), str(folder / "core.a"), "-o", str(output)]
    subprocess.run([*command, *link, *options], check=True)
    return output
