"""packer.toml: a tree of modules, and how to export it.

    [library]                  output, root, format, embed, target, entry, options,
                               allow_undefined, addons, system_lib, c_symbol_prefix, visibility,
                               cpu, soname, version, license, metadata, legacy_calls, encrypt,
                               encrypt_key; all are optional
    [module.NAME]              kind, imports, and the keys of the kind:
        c cc cu                sources, functions, include, define, libraries, options,
                               constants
        llvm                   sources, functions, libraries, target, cpu, features, opt
        static_library         sources, functions, libraries, levels
        const_loader           constants, by_symbol
        safetensors            sources
        onnx torch numba ...   model or sources, and the settings of the importer
        graph                  graph, params, name
        python                 factory
        cuda opencl hip ...    fmt, sources, functions; several cubins or PTX: a fatbin

Paths are relative to the file's folder, in which compilers run. Sources may be patterns: ``*.c``,
``src/**/*.c``. `packer init` writes a file with every key explained.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from runtime.error import ExportError, near_names
from runtime.module import Module, preorder
from runtime.serial.library_metadata import KNOWN
from runtime.trust.encryption.keys import ENVIRONMENT, TOKEN

from ..declare.declaration import AUTO, EVERY
from ..dialect import Dialect
from ..embed import Embed
from ..files.progress import Progress, silent
from ..modules.host import HostModule
from ..records import metadata_bytes
from ..toolchain.build import building
from ..toolchain.visibility import VISIBILITIES, Visibility
from .inputs import Inputs
from .kinds import make_module, weight_modules
from .registry import kind_of_table
from .root import find_root
from .sources import Functions, Headers, host_module, importing, is_device_code, source_of
from .table import Table

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from .imported import ImportedSource

PROJECT_FILE = "packer.toml"


class Project(NamedTuple):
    """A tree of modules, and the options of its export.

    Attributes
    ----------
    root : Module
        The root of the tree.
    inputs : Inputs
        Every file that was read.
    folder : Path or None
        The folder of the project file; None for files alone.
    output : str or None
        The library to write.
    format, embed, target, entry, options, addons, system_lib, c_symbol_prefix, visibility, cpu
        As `packer.export_library` takes them.
    soname, metadata, legacy_calls
        Likewise; version and license are in the metadata.
    allow_undefined
        The patterns of ``--allow-undefined``.
    encrypt, encrypt_key
        The parts and the key for `packer.encrypting`.
    """

    root: Module
    inputs: Inputs
    folder: Path | None = None
    output: str | None = None
    format: Dialect = "tvm"
    embed: Embed = "auto"
    target: str | None = None
    entry: str | None = None
    options: tuple[str, ...] = ()
    allow_undefined: tuple[str, ...] = ()
    addons: tuple[Path, ...] = ()
    system_lib: bool = False
    c_symbol_prefix: str = ""
    visibility: Visibility = "default"
    soname: str | None = None
    metadata: Mapping[str, Any] = MappingProxyType({})
    cpu: tuple[str, ...] = ()
    legacy_calls: bool = False
    encrypt: tuple[str, ...] = ()
    encrypt_key: str | None = None

    def counts(self) -> tuple[int, int]:
        """Return the numbers of host functions and of modules that the library will have."""
        modules = list(preorder(self.root))
        hosts = [module for module in modules if module.is_dso_exportable]
        functions = sum(len(module.function_names()) for module in hosts)
        return functions, len(modules) - len(hosts) + bool(hosts)

    def count_constants(self) -> int:
        """Return how many constants and variables the library will have."""
        hosts = [module for module in preorder(self.root) if isinstance(module, HostModule)]
        return len({n for host in hosts for n in (*host.c_constants.values, *host.c_globals)})

    def left_out(self) -> dict[str, str]:
        """Return what was found and cannot be exported, each with the reason."""
        found: dict[str, str] = {}
        for module in preorder(self.root):
            found.update({**getattr(module, "left_out", {}), **getattr(module, "c_left_out", {})})
        return found


LIBRARY_KEYS = (*(field for field in Project._fields if field not in ("inputs", "folder")), *KNOWN)


def read_project(
    path: str | os.PathLike[str] = PROJECT_FILE, progress: Progress = silent
) -> Project:
    """Read a project file, and make its modules.

    Parameters
    ----------
    path : path
        The file.
    progress : callable
        Gets the steps of imports.

    Returns
    -------
    Project
        The tree and the options of its export.

    Raises
    ------
    ExportError
        If the file or a file that it names is invalid; names file, table and key.
    ToolchainError
        If a module needs a package that is not installed.
    """
    file = Table.of_file(path, progress)
    file.only(("library", "module"))
    library = file.table("library")
    library.only(LIBRARY_KEYS)
    tables = _module_tables(file)
    imports = {name: _imports(table, tables) for name, table in tables.items()}
    order = _order(file, imports)
    root = find_root(file, library, imports)
    options = _options(library)
    # From here on the tables are known to form one tree. Each module is made after its imports.
    modules: dict[str, Module] = {}
    with building(folder := Path(path).parent):  # the compiler reads sources and headers
        for name in order:
            table, others = tables[name], [modules[other] for other in imports[name]]
            modules[name] = make_module(kind_of_table(table), table, others)
    return Project(modules[root], file.inputs, folder, **options)


def project_of_sources(
    paths: Iterable[str | os.PathLike[str]],
    functions: Functions | Literal["auto"] = "auto",
    weights: Iterable[str | os.PathLike[str]] = (),
    options: Sequence[str] = (),
    *,
    headers: Sequence[str | os.PathLike[str]] = (),
    header_filter: Sequence[str] = (),
    constants: Sequence[str] = (),
    model: ImportedSource | None = None,
    progress: Progress = silent,
) -> Project:
    """Make a project of files alone: a model, host code with its functions, and weights.

    The host code imports the device code, and the safetensors files `weights` in this order;
    without host code the first of these is the root and imports the others. `functions` has the
    functions to export, by default all that C and C++ files define. With `headers`, which declare
    them, it has changes, and the functions to export alone, as ``"auto"``. `constants` and
    `header_filter` are as for `from_header`. The module of `model`
    imports all other modules; `progress` gets the steps of its import. Raises ExportError if a file
    is invalid.
    """
    inputs = Inputs(progress)
    files = [inputs.add(path) for path in paths]
    device = [path for path in files if is_device_code(path)]
    sources = [source_of(path) for path in files if path not in device]
    modules = [] if model is None else [model.module(inputs)]
    if headers:
        given = {} if functions == AUTO else functions
        chosen = tuple(name for name, declaration in given.items() if _is_found(declaration))
        added = tuple(inputs.add(path) for path in headers)
        declared = Headers(added, () if EVERY in chosen else chosen, tuple(header_filter))
        changes = {name: own for name, own in given.items() if own != AUTO}
        made = host_module(sources, changes, options=options, headers=declared, constants=constants)
        modules.append(made)
    elif sources:
        modules.append(host_module(sources, functions, options=options, constants=constants))
    if device:
        from .kernels import device_module

        modules += [device_module(path, inputs) for path in device]
    modules += weight_modules([inputs.add(path) for path in weights])
    return Project(root=importing(modules), inputs=inputs)


def _is_found(declaration: Any) -> bool:
    """Return True if the header has the type of a function."""
    has_options = isinstance(declaration, Mapping) and "declaration" not in declaration
    return declaration == AUTO or has_options


def _options(library: Table) -> dict[str, Any]:
    """Read the options of the export."""
    output = library.text("output")
    return {
        "output": None if output is None else library.path_of(output),
        "format": library.choice("format", get_args(Dialect)) or "tvm",
        "embed": library.choice("embed", get_args(Embed)) or "auto",
        "target": library.text("target"),
        "entry": library.text("entry"),
        "options": library.texts("options"),
        "allow_undefined": library.texts("allow_undefined"),
        "addons": library.files("addons"),
        "system_lib": library.flag("system_lib"),
        "c_symbol_prefix": library.text("c_symbol_prefix") or "",
        "visibility": library.choice("visibility", VISIBILITIES) or "default",
        "soname": library.text("soname"),
        "metadata": _metadata(library),
        "cpu": (text,) if isinstance(text := library.plain("cpu"), str) else library.texts("cpu"),
        "legacy_calls": library.flag("legacy_calls"),
        "encrypt": library.texts("encrypt"),
        "encrypt_key": _key(library),
    }


def _key(library: Table) -> str | None:
    """Read where the key is, which encrypts modules: a file, a variable or a token."""
    key = library.text("encrypt_key")
    if key is None:
        if library.texts("encrypt"):
            raise library.error("expected encrypt_key beside it", "encrypt")
        return None
    return key if key.startswith((ENVIRONMENT, TOKEN)) else library.path_of(key)


def _metadata(library: Table) -> dict[str, Any]:
    """Read version, license and further metadata, and check them as an export does."""
    further = library.table("metadata")
    known = {name: text for name in KNOWN if (text := library.text(name)) is not None}
    for name in KNOWN:
        if further.plain(name) is not None:
            raise further.error(f"expected {name} in [library], not in its metadata", name)
    metadata = {**known, **{name: further.plain(name) for name in further}}
    try:
        metadata_bytes(metadata)
    except ExportError as error:
        raise library.placed(error) from None
    return metadata


def _module_tables(file: Table) -> dict[str, Table]:
    modules = file.table("module")
    tables = {name: modules.table(name) for name in modules}
    if not tables:
        raise file.error("has no [module.NAME] table, expected at least one")
    for table in tables.values():
        table.only(("kind", "imports", *kind_of_table(table).keys))
    return tables


def _imports(table: Table, tables: dict[str, Table]) -> tuple[str, ...]:
    names = table.texts("imports")
    for name in names:
        if name not in tables:
            text = f"there is no module {name!r}{near_names(name, list(tables))}"
            raise table.error(text, "imports")
    return names


def _order(file: Table, imports: dict[str, tuple[str, ...]]) -> list[str]:
    """Return the names of all modules, each after its imports."""
    from graphlib import CycleError, TopologicalSorter

    try:
        return list(TopologicalSorter(imports).static_order())
    except CycleError as error:
        names = " -> ".join(reversed(error.args[1]))
        raise file.error(f"circular imports: {names}") from None
