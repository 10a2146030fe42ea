"""check_without_python(path): what of a library needs Python, with remedies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from runtime._core import is_provided
from runtime.registry import is_own_type

from ..elf.dependencies import defined_by_this_process, resolve_dependencies
from ..files.text import some_of
from . import open_library
from .callees import missing_callees
from .findings import Finding

if TYPE_CHECKING:
    from runtime.module import Module

    from . import LibraryReport

_NO_CRYPTOGRAPHY = "libdso has no cryptography, so its modules would only be carried"


def check_without_python(path: str | os.PathLike[str]) -> list[Finding]:
    """Check whether all of a library can be used without Python, by a program with libdso.

    Checked are the types of its modules, the functions that its graphs and its bytecode call, the
    symbols that only a Python process defines, and functions without a declaration. Names that host
    code looks up are not known before it runs. The library is read, never loaded. A finding whose
    status is ``"fail"`` names a part that needs Python. Raises LibraryLoadError if the file is not
    an ELF library.
    """
    opened = open_library(path)
    findings = [*_types(opened.report)]
    if opened.root is not None:
        findings += _called(opened.report, opened.root)
    findings += _symbols(path, opened.report)
    findings += _undeclared(opened.report)
    return findings


def _types(report: LibraryReport) -> Iterator[Finding]:
    """Check the types; libdso has the loaders that the runtime itself has."""
    keys = dict.fromkeys(m.type_key for m in report.modules if m.type_key != "library")
    foreign = [key for key in keys if not is_own_type(key)]
    for key in foreign:
        if key == "encrypted":
            yield Finding("type encrypted", "fail", _NO_CRYPTOGRAPHY, "export it without --encrypt")
            continue
        remedy = f"register a loader of {key} in the program (dso_register_loader), or leave it out"
        detail = "its loader is Python code, so its modules would only be carried"
        yield Finding(f"type {key}", "fail", detail, remedy)
    if not foreign:
        yield Finding("types", "pass", f"libdso loads {', '.join(keys) or 'host code'}")
    if "shared_library" in keys:
        remedy = "write it to a file with packer extract, and check that"
        yield Finding("type shared_library", "warn", "libraries within it are not checked", remedy)


def _called(report: LibraryReport, root: Module) -> Iterator[Finding]:
    """Check the functions that graphs and bytecode call by name."""
    for what, missing in missing_callees(report, root):
        yield _found(what, missing)


def _found(what: str, missing: list[str]) -> Finding:
    if not missing:
        return Finding(what, "pass", "libdso and the library's modules have all of them")
    detail = f"no module of the library has {some_of(missing)}"
    remedy = "register them in the program (dso_register_function), or export code that has them"
    return Finding(what, "fail", detail, remedy)


def _symbols(path: str | os.PathLike[str], report: LibraryReport) -> Iterator[Finding]:
    """Check for Python's own library and symbols."""
    dependencies = resolve_dependencies(path, report.linkage)
    for name in (*dependencies.direct, *dependencies.missing):
        if os.path.basename(name).startswith("libpython"):
            remedy = "link code that does not use Python's C API"
            yield Finding(f"needed {name}", "fail", "it is Python itself", remedy)
    wanted = {s.name for s in report.symbols.dynamic if not s.defined and s.bind == "GLOBAL"}
    left = wanted - dependencies.defined_among(wanted) - {""}
    left = {name for name in left if not is_provided(name)}
    lost = sorted(defined_by_this_process(left))
    if lost:
        detail = f"only this Python defines {some_of(lost)}"
        yield Finding("symbols", "fail", detail, "link the library that defines them")
    else:
        yield Finding("symbols", "pass", "none is Python's")


def _undeclared(report: LibraryReport) -> Iterator[Finding]:
    """Check for C functions that only a load in Python can declare."""
    if report.functions or report.blob is not None:
        return
    detail = "the library declares none, and only runtime.load(path, functions={...}) declares some"
    remedy = "export it with declared functions: packer export --function"
    yield Finding("functions", "fail", detail, remedy)
