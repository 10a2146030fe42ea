"""check_library(path): would a library load here? Read, never loaded; each answer has a remedy."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from runtime.module import preorder
from runtime.modules.device import DeviceModule

from .architecture import Architecture, architectures_of
from .dependencies import Dependencies, resolve_dependencies
from .device_query import LIBRARIES, query_devices
from .findings import Finding
from .inspect import open_library
from .library_search import find_system_library

if TYPE_CHECKING:
    from .inspect import LibraryReport, OpenedLibrary

# What each device's code runs through.
_DRIVERS = {
    **LIBRARIES,
    "vulkan": "libvulkan.so.1",
    "hip": "libamdhip64.so",
    "metal": "Metal.framework",
}
_REMEDIES = {
    "cuda": "install NVIDIA's driver",
    "opencl": "install an OpenCL loader and driver (Debian: ocl-icd-libopencl1, pocl-opencl-icd)",
    "vulkan": "install the Vulkan loader and a driver (Debian: libvulkan1, mesa-vulkan-drivers)",
    "hip": "install AMD's ROCm runtime",
    "metal": "use it on macOS",
}
_SHOWN = 5
_CARRIED = "the library loads; these kernels cannot run here"


def check_library(
    path: str | os.PathLike[str], *, query: Callable[[str], dict[str, object]] = query_devices
) -> list[Finding]:
    """Say whether a library would load here, and what to do where it would not.

    Parameters
    ----------
    path : path
        The library. Nothing of it is run.
    query : callable
        Asks the driver of ``"cuda"`` for its devices; only called where the library has code for
        it and the driver is there.

    Returns
    -------
    list of Finding
        One that failed keeps the library from loading; a warning keeps a part of it from use.

    Raises
    ------
    LibraryLoadError
        The file is no library at all.
    """
    opened = open_library(path)
    report = opened.report
    findings = [_machine(report)]
    if not report.native:
        return findings  # nothing else of this machine would be the right one
    findings += _contents(report)
    dependencies = resolve_dependencies(path, report.linkage)
    findings += _glibc(report, dependencies)
    findings += _needed(dependencies)
    findings += _versions(dependencies)
    findings += _undefined(report, dependencies)
    findings += _loaders(report)
    findings += _devices(opened, query)
    return findings


def _machine(report: LibraryReport) -> Finding:
    if report.native:
        return Finding("machine", "pass", report.machine)
    remedy = f"export it for {platform.machine()}, or take it to a machine of its own kind"
    detail = f"made for {report.machine}, this is {platform.machine()}"
    return Finding("machine", "fail", detail, remedy)


def _contents(report: LibraryReport) -> Iterator[Finding]:
    """What the static check of a load, and the reader of the tree, say."""
    for problem in report.problems:
        yield Finding("contents", "fail", problem, "export it again, or copy it again")
    if not report.problems:
        yield Finding("contents", "pass", "the file and its tree are well formed")


def _glibc(report: LibraryReport, dependencies: Dependencies) -> Iterator[Finding]:
    needs = [n for n in (report.linkage.glibc, dependencies.glibc) if n]
    if not needs:
        return
    needed = max(needs, key=_numbers)
    name, here = platform.libc_ver()
    detail = f"needs {needed}, this is {here or 'unknown'}"
    if name == "glibc" and _numbers(here) >= _numbers(needed):
        yield Finding("glibc", "pass", detail)
    elif name == "glibc":
        remedy = f"use a system with glibc {needed} or newer, or export it on an older one"
        yield Finding("glibc", "fail", detail, remedy)
    else:
        yield Finding(
            "glibc", "fail", f"needs {needed}, this system has none", "use one with glibc"
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def _needed(dependencies: Dependencies) -> Iterator[Finding]:
    for name, found in dependencies.direct.items():
        if found is not None:
            yield Finding(f"needed {name}", "pass", found)
    for name, asking in dependencies.missing.items():
        remedy = "install what provides it, or add its folder to LD_LIBRARY_PATH"
        yield Finding(f"needed {name}", "fail", f"not found; {asking} needs it", remedy)


def _versions(dependencies: Dependencies) -> Iterator[Finding]:
    for name, version, asking in dependencies.missing_versions:
        if not version.startswith("GLIBC_"):  # that is a line of its own
            detail = f"{version} is not in it; {asking} needs that"
            yield Finding(f"version of {name}", "fail", detail, f"install a newer {name}")


def _undefined(report: LibraryReport, dependencies: Dependencies) -> Iterator[Finding]:
    """As far as reading tells: what the process has loaded by then may define more."""
    wanted = {
        symbol.name
        for symbol in report.symbols.dynamic
        if not symbol.defined and symbol.bind == "GLOBAL" and symbol.name
    }
    lost = sorted(wanted - dependencies.defined_among(wanted))
    if not lost:
        yield Finding(
            "undefined symbols", "pass", f"all {len(wanted)} are defined by what it needs"
        )
        return
    more = f", and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
    detail = f"nothing that it needs defines {', '.join(lost[:_SHOWN])}{more}"
    if dependencies.missing:
        yield Finding("undefined symbols", "warn", detail, "what is missing above may define them")
    else:
        yield Finding("undefined symbols", "fail", detail, "link it with the library that does")


def _loaders(report: LibraryReport) -> Iterator[Finding]:
    loadable: dict[str, bool] = {}
    for module in report.modules:
        if module.type_key != "library":
            loadable[module.type_key] = module.loadable
    for key, is_known in loadable.items():
        if is_known:
            yield Finding(f"loader of {key}", "pass", "known here")
            continue
        remedy = "install the package that provides it, or register one: runtime.register_loader"
        yield Finding(f"loader of {key}", "warn", "none here: its modules are only carried", remedy)


def _devices(opened: OpenedLibrary, query: Callable[[str], dict[str, object]]) -> Iterator[Finding]:
    modules = (
        [m for m in preorder(opened.root) if isinstance(m, DeviceModule)] if opened.root else []
    )
    for kind in dict.fromkeys(module.type_key for module in modules):
        name = _DRIVERS.get(kind)
        found = find_system_library(name) if name else None
        if found is None:
            detail = f"{name or 'its driver'} is not here: {_CARRIED}"
            yield Finding(f"driver of {kind}", "warn", detail, _REMEDIES.get(kind, ""))
        else:
            yield Finding(f"driver of {kind}", "pass", found)
        if kind == "cuda":
            yield from _cuda(modules, query if found else None)


def _cuda(
    modules: Iterable[DeviceModule], query: Callable[[str], dict[str, object]] | None
) -> Iterator[Finding]:
    codes = [m.data for m in modules if m.type_key == "cuda" and isinstance(m.data, memoryview)]
    found = [list(dict.fromkeys(architectures_of(code))) for code in codes]
    shown = ", ".join(dict.fromkeys(str(one) for code in found for one in code))
    if not shown:
        return
    answer = query("cuda") if query else {}
    devices = answer.get("devices")
    if not isinstance(devices, list) or not devices:
        why = answer.get("error") or "no device to compare with"
        yield Finding("device architectures", "warn", f"compiled for {shown}; {why}")
        return
    for device in devices:
        capability = int(str(device["architecture"]).removeprefix("sm_"))
        yield _compared(f"{device['name']} (sm_{capability})", capability, found, shown)


def _compared(device: str, capability: int, codes: list[list[Architecture]], shown: str) -> Finding:
    """Each module needs one piece of code that the device takes."""
    if all(any(one.runs_on(capability) for one in code) for code in codes if code):
        return Finding(f"device {device}", "pass", f"takes {shown}")
    remedy = f"compile the kernels for sm_{capability} too"
    return Finding(f"device {device}", "warn", f"compiled for {shown}: {_CARRIED}", remedy)
