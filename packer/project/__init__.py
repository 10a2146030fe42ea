"""packer.toml: a module tree, and the library that it becomes.

    [library]                  output, root, format, embed, target, entry, options, addons,
                               system_lib, c_symbol_prefix; all may be left out
    [module.NAME]              kind, imports, and what the kind takes:
        c cc cu                sources, functions, options
        llvm                   sources, functions, target
        static_library         sources, functions
        const_loader           constants, by_symbol
        safetensors            sources
        graph                  graph, params, name
        python                 factory
        cuda opencl hip ...    fmt, sources, functions; several cubins and PTX: a fatbin

Paths are relative to the file's folder. `packer init` writes a file with every key explained.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast, get_args

from runtime.error import near_names
from runtime.module import Module, preorder

from ..dialect import Dialect
from ..embed import Embed
from .inputs import Inputs
from .kinds import KINDS, make_module, weight_modules
from .sources import Functions, host_module, importing, source_of
from .table import Table

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

PROJECT_FILE = "packer.toml"
_LIBRARY_KEYS = (
    *("output", "root", "format", "embed", "target", "entry", "options", "addons"),
    *("system_lib", "c_symbol_prefix"),
)


class Project(NamedTuple):
    """A tree, and how it is to be exported.

    Attributes
    ----------
    root : Module
        The tree.
    inputs : Inputs
        Every file that it was made of.
    output : str or None
        Where the library goes.
    format, embed, target, entry, options, addons, system_lib, c_symbol_prefix
        As `packer.export_library` takes them.
    """

    root: Module
    inputs: Inputs
    output: str | None = None
    format: Dialect = "tvm"
    embed: Embed = "auto"
    target: str | None = None
    entry: str | None = None
    options: tuple[str, ...] = ()
    addons: tuple[Path, ...] = ()
    system_lib: bool = False
    c_symbol_prefix: str = ""

    def counts(self) -> tuple[int, int]:
        """How many functions of host code, and how many modules, the library will have."""
        modules = list(preorder(self.root))
        hosts = [module for module in modules if module.is_dso_exportable]
        functions = sum(len(module.function_names()) for module in hosts)
        return functions, len(modules) - len(hosts) + bool(hosts)


def read_project(path: str | os.PathLike[str] = PROJECT_FILE) -> Project:
    """Read a project file, and make its modules.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    Project
        Ready to be exported.

    Raises
    ------
    ExportError
        The file, or a file that it names, is not what it should be; says file, table and key.
    ToolchainError
        A kind of module needs a package that is not installed.
    """
    file = Table.of_file(path)
    file.only(("library", "module"))
    library = file.table("library")
    library.only(_LIBRARY_KEYS)
    tables = _module_tables(file)
    imports = {name: _imports(table, tables) for name, table in tables.items()}
    order = _order(file, imports)
    root = _root(file, library, imports)
    addons = library.files("addons")
    embed = library.choice("embed", get_args(Embed)) or "auto"
    dialect = library.choice("format", get_args(Dialect)) or "tvm"
    output = library.text("output")
    # From here on the tree is known to be one; now each module is made, its imports before it.
    modules: dict[str, Module] = {}
    for name in order:
        modules[name] = make_module(tables[name], [modules[other] for other in imports[name]])
    return Project(
        root=modules[root],
        inputs=file.inputs,
        output=None if output is None else library.path_of(output),
        format=cast(Dialect, dialect),
        embed=cast(Embed, embed),
        target=library.text("target"),
        entry=library.text("entry"),
        options=library.texts("options"),
        addons=addons,
        system_lib=library.flag("system_lib"),
        c_symbol_prefix=library.text("c_symbol_prefix") or "",
    )


def project_of_sources(
    paths: Iterable[str | os.PathLike[str]],
    functions: Functions,
    weights: Iterable[str | os.PathLike[str]] = (),
) -> Project:
    """Make the project of the simple case: files of host code, and the functions they define.

    Parameters
    ----------
    paths : iterable of path
        The host code.
    functions : mapping
        What it exports.
    weights : iterable of path
        Safetensors files, which the host code imports in this order. Without host code the first
        one is the root, and imports the others. One file at least, of either kind.

    Raises
    ------
    ExportError
        A file is not what it should be.
    """
    inputs = Inputs()
    sources = [source_of(inputs.add(path)) for path in paths]
    modules = [host_module(sources, functions)] if sources else []
    modules += weight_modules([inputs.add(path) for path in weights])
    return Project(root=importing(modules), inputs=inputs)


def _module_tables(file: Table) -> dict[str, Table]:
    modules = file.table("module")
    tables = {name: modules.table(name) for name in modules}
    if not tables:
        raise file.error("has no [module.NAME] table, expected at least one")
    for table in tables.values():
        kind = table.needed_text("kind")
        if kind not in KINDS:
            raise table.error(f"unknown kind {kind!r}{near_names(kind, list(KINDS))}", "kind")
        table.only(("kind", "imports", *KINDS[kind].keys))
    return tables


def _imports(table: Table, tables: dict[str, Table]) -> tuple[str, ...]:
    names = table.texts("imports")
    for name in names:
        if name not in tables:
            text = f"there is no module {name!r}{near_names(name, list(tables))}"
            raise table.error(text, "imports")
    return names


def _order(file: Table, imports: dict[str, tuple[str, ...]]) -> list[str]:
    """All modules, each behind its imports."""
    from graphlib import CycleError, TopologicalSorter

    try:
        return list(TopologicalSorter(imports).static_order())
    except CycleError as error:
        names = " -> ".join(reversed(error.args[1]))
        raise file.error(f"imports go in a circle: {names}") from None


def _root(file: Table, library: Table, imports: dict[str, tuple[str, ...]]) -> str:
    """The module that the tree begins with; whatever it does not reach would be dropped."""
    imported = {name for names in imports.values() for name in names}
    tops = [name for name in imports if name not in imported]
    root = library.text("root")
    if root is None:
        if len(tops) > 1:
            text = f"nobody imports {', '.join(map(repr, tops))}, so which is the root? name it"
            raise library.error(text, "root")
        return tops[0]
    if root not in imports:
        text = f"there is no module {root!r}{near_names(root, list(imports))}"
        raise library.error(text, "root")
    reached = set(_reached(root, imports))
    if lost := [repr(name) for name in imports if name not in reached]:
        text = f"the root {root!r} does not reach {', '.join(lost)}: import or remove what is left"
        raise file.error(text)
    return root


def _reached(root: str, imports: dict[str, tuple[str, ...]]) -> Iterator[str]:
    pending, seen = [root], {root}
    while pending:
        yield (name := pending.pop())
        pending += [other for other in imports[name] if other not in seen]
        seen.update(imports[name])
