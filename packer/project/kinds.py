"""The kinds of modules in packer.toml: the keys of each, and the function that makes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from runtime.error import ExportError
from runtime.module import Module
from runtime.modules.device import LAYOUTS, DeviceModule, FunctionInfo

from ..declare.c_type import PACKED
from ..declare.declaration import AUTO, EVERY
from ..declare.options import KEYS
from ..modules.c_source import compiler_options
from .inputs import read_bytes
from .sources import COMPILED, Functions, Headers, Source, host_module, importing
from .table import Table


class Kind(NamedTuple):
    """One kind: its keys beside ``kind`` and ``imports``, and the function for a table of it."""

    keys: tuple[str, ...]
    make: Callable[[Table], Module]


def make_module(kind: Kind, table: Table, imports: Sequence[Module]) -> Module:
    """Make the module that a table of a kind describes, and add its imports."""
    try:
        module = kind.make(table)
        for imported in imports:
            module.import_module(imported)
    except ValueError as error:  # an ExportError is one
        raise table.placed(error) from error
    return module


def weight_modules(paths: Iterable[Path]) -> list[Module]:
    """Make one module for each safetensors file."""
    if not (paths := list(paths)):
        return []
    from runtime.modules.safetensors import SafetensorsModule

    return [SafetensorsModule(path) for path in paths]


def _host(table: Table) -> Module:
    kind = table.needed_text("kind")
    functions, headers = _functions(table)
    sources = [Source(path, kind) for path in table.files("sources")]
    if levels := _levels(table):
        sources.append(Source(next(iter(levels.values())), kind, levels))
    if not (sources or headers):
        table.needed_files("sources")  # raises
    options = compiler_options(
        table.folders("include"), table.texts("define"), table.texts("options")
    )
    return host_module(
        sources,
        functions,
        options=options,
        llvm=_llvm_arguments(table) if kind == "llvm" else {},
        libraries=table.texts("libraries"),
        headers=headers,
        constants=table.texts("constants"),
    )


def _levels(table: Table) -> dict[str, Path]:
    """Read the file for each CPU level of a library that comes per level."""
    files = table.table("levels")
    return {level: files.file(level, files.needed_text(level)) for level in files}


def _llvm_arguments(table: Table) -> dict[str, Any]:
    names = ("target", "cpu", "features")
    found = {name: text for name in names if (text := table.text(name)) is not None}
    opt = table.plain("opt")
    return found if opt is None else {**found, "opt": opt}


def _functions(table: Table) -> tuple[Functions | Literal["auto"], Headers | None]:
    """Read the functions: a table, which may name headers, or ``"auto"``."""
    if not table.is_table("functions") and table.text("functions") is not None:
        table.choice("functions", ("auto",))
        return "auto", None
    functions = table.table("functions")
    headers = _headers(functions)
    keys: tuple[str, ...] = ()
    if headers is not None:
        lists = {"only": headers.only, "header_filter": headers.filter}
        keys = ("header", *(key for key, value in lists.items() if value))
    names = [name for name in functions if name not in keys]
    return {name: _declaration(functions, name, headers) for name in names}, headers


def _headers(functions: Table) -> Headers | None:
    """Read ``header``, unless that is the name of a function with its declaration."""
    given = functions.plain("header")
    if isinstance(given, list):
        paths = functions.needed_files("header")
    elif isinstance(given, str) and given.startswith("pkg-config:"):
        paths = (Path(given),)
    elif isinstance(given, str) and "(" not in given and given not in (AUTO, PACKED):
        paths = (functions.file("header", given),)
    else:
        return None
    only = functions.texts("only") if isinstance(functions.plain("only"), list) else ()
    key = "header_filter"
    patterns = functions.texts(key) if isinstance(functions.plain(key), list) else ()
    return Headers(paths, only, patterns)


def _declaration(functions: Table, name: str, headers: Headers | None) -> Any:
    if functions.plain(name) is False and (headers or functions.plain(EVERY) == AUTO):
        return False
    if not functions.is_table(name):
        return functions.needed_text(name)
    function = functions.table(name)
    function.only(KEYS)
    function.choice("gil", ("release", "keep"))
    return functions.plain(name)


def _device(table: Table) -> Module:
    from .kernels import declared_kernels

    paths = table.needed_files("sources")
    kind = table.needed_text("kind")
    kernels: Iterable[FunctionInfo] | Mapping[str, FunctionInfo]
    kernels = declared_kernels(table.table("functions")) or _read_kernels(table, paths)
    if len(paths) > 1 and kind == "cuda":
        return DeviceModule(kind, _fatbin(table, paths), "fatbin", kernels)
    if len(paths) > 1:
        raise table.error(f"expected one file, found {len(paths)}", "sources")
    fmt = table.text("fmt") or paths[0].suffix.removeprefix(".")
    return DeviceModule(kind, read_bytes(paths[0]), fmt, kernels)


def _read_kernels(table: Table, paths: Sequence[Path]) -> Mapping[str, FunctionInfo]:
    from .kernels import read_kernels

    kernels = read_kernels(paths, table.needed_text("kind"))
    if kernels.reasons:
        note = kernels.note(table.name.removeprefix("module."))
        table.note(f"{paths[0].name}: {note}", "sources")
    return kernels.functions


def _fatbin(table: Table, paths: Sequence[Path]) -> bytes:
    """Join images of the same kernels for different devices."""
    from ..fatbin import create_fatbin

    try:
        return create_fatbin(read_bytes(path) for path in paths)
    except ExportError as error:
        raise table.error(error.message, "sources") from error


def _const_loader(table: Table) -> Module:
    from runtime.modules.const_loader import ConstLoaderModule

    from .arrays import read_array

    files, by_symbol = table.table("constants"), table.table("by_symbol")
    constants = {name: files.file(name, files.needed_text(name)) for name in files}
    symbols = {symbol: by_symbol.texts(symbol) for symbol in by_symbol}
    try:
        arrays = {name: read_array(path) for name, path in constants.items()}
        return ConstLoaderModule(arrays, symbols)
    except TypeError as error:
        raise table.error(str(error), "constants") from error


def _safetensors(table: Table) -> Module:
    return importing(weight_modules(table.needed_files("sources")))


def _graph(table: Table) -> Module:
    from .graph import graph_module

    return graph_module(table)


def _python(table: Table) -> Module:
    from .factory import call_factory

    file, _, name = table.needed_text("factory").rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        found = table.needed_text("factory")
        raise table.error(f"expected 'FILE.py:FUNCTION', found {found!r}", "factory")
    return call_factory(table.file("factory", file), name)


_DEVICE = ("sources", "functions")
_HOST = (*_DEVICE, "libraries")
KINDS = {
    **dict.fromkeys(COMPILED, Kind((*_HOST, "include", "define", "options", "constants"), _host)),
    "llvm": Kind((*_HOST, "target", "cpu", "features", "opt"), _host),
    "static_library": Kind((*_HOST, "levels"), _host),
    "const_loader": Kind(("constants", "by_symbol"), _const_loader),
    "safetensors": Kind(("sources",), _safetensors),
    "graph": Kind(("graph", "params", "name"), _graph),
    "python": Kind(("factory",), _python),
    **dict.fromkeys(LAYOUTS, Kind(("fmt", *_DEVICE), _device)),
}
