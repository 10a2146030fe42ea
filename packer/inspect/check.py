"""check_library(path): would a library load here? Read, never loaded; each answer has a remedy."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Set
from typing import TYPE_CHECKING

from runtime import _core
from runtime.module import preorder
from runtime.modules.device import DeviceModule

from . import open_library, read_dynamic
from .check_devices import check_devices
from .dependencies import Dependencies, resolve_dependencies
from .device_query import query_devices
from .findings import Finding

if TYPE_CHECKING:
    from runtime.module import Module

    from . import LibraryReport

_SHOWN = 5


def check_library(
    path: str | os.PathLike[str], *, query: Callable[[str], dict[str, object]] = query_devices
) -> list[Finding]:
    """Say whether a library would load here, and what to do where it would not.

    Parameters
    ----------
    path : path
        The library. Nothing of it is run.
    query : callable
        Asks the driver of ``"cuda"`` or ``"opencl"`` for its devices; only called where the
        library has code for it and the driver is there.

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
    findings += check_devices(_device_modules(opened.root), query)
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
    left = wanted - dependencies.defined_among(wanted)
    if provided := _provided(left, report):
        detail = f"{_some(provided)}: bound to the runtime; a plain dlopen would not find them"
        yield Finding("symbols of TVM", "pass", detail)
    lost = left - provided
    if not lost:
        count = len(wanted - provided)
        detail = f"all {count} are defined by what it needs" if count else "none is left"
        yield Finding("undefined symbols", "pass", detail)
        return
    detail = f"nothing that it needs defines {_some(lost)}"
    if dependencies.missing:
        yield Finding("undefined symbols", "warn", detail, "what is missing above may define them")
    else:
        yield Finding("undefined symbols", "fail", detail, _remedy(lost))


def _provided(left: Set[str], report: LibraryReport) -> set[str]:
    """What a load binds to the runtime's core, unless the library brings a TVM (bridge.c)."""
    if any(os.path.basename(name).startswith("libtvm") for name in report.linkage.needed):
        return set()
    core = read_dynamic(_core.__file__).symbols
    return {name for name in left if name.startswith("TVM") and core.find(name)}


def _remedy(lost: Set[str]) -> str:
    if all(name.startswith("TVM") for name in lost):
        return "load it with TVM itself, or link it with libtvm_ffi: the runtime has none of these"
    return "link it with the library that does"


def _some(names: Set[str]) -> str:
    more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(sorted(names)[:_SHOWN])}{more}"


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


def _device_modules(root: Module | None) -> list[DeviceModule]:
    return [m for m in preorder(root) if isinstance(m, DeviceModule)] if root is not None else []
