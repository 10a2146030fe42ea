"""Tools that some tests need beside Python, a C compiler and make.

A test that needs such a tool calls a function of this module first. Where the tool is missing, the
test is skipped with a reason that says how to get it; likewise where it is too old or does not run.
Where the environment variable CI is set it fails instead, so that CI cannot leave it out. A test
that depends on the hardware or on the kernel of the machine (`hardware`, `system`) is skipped there
too.
"""

from __future__ import annotations

import ctypes.util
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

import pytest

# The Debian package of each program that is not named like its package.
PACKAGES = {
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
    "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
    "riscv64-linux-gnu-gcc": "gcc-riscv64-linux-gnu",
    "riscv64-linux-gnu-g++": "g++-riscv64-linux-gnu",
    "c++": "g++",
    "clang++": "clang",
    "eu-elflint": "elfutils",
    "eu-strip": "elfutils",
    "ld.gold": "binutils",
    "ld.lld": "lld",
    "llvm-objcopy": "llvm",
    "llvm-objdump": "llvm",
    "llvm-strip": "llvm",
    "musl-gcc": "musl-tools",
    "qemu-aarch64": "qemu-user",
    "qemu-riscv64": "qemu-user",
    "qemu-x86_64": "qemu-user",
    "softhsm2-util": "softhsm2",
    "unshare": "util-linux",
}
VERSION = {"openssl": "version", "swig": "-version"}  # in place of --version
# The first release that runs the tests, of programs that are older on some machines.
LEAST = {"cargo": (1, 63), "cmake": (3, 18), "openssl": (3, 0), "rustc": (1, 63)}
COMPILER = re.compile(r"(.*-)?(g?cc|[cg]\+\+|clang(\+\+)?)")
# Messages of packer, Python, gcc and ld on a machine without a C++ compiler.
CXX_MISSING = re.compile(
    r"for 'cc': none of|(directory:|program) '[gc]\+\+'|cc1plus|find -lstdc\+\+"
)
LINKERS = {"bfd": "ld.bfd", "gold": "ld.gold", "lld": "ld.lld", "mold": "mold"}


def _missing(what: str, remedy: str) -> NoReturn:
    reason = f"needs {what}: {remedy}"
    if os.environ.get("CI"):
        pytest.fail(f"{reason} (nothing is skipped where CI is set)")
    pytest.skip(reason, allow_module_level=True)


def program(*names: str) -> str:
    """Return the path of the first program; the test needs all of them."""
    for name in names:
        path = shutil.which(name)
        if path is None:
            _missing(name, f"apt-get install {PACKAGES.get(name, name)}")
        _require_sound(path)
    return str(shutil.which(names[0]))


def _require_sound(path: str) -> None:
    """Require that a program runs, and is not too old."""
    name = Path(path).name
    fault = _link_fault(path) if COMPILER.fullmatch(name) else _run_fault(path)
    if fault:
        _missing(f"{name} that works", f"{path}: {fault}")


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[0]


@functools.cache
def _run_fault(path: str) -> str | None:
    """Return why a program cannot run the tests, or None; each one answers --version."""
    name = Path(path).name
    command = [path, VERSION.get(name, "--version")]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=60, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode != 0:
        return f"{command[1]} exits with {done.returncode}: {_first_line(done.stderr)}"
    found = re.search(r"\d+\.\d+", done.stdout)
    least = LEAST.get(name, ())
    if found and tuple(map(int, found[0].split("."))) < least:
        return f"is {found[0]}, expected {'.'.join(map(str, least))} or later"
    return None


@functools.cache
def _link_fault(path: str, *options: str) -> str | None:
    """Return why a compiler does not make a program, or None: its C library may be missing."""
    language = "c++" if path.endswith("++") else "c"
    text = f"#include <{'cstdlib' if language == 'c++' else 'stdlib.h'}>\nint main() {{}}\n"
    with tempfile.TemporaryDirectory() as folder:
        command = [path, *options, "-x", language, "-", "-o", f"{folder}/program"]
        try:
            done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        except OSError as error:
            return str(error)
    return None if done.returncode == 0 else _first_line(done.stderr)


def cxx_missing(failure: str) -> str | None:
    """Return the reason to skip a test whose failure shows that it needs a C++ compiler."""
    if os.environ.get("CI") or not CXX_MISSING.search(failure) or _link_fault("g++") is None:
        return None
    return "needs g++: apt-get install g++"


def header(name: str, package: str) -> None:
    """Require a C header, which a Debian package installs with its library."""
    command = ["cc", "-E", "-include", name, "-x", "c", "/dev/null"]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        _missing(name, f"apt-get install {package}")


def library(name: str, package: str) -> None:
    """Require a library that pkg-config finds, which a Debian package installs."""
    command = [program("pkg-config"), "--exists", name]
    if subprocess.run(command, check=False).returncode != 0:
        _missing(name, f"apt-get install {package}")


def linker(name: str) -> str:
    """Return the path of the linker that `-fuse-ld=name` takes."""
    path = program(LINKERS[name])
    if fault := _link_fault("cc", f"-fuse-ld={name}"):
        _missing(f"a compiler that takes -fuse-ld={name}", f"cc: {fault}")
    return path


def importable(name: str, group: str) -> None:
    """Require a module for a child process; an import of tvm_ffi makes its symbols global here."""
    whole = name.partition(".")[0]
    if importlib.util.find_spec(whole) is None:
        _missing(whole, f"make .venv/{group}.group")


def module(name: str, group: str) -> Any:
    """Import a module that a dependency group of pyproject.toml installs."""
    importable(name, group)
    try:
        return importlib.import_module(name)
    except (ImportError, OSError) as error:
        _missing(f"{name} that can be imported", _first_line(str(error)))


def package(name: str, group: str) -> NoReturn:
    """Skip or fail a test for a distribution that a dependency group installs."""
    _missing(name, f"make .venv/{group}.group")


def network(what: str, error: str) -> NoReturn:
    """Skip or fail a test for files that a server has, which could not be reached."""
    last = error.strip().splitlines()[-1:] or [""]
    _missing(what, f"a network that reaches them; {last[0]}")


def zig() -> str:
    """Return the command of PyPI's zig, as the variable CC takes it."""
    if importlib.util.find_spec("ziglang") is None:
        _missing("zig", "make .venv/zig.group")
    return f"'{sys.executable}' -m ziglang"


def cuda_tool(name: str) -> str:
    """Return the path of NVIDIA's tool: of its wheels, or on PATH."""
    wheels = [str(p) for f in sys.path for p in Path(f or ".").glob(f"nvidia/*/bin/{name}")]
    path = next(iter(wheels), None) or shutil.which(name)
    if path is None:
        _missing(name, "make .venv/cuda.group")
    _require_sound(path)
    return path


def browser() -> str:
    """Return the path of Debian's Chromium."""
    return program("chromium-browser" if shutil.which("chromium-browser") else "chromium")


def opencl_library() -> None:
    """Require the library that finds the drivers of OpenCL devices."""
    if ctypes.util.find_library("OpenCL") is None:
        _missing("libOpenCL.so.1", "apt-get install ocl-icd-libopencl1")


@functools.cache
def _num_opencl_devices() -> int:
    from packer.inspect.device_query import query_devices

    return len(query_devices("opencl").get("devices") or ())  # type: ignore[arg-type]


def opencl_device() -> None:
    """Require an OpenCL device; PoCL is one on every CPU."""
    if _num_opencl_devices() == 0:
        _missing("an OpenCL device", "apt-get install ocl-icd-libopencl1 pocl-opencl-icd")


@functools.cache
def _can_unshare(*options: str) -> bool:
    command = ["unshare", *options, "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def unshare(*options: str) -> list[str]:
    """Return the command that runs a program in separate namespaces."""
    program("unshare")
    if not _can_unshare(*options):
        system("user namespaces", "the kernel or its policy refuses unshare(1)")
    return ["unshare", *options]


def hardware(is_there: bool, what: str) -> None:
    """Skip a test for a machine that this one is not, in CI too."""
    if not is_there:
        pytest.skip(f"only on hardware with {what}", allow_module_level=True)


def system(what: str, why: str) -> NoReturn:
    """Skip a test for a right or feature that this machine's system lacks, in CI too."""
    pytest.skip(f"only where the system grants {what}: {why}")
