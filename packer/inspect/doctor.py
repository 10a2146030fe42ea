"""examine_machine(): the tools of this machine for packing and loading, with remedies."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import runtime
from runtime._core import has_driver
from runtime.error import PackerError
from runtime.modules.device import LAUNCHED
from runtime.registry import ENTRY_POINT_GROUP, known_type_keys

from ..elf.library_search import find_system_library
from ..machine import MACHINES
from ..target import find_target
from ..toolchain.compiler import Language, find_compiler
from ..toolchain.cross_search import find_cross_compiler
from .device_query import LIBRARIES, REMEDIES, query_devices
from .findings import Finding, Status

_LINKERS = ("ld", "ld.bfd", "ld.gold", "ld.lld", "mold")
_COMPILERS: dict[Language, tuple[str, str]] = {
    "c": ("C compiler", "install one (Debian: gcc), or name it in CC"),
    "cc": ("C++ compiler", "install one (Debian: g++), or name it in CXX; only C++ needs it"),
    "cu": ("CUDA compiler", "install the CUDA toolkit, or name nvcc in NVCC; only .cu needs it"),
}
# The packages that packer uses, and for what.
_PACKAGES = {
    "llvmlite": "LLVM IR, and embedding without a C compiler",
    "packaging": "packer wheel",
    "pyelftools": "packer inspect",
    "numpy": ".npy files and arrays",
}
_OPTIONAL = ("numpy",)
_VENDORS = Path("/etc/OpenCL/vendors")
_SHOWN_TARGETS = 16
_TIMEOUT = 20


def examine_machine(*, query: Callable[[str], dict[str, Any]] = query_devices) -> list[Finding]:
    """Find the tools of this machine for packing and loading.

    Checked are Python, compilers, linkers, cross compilers, Python packages, LLVM's targets,
    CUDA and OpenCL drivers with their devices, and module loaders.

    Parameters
    ----------
    query : callable, optional
        ``query(key)`` returns the devices of the driver for ``"cuda"`` or ``"opencl"``, as
        `query_devices` does. Nothing runs on the devices.

    Returns
    -------
    list of Finding
        A finding whose status is ``"fail"`` prevents an export of host code; ``"warn"`` concerns
        an optional feature. Each of these has a remedy.

    Examples
    --------
    >>> from packer.inspect.doctor import examine_machine
    >>> [f.name for f in examine_machine() if f.status == "fail"]  # doctest: +SKIP
    []
    """
    return [
        *_python(),
        *_compilers(),
        *_linkers(),
        *_targets(),
        *_packages(),
        *_llvm_targets(),
        *(finding for key in LIBRARIES for finding in _driver(key, query)),
        *_loaders(),
    ]


def _python() -> Iterator[Finding]:
    text = f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}"
    yield Finding("Python", "pass", text)
    libc = " ".join(filter(None, platform.libc_ver())) or "another C library than glibc"
    yield Finding("system", "pass", f"{platform.system()} {platform.machine()}, {libc}")
    from runtime import _core

    yield Finding("runtime core", "pass", f"{runtime.__version__}, {_core.__file__}")


def _compilers() -> Iterator[Finding]:
    for language, (name, remedy) in _COMPILERS.items():
        try:
            command = find_compiler(language)
        except PackerError as error:
            yield Finding(name, "fail" if language == "c" else "warn", str(error), remedy)
            continue
        version = _version(command)
        if version is None:
            detail = f"{' '.join(command)} does not print its version"
            yield Finding(name, "warn", detail, remedy)
        else:
            yield Finding(name, "pass", f"{' '.join(command)}: {version}")


def _linkers() -> Iterator[Finding]:
    found = {name: shutil.which(name) for name in _LINKERS}
    for name, path in found.items():
        if path is not None:
            yield Finding(f"linker {name}", "pass", f"{path}: {_version((path,)) or 'no version'}")
    if not any(found.values()):
        yield Finding("linker", "fail", "not found", "install one (Debian: binutils)")


def _targets() -> Iterator[Finding]:
    """Find the targets with a C compiler; an export for this machine needs none."""
    found: dict[str, str] = {}
    for machine in MACHINES:
        triple = f"{machine}-linux-gnu"
        with contextlib.suppress(PackerError):
            found[triple] = " ".join(find_cross_compiler(find_target(triple), "c"))
    remedy = "Debian: gcc-aarch64-linux-gnu, gcc-riscv64-linux-gnu; or pip install ziglang"
    detail = "; ".join(f"{triple}: {command}" for triple, command in found.items())
    status: Status = "pass" if len(found) > 1 else "warn"
    yield Finding("targets", status, detail or "none", "" if len(found) > 1 else remedy)


def _version(command: tuple[str, ...]) -> str | None:
    """Return the line of ``--version`` that contains a number."""
    try:
        done = subprocess.run(
            [*command, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    lines = [line.strip() for line in done.stdout.decode("utf-8", "replace").splitlines()]
    numbered = [line for line in lines if any(char.isdecimal() for char in line)]
    releases = [line for line in numbered if "release" in line]  # nvcc prints it last
    return next(iter(releases or numbered), None)


def _packages() -> Iterator[Finding]:
    for name, purpose in _PACKAGES.items():
        try:
            yield Finding(name, "pass", f"{importlib.metadata.version(name)}: {purpose}")
        except importlib.metadata.PackageNotFoundError:
            status: Status = "warn" if name in _OPTIONAL else "fail"
            yield Finding(name, status, f"not found: {purpose}", f"pip install {name}")


def _llvm_targets() -> Iterator[Finding]:
    try:
        from llvmlite import binding
    except (ImportError, OSError) as error:
        yield Finding("LLVM targets", "warn", f"llvmlite: {error}", "pip install llvmlite")
        return
    version = ".".join(map(str, binding.llvm_version_info))
    binding.initialize_all_targets()
    names = sorted(_target_names(binding))
    more = f" and {len(names) - _SHOWN_TARGETS} more" if len(names) > _SHOWN_TARGETS else ""
    detail = f"LLVM {version}: {', '.join(names[:_SHOWN_TARGETS])}{more}"
    yield Finding("LLVM targets", "pass", detail)


def _target_names(binding: Any) -> Iterator[str]:
    """Iterate over the known machines that this LLVM supports."""
    for name in _TRIPLES:
        try:
            binding.Target.from_triple(f"{name}-unknown-unknown")
        except RuntimeError:
            continue
        yield name


# The first words of target triples (LLVM, Triple.h), for host code and kernels.
_TRIPLES = (
    *("x86_64", "aarch64", "riscv64", "powerpc64le", "loongarch64", "s390x", "i686", "armv7"),
    *("wasm32", "nvptx64", "amdgcn", "spirv64", "hexagon", "bpf", "mips64el"),
)


def _driver(key: str, query: Callable[[str], dict[str, Any]]) -> Iterator[Finding]:
    name, remedy = LIBRARIES[key], f"{REMEDIES[key]}; only {key} modules need it"
    path = find_system_library(name)
    if path is None:
        yield Finding(f"{key} driver", "warn", f"{name} not found", remedy)
        return
    answer = query(key)
    if "error" in answer:
        yield Finding(f"{key} driver", "warn", f"{path}: {answer['error']}", remedy)
        return
    detail = f"{path}: {answer['version'] or 'no platform'}"
    yield Finding(f"{key} driver", "pass", detail + (_icds() if key == "opencl" else ""))
    for device in answer["devices"]:
        yield Finding(f"{key} device", "pass", f"{device['name']}, {device['architecture']}")
    if not answer["devices"]:
        yield Finding(f"{key} device", "warn", "the driver lists none", remedy)


def _icds() -> str:
    """Return the vendors' drivers that the OpenCL loader is configured for."""
    try:
        names = sorted(entry for entry in os.listdir(_VENDORS) if entry.endswith(".icd"))
    except OSError:
        names = []
    return f"; vendors: {', '.join(names) or 'none'}"


def _loaders() -> Iterator[Finding]:
    yield Finding("loaders", "pass", ", ".join(known_type_keys()))
    states = [f"{key} (driver {'found' if has_driver(key) else 'missing'})" for key in LAUNCHED]
    detail = f"launched: {', '.join(states)}; kernels of other devices are carried"
    yield Finding("kernels", "pass", detail)
    for point in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
        package = point.dist.name if point.dist is not None else point.value
        yield Finding(f"loader of {point.name}", "pass", f"from the package {package}")
