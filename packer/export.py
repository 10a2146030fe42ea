"""export_library(module, path): export a module tree to one library, in one straight line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.abi import CONTEXT_SYMBOLS, FUNCTION_PREFIX
from runtime.blob import dump
from runtime.error import ExportError
from runtime.module import Module
from runtime.serial.serializer import merge_host_code
from runtime.serial.stream import FileRange

from .declare.glue import Glue
from .dialect import Dialect, Naming, unread_by_tvm
from .embed import find_embedders
from .files.arguments import list_of
from .files.chunks import with_header
from .files.output import refuse_output_among_inputs, replacing
from .files.progress import Progress, made_of, output_of, silent, sources_of
from .host_code import (
    functions_with_constants,
    library_options,
    ready_functions,
    save,
    save_glue,
    share_variables,
)
from .levels.asked import choose_levels
from .link import Code, Link, code_file, embed_and_link, write_data
from .modules.host import CodeFile, HostModule, as_host_module
from .output import Build, Output, given
from .prelinked import find_prelinked, write_copy
from .records import Contents, check_records, embedded, records_of
from .target import find_target
from .toolchain.build import building
from .toolchain.cross_linker import find_linker
from .toolchain.soname import soname_options, verify_soname
from .toolchain.undefined import check_undefined, split_allowed
from .toolchain.verify import refuse_undefined, verify_output
from .toolchain.visibility import check_visibility, exporting_only

if TYPE_CHECKING:
    from collections.abc import Collection

    from runtime.serial.stream import Chunk

    from .declare.declaration import Declaration
    from .embed import Symbols
    from .toolchain.formats import OutputFormat
    from .toolchain.linker import Fcompile

PackImports = Callable[[Module, bool, str, str], "str | os.PathLike[str]"]


def export_library(
    module: Module,
    path: str | os.PathLike[str],
    *,
    output: Output | None = None,
    build: Build | None = None,
    format: Dialect = "tvm",
    entry: str | None = None,
    fcompile: Fcompile | None = None,
    fpack_imports: PackImports | None = None,
    system_lib: bool = False,
    c_symbol_prefix: str = "",
    addons: Sequence[str | os.PathLike[str]] = (),
    workspace_dir: str | os.PathLike[str] | None = None,
    options: Sequence[str] = (),
    progress: Progress | None = None,
) -> Path:
    """Export a module tree to one shared library.

    Parameters
    ----------
    module : Module
        The root. Host code anywhere in the tree is compiled and merged; every other module is
        serialised into the blob.
    path : path
        The file to write: a shared library; by the suffix an object (``.o``), an archive
        (``.a``), or a tar of the inputs of a later link (``.tar``; see `link_library`). A rename
        replaces the file at the very end; if the export fails, the file stays as it was.
    output : Output, optional
        What the library has beside code and tree: its soname, metadata, a bill of materials.
    build : Build, optional
        How it is compiled and linked: the target, CPU levels, where compilers run.
    format : {"tvm", "tvm-ffi"}
        The dialect of the blob: which loaders see the tree (README). The functions are the same.
    entry : str, optional
        The declared function that ``runtime.load(path)(...)`` calls.
    fcompile : callable, optional
        Compiles and links instead of the default toolchain: ``fcompile(output, files,
        options=[...])``, as in TVM; for example `create_shared` or `cross_compiler(...)`.
    fpack_imports : callable, optional
        Packs the imports instead of an embedder: ``fpack_imports(module, system_lib,
        c_symbol_prefix, workspace_dir)`` returns the file to link, as in TVM.
    system_lib : bool
        True if a constructor registers all symbols for static linking (`runtime.system_lib`; in C
        ``dso_packer_system_lib.h``), by TVM's function: TVMBackendRegisterSystemLibSymbol, in
        dialect tvm-ffi TVMFFIEnvModRegisterSystemLibSymbol.
    c_symbol_prefix : str
        The beginning of every symbol's name, so that one program can contain several models;
        only with `system_lib`.
    addons : sequence of path
        Further objects or libraries to link.
    workspace_dir : path, optional
        A folder in which a new folder keeps the intermediate files; by default they are removed.
    options : sequence of str
        Further options for the linker driver. ``"--allow-undefined"``, and with a pattern
        ``"--allow-undefined=cu*"``, allow symbols that the process provides (docs/linking.md).
    progress : callable, optional
        Called with the name of each step as it begins. Its method ``bytes``, if there is one, is
        called with (bytes done, bytes in all) while the blob is copied. Its method ``output``, if
        there is one, is called with the warnings of compilers, which otherwise go to stderr. Its
        method ``sources``, if there is one, is called as compilers end: with how many sources have
        their objects, how many there are, and how many objects the cache had.

    Returns
    -------
    Path
        `path`.

    Raises
    ------
    ExportError
        If the tree cannot be exported (the message names the module), if the output cannot be
        written, or if an argument is one str instead of a list.
    ToolchainError
        If a compiler is missing, fails, or is another one in a worker; if its output is wrong.
    ValueError
        If `format`, the visibility or the way to embed is unknown.

    Notes
    -----
    The same tree gives the same bytes, in any folder and at any time. Callers' lists are never
    changed. Another process that loads `path` meanwhile sees the old file or the new one.

    Examples
    --------
    ::

        output = packer.Output(soname="libmodel.so.1", metadata={"version": "1.2"})
        build = packer.Build(cpu=["x86-64-v2", "x86-64-v3"])
        packer.export_library(module, "libmodel.so", output=output, build=build)
    """
    step, path = progress or silent, Path(path)
    output, build = given(output, Output), given(build, Build)
    naming = Naming(format, system_lib, c_symbol_prefix, output.legacy_calls)
    options, allowed = split_allowed(list_of(options, "options"))
    addons = list_of(addons, "addons")
    made, linker = find_linker(path, fcompile, build.target)
    check_output(output, path, made, naming)
    can_place, is_packed = made.is_linked and not system_lib, fpack_imports is not None
    embedders = find_embedders(build.embed, can_place=can_place, is_packed=is_packed)
    step("collect")
    blob, modules = merge_host_code(module, dialect=format)
    hosts = [as_host_module(host) for host in modules]
    share_variables(hosts)
    declared_functions(hosts, entry)
    # From here on every module is host code or part of the blob: none is dropped.
    choices = (entry, fcompile, fpack_imports, system_lib, addons, options, allowed)
    needs_link = any(choices) or (format, made.suffix) != ("tvm", "so") or not blob.entries
    library = None if needs_link else find_prelinked(module, hosts, output, build)
    step("serialize")
    chunks = with_header(dump(blob)) if blob.entries and not is_packed else []
    refuse_output_among_inputs(path, input_paths(hosts, addons, chunks))
    # From here on the bytes are final; nothing is written yet.
    with (
        building(build.cwd, build.jobs, output_of(step), sources_of(step), build.executor) as tools,
        replacing(path, workspace_dir) as workspace,
    ):
        if library is not None:
            write_copy(library, blob, chunks, workspace, step)
            step("commit")
            workspace.commit()
            return path
        step("save")
        tools.names[str(workspace.output)] = str(path)
        has_code = bool(hosts or addons or options or fcompile or fpack_imports)
        triple = linker.triple(build.target, may_be_missing=not has_code)
        target = find_target(triple)
        levels, notes = choose_levels(build.cpu, target, module, hosts, linker)
        options = [*options, *library_options(hosts, made, allowed)]
        link = Link(linker, target, naming, workspace.directory, options, addons, levels)
        for note in (*unread_by_tvm(module, format), *notes):
            tools.show(f"packer: note: {note}")
        files = save(hosts, link, step)
        functions = declared_functions(hosts, entry)
        contents = Contents(path, output, made, blob, chunks, hosts, files, functions, link, triple)
        glue, symbols, files = write_glue(contents, entry, functions_with_constants(module))
        required = [naming.checksums, *glue.symbols] if hosts else []
        if fpack_imports is not None:
            own = fpack_imports(module, system_lib, c_symbol_prefix, str(workspace.directory))
            files.append(code_file(own))
        if has_code or (write_library := embedders[0].write_library) is None:
            link.code = code_of(contents, files, glue, [*required, *symbols])
            linked = embed_and_link(link, symbols, embedders, workspace, step)
        else:
            linked = write_data(write_library, symbols, contents, workspace, step)
        step("verify")
        result = made.read_back(workspace.output, triple)
        verify_output(workspace.output, result, required, symbols, linked)
        verify_soname(workspace.output, output.soname)
        refuse_undefined(result, defined_names(functions, c_symbol_prefix), link.explain)
        check_undefined(result, link.linked(path, allowed))
        made_of(step)(workspace.output)
        # From here on the library is known to be correct.
        step("commit")
        workspace.commit(is_program=made.is_linked)
    return path


def declared_functions(hosts: Sequence[HostModule], entry: str | None) -> list[Declaration]:
    """Return the declared functions of all host code, which a library defines once each.

    Raises ExportError if two modules declare a function, or if none declares the entry.
    """
    owners: dict[str, HostModule] = {}
    for host in hosts:
        for declaration in host.functions:
            other = owners.setdefault(declaration.name, host)
            if other is not host:
                text = f"{declaration.name}: declared by {other!r} and by {host!r}, expected once"
                raise ExportError(text, module=host.type_key)
    if entry is not None and entry not in owners:
        text = (
            f"entry {entry!r} is not declared; declared: {', '.join(sorted(owners)) or 'nothing'}"
        )
        raise ExportError(text)
    if "main" in owners and entry != "main":
        text = "main: reserved for the entry function; export with entry='main', or rename it"
        raise ExportError(text, module=owners["main"].type_key)
    return [declaration for host in hosts for declaration in host.functions]


def input_paths(
    hosts: Sequence[HostModule], addons: Sequence[str | os.PathLike[str]], chunks: Sequence[Chunk]
) -> list[str | os.PathLike[str]]:
    """Return the files that become part of a library."""
    paths = [path for host in hosts for path in host.input_files()]
    ranges = [chunk.path for chunk in chunks if isinstance(chunk, FileRange)]
    return [*paths, *addons, *ranges]


def check_output(output: Output, path: Path, output_format: OutputFormat, naming: Naming) -> None:
    """Refuse what an output of this format cannot have, before anything is made.

    Raises ValueError if the visibility is unknown. Raises ExportError if something else is not
    possible; the message names it.
    """
    check_visibility(output.visibility, path, output_format)
    soname_options(output.soname, path, output_format)
    check_records(output, path, output_format.suffix, naming.system_lib)


def write_glue(
    contents: Contents, entry: str | None, constants: Collection[str]
) -> tuple[Glue, Symbols, list[CodeFile]]:
    """Make the records and the glue; return it, the bytes to embed, and all code of the library."""
    records = records_of(contents)
    files = [*contents.files, *(file for record in records for file in record.files)]
    glue = Glue(
        contents.functions,
        entry,
        contents.link.naming,
        contents.link.target.machine.char,
        {record.symbol: record.data.decode() for record in records if record.is_glue},
        constants,
        ready_functions(files) if contents.link.naming.system_lib else (),
    )
    symbols, checksums = embedded(contents, records, glue)
    if contents.hosts:
        files.append(save_glue(contents.link.folder, glue.source(checksums), files))
    return glue, symbols, files


def code_of(contents: Contents, files: list[CodeFile], glue: Glue, data: Iterable[str]) -> Code:
    """Return what is linked; `data` are the symbols that no visibility hides."""
    functions, output, link = contents.functions, contents.output, contents.link
    words = soname_options(output.soname, contents.path, contents.output_format)
    if output.visibility == "declared":
        public = public_symbols(functions, data, contents.link.naming)
        words += exporting_only(public, link.folder)
    names = [function.symbol or function.name for function in functions]
    return Code(files, names, link.code.options, link.code.addons, words, glue.packed)


def public_symbols(
    functions: Iterable[Declaration], data: Iterable[str], naming: Naming
) -> Iterator[str]:
    """Yield the symbols that a library needs if it exports nothing but declared functions."""
    for function in functions:
        yield naming.prefix + function.name
        yield naming.wrapper(function.name)
    yield FUNCTION_PREFIX + "*"  # also functions that other compilers wrote
    yield from data
    yield from (naming.prefix + symbol for symbol in CONTEXT_SYMBOLS)


def defined_names(functions: Iterable[Declaration], prefix: str) -> list[str]:
    """Return the symbols of the declared functions that a library itself must define."""
    return [prefix + (f.symbol or f.name) for f in functions if not f.is_external]
