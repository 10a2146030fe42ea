"""The Python files of a wheel: a package for each library, and their long description."""

from __future__ import annotations

import json
import keyword
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from runtime.error import ExportError

from ...files.text import path_error, shown_path
from ...inspect import LibraryReport, open_library
from ..stubs import public_functions, stub_of
from ..stubs.tree import read_tree

_LOADER = '''\
"""The functions of {file}, which is loaded when one of them is first used."""

from functools import cache as _cache
from pathlib import Path as _Path

import runtime as _runtime

{version}__all__ = {names}


@_cache
def _load():
    return _runtime.load(_Path(__file__).with_name({quoted}))


def __getattr__(name):
    if name == "model" and name not in __all__:
        found = _load()
    elif name.startswith("_") or name not in _load():
        raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}")
    else:
        found = _load()[name]
    return globals().setdefault(name, found)


def __dir__():
    return sorted({{*globals(), *__all__, "model"}})
'''
_OUTER = '''\
"""The libraries {files}: each is a module, which loads its library on first use."""

{imports}

__version__ = "{version}"
__all__ = {names}
'''
_MOST_COLUMNS = 100


class Part(NamedTuple):
    """A library of a wheel, with its package."""

    path: Path  # the library
    package: str  # the folder of its files in the wheel, which is the package that loads it
    functions: tuple[str, ...]  # the functions that are attributes of the package
    is_complete: bool  # False if the library may have more of them
    report: LibraryReport

    @property
    def module(self) -> str:
        """The name that Python imports."""
        return self.package.replace("/", ".")


def parts_of(paths: Sequence[Path], package: str) -> list[Part]:
    """Return a package for each library: one library is the package itself.

    Raises ExportError if a name cannot be that of a package, or two are equal. Raises
    LibraryLoadError if a file is not a library, or a load would refuse it.
    """
    if not _is_name(package):
        text = f"expected a Python identifier, found {package!r}; choose another: --package"
        raise ExportError(f"package: {text}")
    parts: list[Part] = []
    for path in paths:
        own = package if len(paths) == 1 else f"{package}/{_module_name(path)}"
        if other := next((part for part in parts if part.package == own), None):
            text = f"would be {other.module}, as {shown_path(other.path)}; rename one"
            raise path_error(path, text)
        opened = open_library(path)
        tree = read_tree(opened)
        names = sorted(function.name for function in public_functions(tree))
        parts.append(Part(path, own, tuple(names), tree.is_complete, opened.report))
    return parts


def _module_name(path: Path) -> str:
    name = path.name.split(".")[0].removeprefix("lib")
    if not _is_name(name):
        text = f"a module is named after it, expected a Python identifier, found {name!r}"
        raise path_error(path, f"{text}; rename it")
    return name


def _is_name(text: str) -> bool:
    return text.isidentifier() and text.isascii() and not keyword.iskeyword(text)


def package_files(
    parts: Sequence[Part], package: str, version: str, included: Iterable[Path]
) -> dict[str, str | Path]:
    """Return the files of the packages by their names in the wheel.

    Raises ExportError if an included file is missing, or has the name of another file.
    """
    files: dict[str, str | Path] = {}
    if parts[0].package != package:
        files |= _outer_files(parts, package, version)
    for part in parts:
        files |= _files_of(part, version if part.package == package else "")
    files[f"{package}/py.typed"] = ""
    for path in included:
        name = f"{package}/{path.name}"
        if name in files:
            raise path_error(path, f"the package has a {path.name} already; rename it")
        if not path.is_file():
            raise path_error(path, "there is no such file, expected one for the package")
        files[name] = path
    return files


def _files_of(part: Part, version: str) -> dict[str, str | Path]:
    file = part.path.name
    line = f'__version__ = "{version}"\n' if version else ""
    code = _LOADER.format(
        file=file, quoted=json.dumps(file), names=_list(part.functions), version=line
    )
    stub = stub_of(part.path)
    if version:
        stub += "\n__version__: str\n"
    if not part.is_complete:
        stub += "\nimport typing as _typing\n\ndef __getattr__(name: str) -> _typing.Any: ...\n"
    return {
        f"{part.package}/__init__.py": code,
        f"{part.package}/__init__.pyi": stub,
        f"{part.package}/{file}": part.path,
    }


def _outer_files(parts: Sequence[Part], package: str, version: str) -> dict[str, str | Path]:
    names = sorted(part.package.rpartition("/")[2] for part in parts)
    files = ", ".join(part.path.name for part in parts)
    imports = "\n".join(f"from . import {name} as {name}" for name in names)
    code = _OUTER.format(files=files, imports=imports, version=version, names=_list(names))
    return {
        f"{package}/__init__.py": code,
        f"{package}/__init__.pyi": f"{imports}\n\n__version__: str\n",
    }


def _list(names: Sequence[str]) -> str:
    text = json.dumps(list(names))
    if len(text) < _MOST_COLUMNS - len("__all__ = "):
        return text
    return "\n".join(["[", *(f'    "{name}",' for name in names), "]"])


def describe(parts: Sequence[Part], name: str, description: str) -> str:
    """Return a long description in Markdown: the functions of each module."""
    lines = [f"# {name}", "", *([description, ""] if description else [])]
    for part in parts:
        file = os.path.basename(part.report.path)
        lines += [f"`import {part.module}` gives the functions of {file}:", ""]
        signatures = {function.name: function.signature for function in part.report.functions}
        lines += [f"- `{signatures.get(name) or name}`" for name in part.functions]
        lines.append("")
    return "\n".join(lines)
