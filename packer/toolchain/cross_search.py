"""Search compilers for a target: the native one, a cross GCC, zig, and clang.

| toolchain    | found as                              | C library                           |
|--------------|---------------------------------------|-------------------------------------|
| native       | the compiler for this machine         | that of this machine                |
| GCC          | ``aarch64-linux-gnu-gcc`` and ``g++`` | the distribution's cross C library  |
| zig          | PyPI's ``ziglang``, or ``zig``        | glibc of any version, musl, libc++  |
| clang        | ``clang`` and ``ld.lld``              | that of the cross GCC               |

CC and CXX come first; clang and zig get an option for the target there too.
"""

from __future__ import annotations

import mmap
import os
import shutil
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from runtime.error import ExportError, ToolchainError

from ..files.arguments import PathLike
from ..target import Target, find_target
from .compiler import Language, dump_machine, find_compiler, is_clang, is_zig, named_compiler
from .process import run

Command = tuple[str, ...]


_DRIVERS = {"c": ("gcc",), "cc": ("g++",), "link": ("g++", "gcc"), "f90": ("gfortran",)}


def find_cross_compiler(target: Target, language: Language) -> Command:
    """Find a compiler for a target; return the first words of a command.

    Raises ToolchainError if there is none, or if CC or CXX names one for another target.
    """
    if language == "cu":
        return find_compiler("cu")
    language = "c" if language == "s" else language
    if named := named_compiler(language):
        return _with_target(*named, target, language)
    if language == "cc" and (named := named_compiler("c")):
        text = f"CXX is not set, but {named[0]} is: set CXX to a C++ compiler for {target.triple!r}"
        raise ToolchainError(text)
    found = (
        _native(target, language)
        or _gcc(target, language)
        or _zig(target, language)
        or _clang(target, language)
    )
    if found is None:
        raise ToolchainError(_missing(target, language))
    return found


def without_cxx_library(linker: Command, inputs: Iterable[PathLike]) -> Command:
    """Make zig, and clang for another target, skip the C++ library if no input can need it.

    Zig builds it from source, so the first link for a target would take a minute instead of
    seconds; clang may find none. For other linkers --as-needed suffices.
    """
    has_target = any(word.startswith("--target=") for word in linker)
    if not is_zig(linker) and not (is_clang(linker) and has_target):
        return linker
    if any(map(_names_cxx, inputs)):
        return linker
    driver, *words = linker
    words = ["cc" if word == "c++" else word for word in words]
    return (driver.removesuffix("++") if driver.endswith("clang++") else driver, *words)


def _names_cxx(path: PathLike) -> bool:
    """Return True if an object or archive contains a name of the C++ ABI."""
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return any(data.find(name) >= 0 for name in (b"_Z", b"__cxa_", b"__gxx_"))


def _with_target(variable: str, compiler: Command, target: Target, language: Language) -> Command:
    """Add the target to a command that the user named, if possible; else check its target."""
    given = _target_in(compiler)
    if is_zig(compiler) and not given:
        return (*compiler, "-target", target.zig)
    if is_clang(compiler) and not given and not target.version:
        return _clang_command(compiler, target, language)
    found = given or dump_machine(compiler)
    if not (found and _fits(found, target)) or (target.version and not is_zig(compiler)):
        text = (
            f"{variable} names {compiler[0]}, which compiles for {found!r}, expected "
            f"{target.triple!r}: name another one, or unset {variable}"
        )
        raise ToolchainError(text)
    return compiler


def _target_in(compiler: Command) -> str | None:
    """Return the target that the options of a command name."""
    for word, following in zip(compiler, (*compiler[1:], ""), strict=True):
        if word.startswith("--target="):
            return word.removeprefix("--target=")
        if word in ("-target", "--target"):
            return following
    return None


def _fits(triple: str, target: Target) -> bool:
    try:
        return find_target(triple).is_like(target)
    except ExportError:
        return False


def _native(target: Target, language: Language) -> Command | None:
    """Return the default compiler, if this machine is the target."""
    if target.version or target.machine.name != os.uname().machine:
        return None
    try:
        command = find_compiler(language)
    except ToolchainError:
        return None
    triple = dump_machine(command)
    return command if triple and _fits(triple, target) else None


def _gcc(target: Target, language: Language) -> Command | None:
    if target.version:
        return None
    for name in dict.fromkeys((target.triple, target.gnu, target.llvm)):
        for driver in _DRIVERS[language]:
            if path := shutil.which(f"{name}-{driver}"):
                return (os.path.abspath(path),)
    return None


def _zig(target: Target, language: Language) -> Command | None:
    if language == "f90":
        return None
    driver = "cc" if language == "c" else "c++"
    spec = find_spec("ziglang")
    if spec is not None and spec.origin is not None:
        path: str | None = os.path.join(os.path.dirname(spec.origin), "zig")
    else:
        path = shutil.which("zig")
    return (os.path.abspath(path), driver, "-target", target.zig) if path else None


def _clang(target: Target, language: Language) -> Command | None:
    if language == "f90":
        return None
    path = shutil.which("clang" if language == "c" else "clang++")
    if path is None or shutil.which("ld.lld") is None or target.version:
        return None
    command = _clang_command((os.path.abspath(path),), target, language)
    return command if _has_library(command) else None


def _clang_command(compiler: Command, target: Target, language: Language) -> Command:
    command = (*compiler, f"--target={target.gnu}")
    is_cross_link = language == "link" and target.machine.name != os.uname().machine
    return (*command, "-fuse-ld=lld") if is_cross_link else command


def _has_library(clang: Command) -> bool:
    """Return True if there are headers of a C library for clang's target."""
    headers = ["-include", "stdint.h", "-include", "string.h"]
    probe = [*clang, "-fsyntax-only", *headers, "-x", "c", os.devnull]
    return run(probe, cwd=Path("/")).returncode == 0


def _missing(target: Target, language: Language) -> str:
    driver = "g++" if language == "cc" else "gcc"
    debian = f"Debian: apt-get install {driver}-{target.gnu.replace('_', '-')}"
    zig = "PyPI: pip install ziglang"
    if target.version:
        tried, remedy = "zig, the only one with a selectable glibc", zig
    elif target.environment == "gnu":
        tried = f"{target.gnu}-{driver}, zig, clang with lld and a C library"
        remedy = f"{debian}, or {zig}"
    else:
        tried, remedy = f"{target.gnu}-{driver}, zig", zig
    return f"no compiler for target {target.triple!r}: searched {tried}; {remedy}"
