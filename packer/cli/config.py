"""``packer config``: print how to compile and link programs that load libraries."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path

import runtime

from .parser import CommandParser
from .terminal import write

_DESCRIPTION = """\
Print the options of a C or C++ compiler for programs that use dso.h and libdso, which load and run
packed libraries without Python. Without an option, print all folders and the version."""

_EPILOG = """\
examples:
  cc program.c $(packer config --cflags --libs) -o program
  cc program.c $(packer config --cflags --libs --static) -o program
  cmake -B build -Ddso_DIR=$(packer config --cmakedir)
  PKG_CONFIG_PATH=$(packer config --pkgconfigdir) pkg-config --cflags --libs dso

--libs without --static adds a run path to the program, which pkg-config does not."""

_HOME = Path(runtime.__file__).parent
_INCLUDE, _LIB = _HOME / "include", _HOME / "lib"
_CMAKE, _PKGCONFIG = _LIB / "cmake/dso", _LIB / "pkgconfig"


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer config``."""
    parser = CommandParser("packer config", description=_DESCRIPTION, epilog=_EPILOG)
    for option, text in (
        ("--cflags", "options of the compiler: where the headers are"),
        ("--libs", "options of the link with libdso.so"),
        ("--static", "--libs links libdso.a instead"),
        ("--includedir", "the folder of dso.h, dso.hpp and dso_packer.h"),
        ("--libdir", "the folder of libdso.a and libdso.so"),
        ("--cmakedir", "the folder of the CMake package: -Ddso_DIR=..."),
        ("--pkgconfigdir", "the folder of dso.pc: PKG_CONFIG_PATH=..."),
    ):
        parser.add_argument(option, action="store_true", help=text)
    arguments = parser.parse_args(argv)
    if arguments.static and not arguments.libs:
        parser.error("--static needs --libs")
    return arguments


def run(arguments: argparse.Namespace) -> None:
    """Print the options on one line, then one folder on each."""
    flags = [f"-I{_INCLUDE}"] if arguments.cflags else []
    if arguments.libs and arguments.static:
        flags += [str(_LIB / "libdso.a"), "-pthread", "-ldl", "-lm"]
    elif arguments.libs:
        flags += [f"-L{_LIB}", f"-Wl,-rpath,{_LIB}", "-ldso"]
    if flags:
        write(shlex.join(flags))
    folders = {"includedir": _INCLUDE, "libdir": _LIB}
    folders |= {"cmakedir": _CMAKE, "pkgconfigdir": _PKGCONFIG}
    asked = [folder for name, folder in folders.items() if getattr(arguments, name)]
    for folder in asked:
        write(str(folder))
    if not flags and not asked:
        write(f"version      {runtime.__version__}")
        for name, folder in folders.items():
            write(f"{name:12} {folder}")
