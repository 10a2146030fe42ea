"""Link host code, compiled once, and embed bytes. One file: a repeated link reuses its objects."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from runtime.error import ExportError, ToolchainError

from .elf.object_check import check_objects
from .elf.object_file import rename_symbols
from .elf.plain_names import give_plain_names, refuse_callers
from .embed import NotPlacedError
from .files.progress import bytes_of
from .files.shipped import headers, templates
from .levels.linked import LinkLevels, merging
from .modules.host import CodeFile
from .target import find_target, native_triple
from .toolchain import linkage
from .toolchain.build import current_build
from .toolchain.compilation import Compilation
from .toolchain.compiler import LANGUAGE_OF_SUFFIX, SOURCE_LANGUAGES, find_compiler
from .toolchain.cuda import RUNTIME_OPTIONS, static_runtime
from .toolchain.linker import whole
from .toolchain.undefined import Linked
from .toolchain.verify import check_linked

if TYPE_CHECKING:
    from .dialect import Naming
    from .embed import Embedder, Symbols, WriteLibrary
    from .files.output import Workspace
    from .files.progress import Progress
    from .levels.table import Level
    from .records import Contents
    from .target import Target
    from .toolchain.compiler import Language
    from .toolchain.linker import Linker

# For generated and user's code: dso_abi.h, dso_packer.h and glue.h.
INCLUDE = (headers(), templates())


class Code(NamedTuple):
    """The code of one link, without the embedded bytes."""

    files: list[CodeFile]  # the host code and the glue
    # The declared functions; an error names the ones that the code does not define.
    functions: list[str]
    options: list[str]  # the caller's options for the linker
    addons: list[str | os.PathLike[str]]  # the caller's inputs for it
    naming: list[str]  # options of packer that hide symbols, and that name the library
    packed: Collection[str] = ()  # the declared functions that are packed C functions


class Link:
    """The link of one library; a second run compiles nothing again.

    A linker that compiles no sources gets them, and the options of all of them. If symbols get
    other names, the linker gets one object. Object files are written to `folder`, a private one.
    """

    def __init__(
        self,
        linker: Linker,
        target: Target,
        naming: Naming,
        folder: Path,
        options: list[str],
        addons: Sequence[str | os.PathLike[str]],
        levels: Sequence[Level] = (),
    ) -> None:
        self.linker = linker
        self.levels = LinkLevels(levels)
        self.target = target
        self.folder = folder
        self.naming = naming
        self.code = Code([], [], options, [os.path.abspath(path) for path in addons], [])
        self._objects: dict[Path, Path] = {}
        self._compiled: dict[Path, tuple[Path, ...]] = {}

    def use(self, files: list[CodeFile]) -> None:
        """Link other files than before, of which none is compiled."""
        self.code = self.code._replace(files=files)
        self._objects, self._compiled = {}, {}

    def compile_ahead(self) -> None:
        """Compile the code for the CPU levels, so that `run` links one object for each.

        Code for another machine is compiled here, too: only this shows what its compiler refuses.
        Raises ToolchainError if a compiler or the linker fails. Raises ExportError if an object is
        for another target, or the linker compiles sources itself.
        """
        sources = [file for file in self.code.files if file.language in SOURCE_LANGUAGES]
        if not self.levels.levels:
            if not self.target.is_like(find_target(native_triple())):
                self._compile(sources)
            return
        if self.linker.compile_sources is None:
            text = "cpu: fcompile compiles sources, expected a linker with compile_sources"
            raise ExportError(f"{text}; use packer.create_shared or packer.cross_compiler")
        self._compile(sources)
        check_objects([path for file in self.code.files for path in file.variants], self.target)
        addons = [path for path in map(Path, self.code.addons) if path.suffix in (".o", ".a")]
        merge = merging(self.linker, self.code.options)
        self.levels.build(self.code.files, self._compiled, addons, merge, self.folder)

    def prepare(self, embedder: Embedder, symbols: Symbols) -> Path:
        """Write an embedder's file for the linker."""
        return embedder.prepare(symbols, self.folder, self.target.triple, self.naming.register)

    def run(self, output: Path, embedded: Path | None = None) -> None:
        """Link all code, and an embedder's file last.

        Raises ToolchainError if a compiler or the linker fails. Raises ExportError if an object is
        for another target.
        """
        ours = [code_file(embedded)._replace(is_ours=True)] if embedded is not None else []
        code = self.levels.linked([*self.code.files, *ours])
        options = self._compile([file for file in code if file.language in SOURCE_LANGUAGES])
        files = [self._objects.get(f.path, f.path) for f in code if f.language != "a"]
        archive_files = [f.path for f in code if f.language == "a"]
        unchecked = [self._objects.get(f.path, f.path) for f in code if not f.is_checked]
        check_objects([*unchecked, *self.code.addons], self.target)
        # From here on everything is for one target; a linker would report less, or nothing.
        archives = whole(archive_files)
        if self.naming.prefix or self.naming.legacy_calls:
            apart = files[-len(ours) :] if ours and not self.naming.prefix else []
            files = files[: len(files) - len(apart)]
            files, archives = [self._merge(files, [*options, *archives]), *apart], []
            self._name_symbols(files[0])
        elif archives and self.linker.output_format == "tar":
            files, archives = [*files, self._merge([], archives)], []
        runtime_archives, runtime_options = self._cuda_runtime()
        names = [*map(str, files), *self.code.addons, *runtime_archives]
        words = [*self.code.options, *runtime_options]
        link = self.linker.link_c if self.is_c else self.linker
        try:
            link(output, names, options=[*options, *archives, *words, *self.code.naming])
        except ToolchainError as error:
            raise self._explained(error) from None

    def _name_symbols(self, merged: Path) -> None:
        """Give the symbols of all code their names in the library."""
        if self.naming.legacy_calls:
            packed = give_plain_names(merged, self.code.packed)
            refuse_callers(map(Path, self.code.addons), packed)
        if self.naming.prefix:
            rename_symbols(merged, self.naming.isolated)

    @property
    def is_c(self) -> bool:
        """True if nothing can need a C++ library."""
        languages = {file.language for file in self.code.files}
        return not self.code.addons and not self.code.options and languages <= {"c"}

    def _cuda_runtime(self) -> tuple[Sequence[str], Sequence[str]]:
        """Return the archive and options that code compiled by nvcc needs, unless options do."""
        is_compiled_here = self.linker.compile_sources is not None
        has_cuda = any(file.language == "cu" for file in self.code.files)
        names_runtime = any(word.startswith("-lcudart") for word in self.code.options)
        if not (is_compiled_here and has_cuda) or names_runtime:
            return (), ()
        return [str(static_runtime(find_compiler("cu")))], RUNTIME_OPTIONS

    def _explained(self, error: ToolchainError) -> ToolchainError:
        """Name the declared functions that are undefined: the linker only names our wrapper."""
        missing = linkage.undefined_in(error).intersection(self.code.functions)
        return _with_advice(error, self.explain(missing)) if missing else error

    def explain(self, missing: Iterable[str]) -> str:
        """Say why declared functions are undefined, and what to do."""
        names = sorted(missing)
        found = [linkage.advice(*row) for row in linkage.mangled(names, self._named_objects())]
        text = f"declared, but defined by no source, or as static: {', '.join(names)}"
        return "; ".join([text, *found])

    def linked(self, output: Path, allowed: Sequence[str]) -> Linked:
        """Describe the link for the search of undefined symbols."""
        addons = {path: path.name for path in map(Path, self.code.addons)}
        objects = self._named_objects() | addons
        return Linked(output, self.target, self.code.options, objects, allowed)

    def _named_objects(self) -> dict[Path, str]:
        """Return the objects and archives of users, and the names of their files."""
        files = [file for file in self.code.files if not file.is_ours]
        return {self._objects.get(file.path, file.path): _shown(file) for file in files}

    def _explained_conflict(self, error: ToolchainError) -> ToolchainError:
        """Say what to do if only a declaration, which is ours, has C linkage."""
        written = {file.path.name for file in self.code.files}  # names that users do not know
        found = [
            linkage.advice(name, name, "" if place in written else place)
            for name, place in linkage.conflicting(error.stderr)
            if name in self.code.functions
        ]
        return _with_advice(error, "; ".join(found)) if found else error

    def _merge(self, files: Sequence[Path], options: Sequence[str]) -> Path:
        merged = self.folder / "merged.o"
        self.linker.create_object(merged, files, options=options)
        return merged

    def _compile(self, sources: Sequence[CodeFile]) -> list[str]:
        """Compile the new ones of these sources, or return the options for a linker that does."""
        if self.linker.compile_sources is None:
            options = [option for file in sources for option in file.options]
            return [*(f"-I{path}" for path in INCLUDE), *options]
        new = [file for file in sources if file.path not in self._objects]
        try:
            jobs = {f.path: self.levels.compilations(f, self._compilation(f)) for f in new}
            listed = [job for row in jobs.values() for job in row]
            made = iter(self.linker.compile_sources(listed, cwd=self.folder))
        except ToolchainError as error:
            raise self._explained_conflict(error) from None
        self._compiled.update({path: tuple(islice(made, len(row))) for path, row in jobs.items()})
        self._objects.update({path: found[0] for path, found in self._compiled.items()})
        return []

    def _compilation(self, file: CodeFile) -> Compilation:
        options, hardening = file.options, self.target.machine.hardening
        if file.is_ours:  # hardening: else the user's own marks would be lost
            options = (*filter(None, [hardening]), *options, "-w")
        language, made = cast("Language", file.language), file.path.with_suffix(".o")
        if file.name:
            names, name = current_build().names, os.path.basename(file.name)
            names[str(made)] = f"{os.path.splitext(name)[0]}.o"
            names[f"\n{file.path.name}:("] = f"\n{name}:("  # GNU ld's words for a place
        return Compilation(file.path, made, language, options, INCLUDE, file.name)


def _shown(file: CodeFile) -> str:
    """Return the name of the user's file, without its folder; empty for text."""
    return "" if file.name == "<string>" else os.path.basename(file.name)


def _with_advice(error: ToolchainError, advice: str) -> ToolchainError:
    return ToolchainError(
        f"{error}; {advice}",
        command=error.command,
        returncode=error.returncode,
        stderr=error.stderr,
    )


def embed_and_link(
    link: Link,
    symbols: Symbols,
    embedders: Sequence[Embedder],
    workspace: Workspace,
    step: Progress,
) -> Symbols:
    """Link, and embed the bytes of symbols with the first embedder that the linker allows.

    Return the symbols that went through the linker, which may have changed their bytes. Raises
    ToolchainError if a compiler or the linker fails, or if no embedder is possible; ExportError if
    an embedder cannot take these bytes.
    """
    for embedder in embedders:
        step("embed")
        embedded = link.prepare(embedder, symbols) if symbols else None
        try:
            with workspace.writing(), embedder.copy_ahead(workspace.ahead, symbols) as ahead:
                step("link")
                link.run(workspace.output, embedded)
                if embedder.place is None or not symbols:
                    return symbols
                check_linked(workspace.output, link.target.triple)
                step("place")
                embedder.place(workspace.output, symbols, bytes_of(step), ahead)
        except NotPlacedError as error:
            reason = error
            step(f"embed {embedder.name!r} is not possible: {error}")
        else:
            return {}
    text = f"embed {embedder.name!r} is not possible: {reason}; use embed='llvm' or embed='c'"
    raise ToolchainError(text) from reason


def write_data(
    write: WriteLibrary, symbols: Symbols, contents: Contents, workspace: Workspace, step: Progress
) -> Symbols:
    """Write a library of data alone, without a linker; return what `embed_and_link` does."""
    step("place")
    with workspace.writing():
        soname = contents.output.soname
        write(workspace.output, symbols, contents.triple, soname, bytes_of(step))
    return {}


def code_file(path: str | os.PathLike[str]) -> CodeFile:
    """Return a file as code of the language that its suffix names."""
    suffix = Path(path).suffix
    language = LANGUAGE_OF_SUFFIX.get(suffix) or ("a" if suffix == ".a" else "o")
    return CodeFile(Path(path).absolute(), language)
