"""extract_library(): every payload of a library as a file, and a packer.toml that packs them again.

Host code cannot be extracted as source: an empty host.c takes its place.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.error import PackerError
from runtime.module import Module, preorder
from runtime.serial.library_metadata import KNOWN

from ...files.output import reporting
from ...files.text import path_error, shown_path
from ...toolchain.soname import is_file_name
from .. import open_library
from ..tree import payload_of
from .names import Names
from .parts import Part, part_of
from .toml import key, quoted, quoted_list, value

if TYPE_CHECKING:
    from .. import LibraryReport, OpenedLibrary
    from ..report import FunctionReport

__all__ = ["extract_library"]

PROJECT, FACTORIES, HOST = "packer.toml", "modules.py", "host.c"

_HOST_CODE = b"""\
// The host code of the library cannot be extracted as source: put it here, and declare its
// functions in packer.toml. Until then this file takes its place in the tree.
typedef int host_code_is_not_here;
"""

_FACTORIES_HEAD = '''\
"""The modules that packer.toml cannot describe; written by packer extract."""

from pathlib import Path

import runtime


def read(name):
    return (Path(__file__).parent / name).read_bytes()
'''


def extract_library(
    path: str | os.PathLike[str], output: str | os.PathLike[str], *, force: bool = False
) -> list[Path]:
    """Write the payloads of a library as files, with a packer.toml that packs them again.

    The library is read, never executed.

    Parameters
    ----------
    path : path
        The library.
    output : path
        A folder, created if it does not exist. All files are written directly into it, under safe
        names.
    force : bool
        True to replace existing files.

    Returns
    -------
    list of Path
        The files, packer.toml last.

    Raises
    ------
    LibraryLoadError
        If the file is not an ELF library.
    PackerError
        If it contains no tree that can be read.
    ExportError
        If a file cannot be written. Without `force` also if one exists; then nothing is written.

    Notes
    -----
    A library without host code packs again to the same bytes. With host code the blob has the
    same bytes, once the source is added.

    Examples
    --------
    >>> from packer.inspect.extract import extract_library
    >>> [file.name for file in extract_library("model.so", "model")]  # doctest: +SKIP
    ['cuda.ptx', 'host.c', 'packer.toml']
    """
    opened = open_library(path)
    files = _files(opened)
    folder = Path(output)
    with reporting(folder, "create the folder"):
        folder.mkdir(exist_ok=True)
    paths = {folder / name: data for name, data in files.items()}
    if not force:
        _refuse_existing(paths)
    for file, data in paths.items():
        _write(file, data)
    return list(paths)


def _files(opened: OpenedLibrary) -> dict[str, Sequence[bytes | memoryview]]:
    """Return the contents of the files by name, packer.toml last."""
    root = _root(opened)
    names = Names((PROJECT, FACTORIES, HOST))
    modules = list(preorder(root))
    keys = [module.type_key if module.type_key != "library" else "host" for module in modules]
    known = {id(m): names.of_module(key) for m, key in zip(modules, keys, strict=True)}
    payloads = _payloads(opened)
    parts = {
        known[id(module)]: part_of(module, *payloads[id(module)], known[id(module)], names)
        for module in modules
        if id(module) in payloads
    }
    files = {name: data for part in parts.values() for name, data in part.files.items()}
    if len(parts) < len(modules):
        files[HOST] = [_HOST_CODE]
    factories = {name: p.expression for name, p in parts.items() if p.expression is not None}
    if factories:
        files[FACTORIES] = [_factories(factories).encode()]
    imports = {known[id(m)]: [known[id(i)] for i in m.imported_modules] for m in modules}
    text = "\n".join(_project(opened.report, parts, imports))
    files[PROJECT] = [text.encode()]
    return files


def _root(opened: OpenedLibrary) -> Module:
    report = opened.report
    if opened.parsed is not None and opened.root is not None:
        return opened.root
    what = next(iter(report.problems), "it contains no blob")
    raise PackerError(f"{report.path}: {what}, so there is nothing to extract")


def _payloads(opened: OpenedLibrary) -> dict[int, tuple[str, memoryview]]:
    """Return key and payload of each module, by its identity; the host code has none."""
    assert opened.parsed is not None
    entries = [entry for entry in opened.parsed.entries if entry.module is not None]
    return {id(e.module): (e.key, payload_of(e, opened.body)) for e in entries}


def _factories(expressions: Mapping[str, str]) -> str:
    functions = (f"\n\ndef make_{n}():\n    return {e}\n" for n, e in expressions.items())
    return _FACTORIES_HEAD + "".join(functions)


def _project(
    report: LibraryReport, parts: Mapping[str, Part], imports: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    yield f"# Extracted from {shown_path(report.path)}; `packer export model.so` packs it again."
    if len(parts) < len(imports):
        yield "# Host code cannot be extracted as source: an empty host.c takes its place."
    yield "\n[library]"
    yield f"root = {quoted(next(iter(imports)))}"
    if report.dialect == "tvm-ffi":
        yield 'format = "tvm-ffi"'
    yield from _description(report)
    if report.entry is not None:
        yield f"# entry = {quoted(report.entry)}"
    for name, imported in imports.items():
        yield f"\n[module.{name}]"
        part = parts.get(name)
        if part is None:
            yield f'kind = "c"\nsources = ["{HOST}"]'
        elif part.expression is not None:
            yield f'kind = "python"\nfactory = "{FACTORIES}:make_{name}"'
        else:
            yield from part.keys
        if imported:
            yield f"imports = {quoted_list(imported)}"
        yield from part.tables if part is not None else _host_functions(name, report.functions)
    yield ""


def _description(report: LibraryReport) -> Iterator[str]:
    """Return the keys of the metadata and the SONAME."""
    others = {name: item for name, item in report.metadata.items() if name not in KNOWN}
    for name in KNOWN:
        if name in report.metadata:
            yield f"{name} = {quoted(report.metadata[name])}"
    if others:
        yield f"metadata = {value(others)}"
    if (soname := report.linkage.soname) is not None and is_file_name(soname):
        yield f"soname = {quoted(soname)}"


def _host_functions(name: str, functions: Sequence[FunctionReport]) -> Iterator[str]:
    """Return the declarations of the host code's functions, as comments."""
    declared = [function for function in functions if function.signature is not None]
    if declared:
        yield f"# [module.{name}.functions]"
    for function in declared:
        assert function.signature is not None
        head, _, rest = function.signature.partition("(")
        fields = [f"declaration = {quoted(f'{head.removesuffix(function.name).rstrip()}({rest}')}"]
        fields += [f"doc = {quoted(function.doc)}"] if function.doc else []
        fields += [f"gil = {quoted(function.gil)}"] if function.gil == "keep" else []
        yield f"# {key(function.name)} = {{ {', '.join(fields)} }}"


# ---- the file system


def _refuse_existing(paths: Mapping[Path, object]) -> None:
    for path in paths:
        if os.path.lexists(path):
            raise path_error(path, "exists; use --force (force=True) to replace it")


def _write(path: Path, chunks: Sequence[bytes | memoryview]) -> None:
    """Write a new file; an existing file or link of this name is removed, not followed."""
    with reporting(path):
        path.unlink(missing_ok=True)
        with path.open("xb") as file:
            for chunk in chunks:
                file.write(chunk)
