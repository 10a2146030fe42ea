"""The Python files of a wheel: a package for each library, and their long description."""

from __future__ import annotations

import json
import keyword
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from runtime.error import ExportError

from ..files.text import path_error, shown_path
from ..inspect import LibraryReport, inspect_library

LIBRARY = "library"  # the name of the loaded module in its package

_LOADER = '''\
"""The functions of {file}, which is loaded when one of them is first used."""

from pathlib import Path as _Path

import runtime as _runtime

{version}__all__ = {names}


def __getattr__(name):
    if name != "{library}" and name not in __all__:
        raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}")
    {library} = _runtime.load(_Path(__file__).with_name({quoted}))
    globals().update({{name: {library}[name] for name in __all__}}, {library}={library})
    return globals()[name]


def __dir__():
    return sorted({{*globals(), *__all__, "{library}"}})
'''
_OUTER = '''\
"""The libraries {files}, each a module that loads its library on first use."""

from . import {modules}

__version__ = "{version}"
__all__ = {names}
'''


class Part(NamedTuple):
    """A library of a wheel, with its package.

    Attributes
    ----------
    path : Path
        The library.
    package : str
        The folder of its files in the wheel, which is the package that loads it.
    names : tuple of str
        The functions that the package has as attributes.
    """

    path: Path
    package: str
    names: tuple[str, ...]
    report: LibraryReport


def parts_of(paths: Sequence[Path], package: str) -> list[Part]:
    """Return a package for each library: one library is the package itself.

    Raises
    ------
    ExportError
        If a name cannot be that of a package, or two are equal; or a library cannot be loaded.
    LibraryLoadError
        If a file is no library.
    """
    if not _is_name(package):
        text = f"expected a Python identifier, found {package!r}; choose another: --package"
        raise ExportError(f"package: {text}")
    parts: list[Part] = []
    for path in paths:
        own = package if len(paths) == 1 else f"{package}/{_module_name(path)}"
        if other := next((part for part in parts if part.package == own), None):
            text = f"would be {own.replace('/', '.')}, as {shown_path(other.path)}; rename one"
            raise path_error(path, text)
        report = inspect_library(path)
        if report.problems:
            raise path_error(path, f"{report.problems[0]}; export it again, or copy it again")
        parts.append(Part(path, own, _functions(report), report))
    return parts


def _module_name(path: Path) -> str:
    name = path.name.split(".")[0].removeprefix("lib")
    if not _is_name(name):
        text = f"expected the name of a library that is a Python identifier, found {name!r}"
        raise path_error(path, f"{text}; rename it")
    return name


def _is_name(text: str) -> bool:
    return text.isidentifier() and text.isascii() and not keyword.iskeyword(text)


def _functions(report: LibraryReport) -> tuple[str, ...]:
    """Return the functions of the root that can be attributes; `library[...]` has the others."""
    names = {function.name for function in report.functions}
    names.update(report.modules[0].functions if report.modules else ())
    return tuple(sorted(n for n in names if _is_name(n) and n[0] != "_" and n != LIBRARY))


def package_files(parts: Sequence[Part], package: str, version: str) -> dict[str, str | Path]:
    """Return the files of the packages by their names in the wheel."""
    files: dict[str, str | Path] = {f"{package}/py.typed": ""}
    if [part.package for part in parts] != [package]:
        names = [part.package.rpartition("/")[2] for part in parts]
        files[f"{package}/__init__.py"] = _OUTER.format(
            files=", ".join(part.path.name for part in parts),
            modules=", ".join(names),
            version=version,
            names=_list(names),
        )
    for part in parts:
        own = f'__version__ = "{version}"\n' if part.package == package else ""
        file = part.path.name
        text = _LOADER.format(
            file=file, quoted=json.dumps(file), library=LIBRARY,
            names=_list(part.names), version=own,
        )  # fmt: skip
        files[f"{part.package}/__init__.py"] = text
        files[f"{part.package}/{part.path.name}"] = part.path
    return files


def _list(names: Sequence[str]) -> str:
    text = str(list(names)).replace("'", '"')
    if len(text) > 80:
        text = "".join(["[", *(f'\n    "{name}",' for name in names), "\n]"])
    return text


def describe(parts: Sequence[Part], name: str, description: str) -> str:
    """Return a long description in Markdown: how to import it, and what it has."""
    lines = [f"# {name}", "", *([description, ""] if description else [])]
    for part in parts:
        module = part.package.replace("/", ".")
        lines += [f"`{module}` has the functions of {os.path.basename(part.path)}:", ""]
        signatures = {function.name: function.signature for function in part.report.functions}
        lines += ["```python", f"import {module}", *(f"{module}.{n}" for n in part.names), "```"]
        known = [text for name in part.names if (text := signatures.get(name))]
        if known:
            lines += ["", "As C declares them:", "", "```c", *(f"{text};" for text in known), "```"]
        lines.append("")
    return "\n".join(lines)
