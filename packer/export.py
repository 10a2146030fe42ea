"""export_library(module, path): export a module tree to one library, in one straight line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runtime.abi import CONTEXT_SYMBOLS, FUNCTION_PREFIX
from runtime.blob import dump
from runtime.error import ExportError
from runtime.module import Module
from runtime.serial.serializer import merge_host_code
from runtime.stream import FileRange

from .declare.glue import Glue
from .declare.left_out import dump_left_out
from .dialect import Dialect, Naming, unread_by_tvm
from .embed import Embed, find_embedders
from .embed.contents import checksums_of, record_of, symbols_of
from .embed.reserved import reserved
from .files.arguments import list_of
from .files.chunks import with_header
from .files.output import refuse_output_among_inputs, replacing
from .files.progress import Progress, bytes_of, made_of, output_of, silent, sources_of
from .host_code import (
    functions_with_constants,
    library_options,
    ready_functions,
    save,
    save_glue,
)
from .levels.choice import find_levels
from .levels.note import speed_notes
from .link import Code, Link, code_file, embed_and_link
from .modules.host import HostModule, as_host_module
from .sbom import Bill
from .target import find_target
from .toolchain.build import building
from .toolchain.cross_linker import find_linker
from .toolchain.soname import soname_options, verify_soname
from .toolchain.undefined import check_undefined, split_allowed
from .toolchain.verify import refuse_undefined, verify_output
from .toolchain.visibility import Visibility, check_visibility, exporting_only

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from runtime.stream import Chunk

    from .declare.declaration import Declaration
    from .toolchain.linker import Fcompile

PackImports = Callable[[Module, bool, str, str], "str | os.PathLike[str]"]


def export_library(
    module: Module,
    path: str | os.PathLike[str],
    *,
    format: Dialect = "tvm",
    embed: Embed = "auto",
    target: str | None = None,
    entry: str | None = None,
    fcompile: Fcompile | None = None,
    fpack_imports: PackImports | None = None,
    system_lib: bool = False,
    c_symbol_prefix: str = "",
    addons: Sequence[str | os.PathLike[str]] = (),
    workspace_dir: str | os.PathLike[str] | None = None,
    options: Sequence[str] = (),
    progress: Progress | None = None,
    visibility: Visibility = "default",
    soname: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    cpu: str | Sequence[str] | None = None,
    signature_room: int = 0,
    legacy_calls: bool = False,
    sbom: bool = False,
    executor: Executor | None = None,
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
    format : {"tvm", "tvm-ffi"}
        The dialect of the blob: which loaders see the tree (README). The functions are the same.
    embed : {"auto", "c", "llvm", "segment"}
        How the blob is put into the library; the bytes and the symbol are the same. ``"auto"`` is
        segment for libraries: it needs the least time and memory.
    target : str, optional
        The triple of the library's machine and system, as ``"aarch64-linux-gnu"``; by default
        that of the compiler. docs/cross.md lists the compilers that are searched.
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
    visibility : {"default", "declared"}
        ``"declared"`` hides every symbol of the host code that is no declared function, so that
        other libraries cannot bind to it. Only for shared libraries.
    soname : str, optional
        The name by which other binaries need the library (DT_SONAME), as ``"libmodel.so.1"``; by
        default it has none. Only for shared libraries.
    metadata : mapping of str to value, optional
        The library's description, which `runtime.Module.metadata` returns: ``"version"`` and
        ``"license"``, which are text, and any further names. Values are those of TOML without
        dates: text, numbers, bools, lists and mappings; at most 1 MiB as JSON, and 62 levels.
    cwd : path, optional
        The folder in which compilers and the linker run, so that ``-Iinclude`` means a folder in
        it; by default the current one. They write nothing to it.
    jobs : int, optional
        How many compilers run at a time; by default as many as there are processors.
    cpu : sequence of str, or "native", optional
        CPU levels: ``["x86-64-v2", "x86-64-v3"]`` compiles the host code for each, and the library
        uses the best one of the machine that loads it (docs/cpu-levels.md). ``"native"`` is the
        processor of this machine. By default the code runs on every processor of the target.
    signature_room : int
        The bytes to reserve for `packer sign --embed`, which stores a signature in the library
        (docs/trust.md); 8192 are enough for most. Only for shared libraries.
    legacy_calls : bool
        True to let TVM to 2025 call the declared functions: the plain name of each is a packed C
        function, and all C functions are hidden (docs/coming-from-tvm.md).
    sbom : bool
        True to store a bill of materials (CycloneDX, which `packer sbom` prints) and the note
        ``.note.package`` (docs/trust.md). Only for shared libraries.
    executor : concurrent.futures.Executor, optional
        Compiles C and C++, with the same bytes (docs/scale.md); its workers need dso-packer and
        the same compiler.

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
        If `format`, `embed` or `visibility` is unknown.

    Notes
    -----
    The same tree gives the same bytes, in any folder and at any time. Callers' lists are never
    changed. Another process that loads `path` meanwhile sees the old file or the new one.
    """
    step = progress or silent
    output, naming = Path(path), Naming(format, system_lib, c_symbol_prefix, legacy_calls)
    options, allowed = split_allowed(list_of(options, "options"))
    addons = list_of(addons, "addons")
    output_format, linker = find_linker(output, fcompile, target)
    check_visibility(visibility, output, output_format)
    naming_options, record = soname_options(soname, output, output_format), record_of(metadata)
    can_place = output_format.is_linked and not system_lib
    embedders = find_embedders(embed, can_place=can_place, is_packed=fpack_imports is not None)
    empty = reserved(signature_room, output, output_format.suffix, system_lib)
    bill = Bill(sbom, output, output_format.suffix, naming, metadata)

    step("collect")
    blob, modules = merge_host_code(module, dialect=format)
    hosts = [as_host_module(host) for host in modules]
    declared_functions(hosts, entry)
    # From here on every module is host code or part of the blob: none is dropped.

    step("serialize")
    chunks = with_header(dump(blob)) if blob.entries and fpack_imports is None else []
    refuse_output_among_inputs(output, input_paths(hosts, addons, chunks))
    # From here on the bytes are final; nothing is written yet.
    with (
        building(cwd, jobs, output_of(step), sources_of(step), executor) as build,
        replacing(path, workspace_dir) as workspace,
    ):
        folder = workspace.directory
        build.names[str(workspace.output)] = str(output)
        has_code = hosts or addons or options or fcompile or fpack_imports
        triple = linker.triple(target) if has_code else linker.triple_without_linking(target)
        write_library = None if has_code else embedders[0].write_library

        step("save")
        words = [*options, *library_options(hosts, output_format, allowed)]
        code = Code([], [], words, addons, [])
        levels = find_levels(cpu, find_target(triple))
        link = Link(linker, find_target(triple), naming, folder, code, levels)
        notes = [*unread_by_tvm(module, format), *speed_notes(module, link.target, levels)]
        for note in notes:
            build.show(f"packer: note: {note}")
        files = save(hosts, link, folder, step)
        functions = declared_functions(hosts, entry)
        records = {naming.metadata: record, **bill.records(blob, hosts, files, link)}
        files += bill.files(folder, link.target)
        symbols, lines = symbols_of(blob, chunks, records, triple, naming)
        symbols |= empty
        char = find_target(triple).machine.char
        constants = functions_with_constants(module)
        left_out = dump_left_out(hosts, {function.name for function in functions})
        ready = ready_functions(files) if system_lib else ()
        levels_record = link.levels.record
        glue = Glue(functions, entry, naming, char, levels_record, constants, left_out, ready)
        checksums = checksums_of(glue.symbols, glue.texts, lines)
        required = [naming.checksums, *glue.symbols] if hosts else []
        if hosts:
            files.append(save_glue(folder, glue.source(checksums), files))
        elif symbols:
            symbols[naming.checksums] = [checksums.encode() + b"\0"]
        if fpack_imports is not None:
            made = fpack_imports(module, system_lib, c_symbol_prefix, str(folder))
            files.append(code_file(made))

        if write_library is None:
            names = [function.symbol or function.name for function in functions]
            words = list(naming_options)
            if visibility == "declared":
                public = public_symbols(functions, [*required, *symbols], naming)
                words += exporting_only(public, folder)
            link.code = Code(files, names, link.code.options, link.code.addons, words, glue.packed)
            linked = embed_and_link(link, symbols, embedders, workspace, step)
        else:
            step("place")
            with workspace.writing():
                write_library(workspace.output, symbols, triple, soname, bytes_of(step))
            linked = {}

        step("verify")
        result = output_format.read_back(workspace.output, triple)
        verify_output(workspace.output, result, required, symbols, linked)
        verify_soname(workspace.output, soname)
        own = [c_symbol_prefix + (f.symbol or f.name) for f in functions if not f.is_external]
        refuse_undefined(result, own, link.explain)
        check_undefined(result, link.linked(output, allowed))
        made_of(step)(workspace.output)
        # From here on the library is known to be correct.

        step("commit")
        workspace.commit(is_program=output_format.is_linked)
    return output


def declared_functions(hosts: Sequence[HostModule], entry: str | None) -> list[Declaration]:
    """Return the declared functions of all host code, which a library defines once each.

    Raises
    ------
    ExportError
        If two modules declare a function, or if none declares the entry.
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
    hosts: Sequence[HostModule],
    addons: Sequence[str | os.PathLike[str]],
    chunks: Sequence[Chunk],
) -> list[str | os.PathLike[str]]:
    """Return the files that become part of a library."""
    paths = [path for host in hosts for path in host.input_files()]
    ranges = [chunk.path for chunk in chunks if isinstance(chunk, FileRange)]
    return [*paths, *addons, *ranges]


def public_symbols(
    functions: Iterable[Declaration], data: Iterable[str], naming: Naming
) -> Iterator[str]:
    """Yield the symbols that a library needs if it exports nothing but declared functions."""
    for function in functions:
        yield naming.prefix + function.name
        yield naming.wrapper(function.name)
    yield FUNCTION_PREFIX + "*"  # also those that other compilers wrote
    yield from data
    yield from (naming.prefix + symbol for symbol in CONTEXT_SYMBOLS)
