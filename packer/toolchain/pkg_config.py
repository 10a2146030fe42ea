"""Packages of pkg-config: the options and the header of an installed library."""

from __future__ import annotations

import glob
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from runtime.error import ExportError

from .process import run

PREFIX = "pkg-config:"  # begins the name of a package in place of a header
# Where every program searches libraries, besides the folders of /etc/ld.so.conf.
_SYSTEM = re.compile(r"(/usr)?/lib(64)?(/[\w-]+-linux-[\w-]+)?")
_CONFIGURED = ("/etc/ld.so.conf", "/etc/ld.so.conf.d/*.conf")
_FOR_LINK = ("-L", "-l", "-Wl,", "-Xlinker", "-pthread", "-f")


class Package(NamedTuple):
    """A package: its options and its header."""

    name: str
    compile_options: tuple[str, ...]
    link_options: tuple[str, ...]  # with the RUNPATH of folders that programs do not search
    header: Path | None  # the header that has the name of the package, if there is one


def find_package(name: str) -> Package:
    """Ask pkg-config, or the program that PKG_CONFIG names.

    Raises ExportError if there is no such program or package.
    """
    if not name or name.startswith("-"):
        raise ExportError(f"pkg-config: expected the name of a package, found {name!r}")
    compile_options = _ask("--cflags", name)
    link = [word for word in _ask("--libs", name) if word.startswith(_FOR_LINK)]
    folders = [word[2:] for word in link if word.startswith("-L")]
    paths = [f"-Wl,-rpath,{folder}" for folder in folders if not _is_searched(folder)]
    include = [word[2:] for word in compile_options if word.startswith("-I")]
    include += _ask("--variable=includedir", name)
    return Package(name, compile_options, (*link, *paths), _header(name, include))


def header_of(package: Package) -> Path:
    """Return the header of a package. Raises ExportError if it is not known."""
    if package.header is None:
        text = f"{PREFIX}{package.name}: no header has its name, expected one; name it: --header"
        raise ExportError(f"{text} (in packer.toml and Python as the header beside the package)")
    return package.header


def _ask(option: str, name: str) -> tuple[str, ...]:
    program = os.environ.get("PKG_CONFIG") or "pkg-config"
    if shutil.which(program) is None:
        text = f"pkg-config: there is no program {program!r}; install pkgconf, or set PKG_CONFIG"
        raise ExportError(text)
    done = run([program, option, "--", name], cwd=Path("/"))
    if done.returncode != 0:
        said = " ".join(done.output.split())[:200]
        text = f"pkg-config: no package {name!r}: {said}; install the library's development files"
        raise ExportError(f"{text}, or set PKG_CONFIG_PATH")
    return tuple(shlex.split(done.output))


def _is_searched(folder: str) -> bool:
    """Return True if programs search a folder for libraries without a RUNPATH."""
    folder = os.path.normpath(folder)
    return bool(_SYSTEM.fullmatch(folder)) or folder in _configured()


def _configured() -> Iterator[str]:
    """Yield the folders of the configuration of the system's loader."""
    for pattern in _CONFIGURED:
        for path in glob.glob(pattern):
            for line in Path(path).read_text(errors="replace").splitlines():
                if line.startswith("/"):
                    yield os.path.normpath(line.strip())


def _header(name: str, folders: Sequence[str]) -> Path | None:
    """Return the header of a package: ``curl/curl.h`` of libcurl, ``png.h`` of libpng16."""
    plain = name.split()[0].removeprefix("lib").lower()
    stems = (plain, re.sub(r"[-.][\d.]+$", "", plain), re.sub(r"[-.\d]+$", "", plain))
    for folder in dict.fromkeys(folders):
        for stem in filter(None, dict.fromkeys(stems)):
            for inner in ("", stem, f"lib{stem}"):
                if found := _file(os.path.join(folder, inner), f"{stem}.h"):
                    return found
    return None


def _file(folder: str, name: str) -> Path | None:
    """Return the file of this name, in letters of any case."""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return next((Path(folder, found) for found in names if found.lower() == name), None)
