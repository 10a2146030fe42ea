"""check_library(path): whether a library would load on this machine, with remedies."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Set
from typing import TYPE_CHECKING

from runtime import _core
from runtime.error import PackerError
from runtime.module import preorder
from runtime.modules.device import DeviceModule
from runtime.modules.vm import STR, VMExecutable
from runtime.registry import find_global_func

from ..elf.dependencies import Dependencies, defined_by_this_process, resolve_dependencies
from ..elf.linkage import libc_of, version_numbers
from ..files.text import some_of
from . import open_library
from .callees import missing_callees
from .check_devices import check_devices
from .check_legacy import check_legacy
from .device_query import query_devices
from .findings import Finding

if TYPE_CHECKING:
    from runtime.module import Module

    from . import LibraryReport


def check_library(
    path: str | os.PathLike[str], *, query: Callable[[str], dict[str, object]] = query_devices
) -> list[Finding]:
    """Check whether a library would load on this machine.

    Checked are the machine, the contents, the CPU levels, the C library, the needed libraries and
    their symbol versions, undefined symbols, the loaders of the modules, the names that TVM to 2025
    would call, the functions that models call by name, and drivers and devices for the kernels.
    The library is read, never loaded.

    Parameters
    ----------
    path : path
        The library.
    query : callable, optional
        ``query(key)`` returns the devices of the driver for ``"cuda"`` or ``"opencl"``, as
        `query_devices` does. It is called only if the library contains code for the driver, and
        the driver is installed.

    Returns
    -------
    list of Finding
        A finding whose status is ``"fail"`` prevents a load; with ``"warn"`` a part of the
        library cannot be used. Each of these has a remedy.

    Raises
    ------
    LibraryLoadError
        If the file is not an ELF library.

    Examples
    --------
    >>> from packer.inspect.check import check_library
    >>> [f.name for f in check_library("model.so") if f.status == "fail"]  # doctest: +SKIP
    ['needed libdeep.so']
    """
    opened = open_library(path)
    report = opened.report
    findings = [_machine(report)]
    if not report.native:
        return findings  # the other checks would look at the wrong machine
    findings += _contents(report)
    findings += _cpu_levels(report)
    if report.linkage.libc == "musl":
        findings.append(_musl(report))
        if findings[-1].status == "fail":
            return findings  # what it needs is part of musl, or built for it
    dependencies = resolve_dependencies(path, report.linkage)
    findings += _glibc(report, dependencies)
    findings += _needed(dependencies)
    findings += _versions(dependencies)
    findings += _undefined(report, dependencies)
    findings += _loaders(report)
    findings += check_legacy(path, report)
    findings += _weights(opened.root)
    findings += _callees(report, opened.root)
    findings += check_devices(_device_modules(opened.root), query)
    return findings


# Faults of bytecode that another version of TVM wrote.
_OTHER_VERSIONS = ("bytecode version '", "number of arguments of 'vm.builtin.")


def _machine(report: LibraryReport) -> Finding:
    if report.native:
        return Finding("machine", "pass", report.machine)
    remedy = f"export it for {platform.machine()}, or use it on {report.machine}"
    detail = f"compiled for {report.machine}, this is {platform.machine()}"
    return Finding("machine", "fail", detail, remedy)


def _contents(report: LibraryReport) -> Iterator[Finding]:
    """Return the problems that the check of a load and the reader of the tree found."""
    refusal = f"a load would refuse it: {report.cpu.refusal}" if report.cpu is not None else ""
    problems = [problem for problem in report.problems if problem != refusal]
    for problem in problems:
        yield Finding("contents", "fail", problem, _remedy_of_contents(problem))
    if not problems:
        yield Finding("contents", "pass", "the file and its tree are well formed")


def _cpu_levels(report: LibraryReport) -> Iterator[Finding]:
    """Check that this processor has the lowest level, and that of DSO_CPU."""
    if report.cpu is None:
        return
    if report.cpu.refusal is None:
        yield Finding("cpu", "pass", ", ".join(report.cpu.levels))
        return
    detail, _, remedy = report.cpu.refusal.rpartition("; ")
    yield Finding("cpu", "fail", detail, remedy)


def _musl(report: LibraryReport) -> Finding:
    name, here = platform.libc_ver()
    needs = f"made for musl: needs {next(n for n in report.linkage.needed if libc_of([n]))}"
    if name != "glibc":
        return Finding("musl", "pass", needs)
    detail = f"{needs}, this Python uses glibc {here}"
    remedy = "export it with a compiler for glibc, such as gcc, or use it with a Python for musl"
    return Finding("musl", "fail", detail, remedy)


def _glibc(report: LibraryReport, dependencies: Dependencies) -> Iterator[Finding]:
    own, (library, others) = report.linkage.glibc, dependencies.glibc or ("", None)
    if own and others and version_numbers(others) <= version_numbers(own):
        others = None
    needed = others or own
    if needed is None:
        return
    name, here = platform.libc_ver()
    detail = f"needs {own}"
    if others:
        by = f"{library}, which it loads,"
        detail = f"{detail} ({by} {others})" if own else f"{by} needs {others}"
    if name != "glibc":
        detail += ", this system has none"
        yield Finding("glibc", "fail", detail, "use a system with glibc")
        return
    detail += f", this is {here or 'unknown'}"
    if version_numbers(here) >= version_numbers(needed):
        yield Finding("glibc", "pass", detail)
    else:
        instead = f"install {library} for glibc {here}" if others else "export it on an older one"
        remedy = f"use a system with glibc {needed} or newer, or {instead}"
        yield Finding("glibc", "fail", detail, remedy)


def _needed(dependencies: Dependencies) -> Iterator[Finding]:
    for name, found in dependencies.direct.items():
        if found is not None:
            yield Finding(f"needed {name}", "pass", found)
    for name, asking in dependencies.missing.items():
        remedy = "install the package that provides it, or add its folder to LD_LIBRARY_PATH"
        yield Finding(f"needed {name}", "fail", f"not found; {asking} needs it", remedy)


def _versions(dependencies: Dependencies) -> Iterator[Finding]:
    for name, version, asking in dependencies.missing_versions:
        if not version.startswith("GLIBC_"):  # _glibc reports these
            detail = f"{version} not found in it; {asking} needs it"
            yield Finding(f"version of {name}", "fail", detail, f"install a newer {name}")


def _undefined(report: LibraryReport, dependencies: Dependencies) -> Iterator[Finding]:
    """Check undefined symbols; libraries that the process has loaded may define more."""
    wanted = {
        symbol.name
        for symbol in report.symbols.dynamic
        if not symbol.defined and symbol.bind == "GLOBAL" and symbol.name
    }
    left = wanted - dependencies.defined_among(wanted)
    if provided := _provided(left, report):
        detail = f"{some_of(provided)}: bound to the runtime; a plain dlopen would not find them"
        yield Finding("symbols of TVM", "pass", detail)
    in_process = defined_by_this_process(left - provided)
    if in_process:
        detail = f"{some_of(in_process)}: no needed library defines them, only this Python does"
        remedy = "link it with the library that defines them, or load it in this Python only"
        yield Finding("symbols of this Python", "warn", detail, remedy)
    lost = left - provided - in_process
    if not lost:
        count = len(wanted - left)
        detail = f"all {count} are defined by what it needs" if count else "none"
        yield Finding("undefined symbols", "pass", detail)
        return
    detail = f"no needed library defines {some_of(lost)}"
    if dependencies.missing:
        yield Finding("undefined symbols", "warn", detail, "a missing library may define them")
    else:
        yield Finding("undefined symbols", "fail", detail, _remedy(lost))


def _provided(left: Set[str], report: LibraryReport) -> set[str]:
    """Return what a load binds to the core; nothing if the library needs TVM (bridge.c)."""
    if any(os.path.basename(name).startswith("libtvm") for name in report.linkage.needed):
        return set()
    return {name for name in left if _core.is_provided(name)}


def _remedy_of_contents(problem: str) -> str:
    """Advise against damage; bytecode of an unknown version of TVM is not damaged."""
    if any(words in problem for words in _OTHER_VERSIONS):
        return "compile the model with TVM 0.16 to 0.27, whose bytecode is known here"
    return "export it again, or copy it again"


def _remedy(lost: Set[str]) -> str:
    if any(name.startswith("TVMBackendAnyList") for name in lost):
        return 'build the model with exec_mode="bytecode", the default; this one is "compiled"'
    if all(name.startswith("TVM") for name in lost):
        return "load it with TVM itself, or link it with libtvm_ffi: the runtime has none of these"
    return "link it with the library that defines them"


def _loaders(report: LibraryReport) -> Iterator[Finding]:
    loadable: dict[str, bool] = {}
    for module in report.modules:
        if module.type_key != "library":
            loadable[module.type_key] = module.loadable
    for key, is_known in loadable.items():
        if key == "encrypted":
            detail = "not decrypted, so what is in it was not checked"
            yield Finding("type encrypted", "warn", detail, "load it with its key: packer load")
            continue
        if is_known:
            yield Finding(f"loader of {key}", "pass", "known here")
            continue
        remedy = "install the package that provides it, or register one: runtime.register_loader"
        yield Finding(f"loader of {key}", "warn", "none here: its modules are only carried", remedy)


def _weights(root: Module | None) -> Iterator[Finding]:
    """Check that the imports of bytecode have the weights that it uses (`dso.weight`)."""
    for module in preorder(root) if root is not None else ():
        if not isinstance(module, VMExecutable):
            continue
        constants = [
            module.bytecode_constants[index] for index in module.bytecode.weight_constants()
        ]
        used = {str(name) for type_index, name in constants if type_index == STR}
        try:
            known = {name for part in list(preorder(module))[1:] for name in part.own_weights}
        except PackerError as error:
            yield Finding("weights", "fail", error.message, "export the model again")
            continue
        missing = used - known
        if missing:
            remedy = "export the model with its weights"
            yield Finding("weights", "fail", f"no import has {some_of(missing)}", remedy)
        elif used:
            yield Finding("weights", "pass", f"all {len(used)} are in the library")


def _callees(report: LibraryReport, root: Module | None) -> Iterator[Finding]:
    """Check the functions that models call by name: the first look-up in a model needs them all."""
    for what, names in missing_callees(report, root) if root is not None else ():
        missing = {name for name in names if find_global_func(name) is None}
        if not missing:
            yield Finding(what, "pass", "the library and the runtime have all of them")
            continue
        detail = f"no module of the library has {some_of(missing)}, nor has the runtime"
        remedy = "register them before the model's functions are looked up: runtime.register_func"
        yield Finding(what, "warn", detail, remedy)


def _device_modules(root: Module | None) -> list[DeviceModule]:
    return [m for m in preorder(root) if isinstance(m, DeviceModule)] if root is not None else []
