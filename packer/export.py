"""export_library(module, path): from a module tree to one library, in one straight line."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from runtime.abi import MAIN_NAME, MANIFEST, MODULE_BLOB
from runtime.blob import dump
from runtime.error import ExportError
from runtime.manifest import dump_manifest
from runtime.module import Module, preorder
from runtime.serializer import serialize

from . import toolchain
from .embed import Embed, find_embedder
from .embed.chunks import with_header
from .modules.host import CodeFile, HostModule, as_host_module
from .output import replacing
from .verify import Expected, verify_library
from .wrapper import Declaration, glue_source

if TYPE_CHECKING:
    from runtime.blob import Blob
    from runtime.stream import Chunk

PRODUCER = "dso-packer 0.1.0"
TEMPLATES = Path(__file__).parent / "templates"


class Compile(Protocol):
    """What links a library: TVM's ``fcompile``.

    Two attributes are read where it has them: ``object_format`` (what it wants of LLVM modules:
    ``"o"``, ``"ll"``, ``"bc"``, ``"s"``) and ``get_target_triple`` (a function that names the
    machine it makes code for).
    """

    def __call__(self, output: str, files: list[str], /, *, options: list[str]) -> object:
        """Compile and link `files` (sources and objects) to the shared library `output`."""


PackImports = Callable[[Module, bool, str, str], "str | os.PathLike[str]"]
Progress = Callable[[str], None]


def export_library(
    module: Module,
    path: str | os.PathLike[str],
    *,
    embed: Embed = "auto",
    entry: str | None = None,
    fcompile: Compile | None = None,
    fpack_imports: PackImports | None = None,
    addons: Sequence[str | os.PathLike[str]] = (),
    workspace_dir: str | os.PathLike[str] | None = None,
    options: Sequence[str] = (),
    progress: Progress | None = None,
) -> Path:
    """Make one shared library of a module tree.

    Parameters
    ----------
    module : Module
        The root. Host code anywhere in the tree is compiled and merged; every other module is
        serialised into the blob.
    path : path
        The library to write. It is replaced by a rename at the very end, or stays as it was.
    embed : {"auto", "c", "llvm"}
        How the blob gets into the library; the bytes and the symbol are the same.
    entry : str, optional
        The declared function that ``runtime.load(path)(...)`` calls.
    fcompile : callable, optional
        Compiles and links instead of the default toolchain: ``fcompile(output, files,
        options=[...])``, as TVM has it; may be `create_shared` or `cross_compiler(...)`.
    fpack_imports : callable, optional
        Packs the imports instead of `embed`: ``fpack_imports(module, system_lib,
        c_symbol_prefix, workspace_dir)`` returns the file to link, as TVM has it.
    addons : sequence of path
        Further objects or libraries to link.
    workspace_dir : path, optional
        Where a folder with the intermediate files is made and kept; by default they are gone.
    options : sequence of str
        Further options for the linker driver.
    progress : callable, optional
        Called with the name of each step as it begins.

    Returns
    -------
    Path
        `path`.

    Raises
    ------
    ExportError
        The tree cannot be exported (names the module), or the output cannot be written.
    ToolchainError
        A compiler is missing or breaks off, or what it made is not what was asked for.

    Notes
    -----
    The same tree gives the same bytes, in any folder and at any time. Callers' lists are never
    changed. Another process that loads `path` meanwhile sees the old file or the new one.
    """
    step = progress or _silent
    output = Path(path)

    step("collect")
    hosts = collect(module, entry, output, addons)
    with replacing(output, workspace_dir=workspace_dir) as workspace:
        linker = fcompile or _default_compile
        step("save")
        code = save(hosts, entry, workspace.directory, linker)
        step("serialize")
        blob = serialize(module, export_dso=True)
        chunks = with_header(dump(blob))
        step("embed")
        target = _target_of(linker)
        if fpack_imports is not None:
            packed = fpack_imports(module, False, "", str(workspace.directory))
            code.append(CodeFile(Path(packed), _language_of(packed)))
        elif blob.entries or not hosts:
            symbols = {MODULE_BLOB: chunks, MANIFEST: [_manifest(blob, target)]}
            embedded = find_embedder(embed)(symbols, workspace.directory, _llvm_target(linker))
            code.append(CodeFile(embedded, _language_of(embedded)))
        step("link")
        link(linker, workspace.output, code, addons, options)
        step("verify")
        symbols_expected = [] if fpack_imports or not blob.entries else chunks
        verify_library(workspace.output, Expected(hosts_functions(hosts), entry, symbols_expected))
        step("commit")
        workspace.commit()
    return output
