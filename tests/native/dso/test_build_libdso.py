"""`setup.py build_libdso`: libdso of other compilers, C libraries and machines."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.abi import __version__

from ...support import needs
from ...support.paths import ROOT
from .test_libdso_file import LIBRARIES, VERSION, declared, output, symbols


@pytest.mark.parametrize(
    ("compiler", "emulator"),
    [
        ("clang", []),
        ("musl-gcc", []),
        ("aarch64-linux-gnu-gcc", ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]),
    ],
    ids=["clang", "musl", "aarch64"],
)
def test_libdso_of_another_compiler(compiler, emulator, tmp_path) -> None:
    """The same names; a program that links the archive runs. The environment has dso-packer."""
    needs.program(compiler, *emulator[:1])
    source = tmp_path / "source"
    # With the file that its link to the checkout names.
    shutil.copytree(ROOT / "runtime", source, ignore=shutil.ignore_patterns("build", "*.so"))
    prefix = tmp_path / "prefix"
    command = [sys.executable, "setup.py", "-q", "build_libdso", "--prefix", prefix]
    # -O0, after the build's own -O2: the names are the same, and it takes half the time.
    environment = os.environ | {"CC": compiler, "CPPFLAGS": "-O0"}
    del environment["PYTHONSAFEPATH"]
    built = subprocess.run(
        command, cwd=source, env=environment, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr

    library = prefix / "lib/libdso.a"
    assert symbols(library, "-g", "--defined-only") == declared()
    assert symbols(prefix / "lib/libdso.so", "-D", "--defined-only") == declared()
    program, text = tmp_path / "version", tmp_path / "version.c"
    text.write_text(VERSION)
    link = [compiler, f"-I{prefix}/include", text, "-o", program, library, *LIBRARIES]
    output(*link)
    assert output(*emulator, program) == f"{__version__}\n"
    assert f'"{__version__}"' in (prefix / "lib/cmake/dso/dsoConfigVersion.cmake").read_text()
    assert f"Version: {__version__}" in Path(prefix / "lib/pkgconfig/dso.pc").read_text()
