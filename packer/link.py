"""Link host code, compiled once, with the bytes that an embedder adds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import runtime
from runtime.error import ExportError, ToolchainError

from .elf.object_check import check_objects
from .embed import NotPlacedError
from .files.progress import bytes_of
from .modules.host import CodeFile
from .target import find_target, native_triple
from .toolchain.compiler import LANGUAGE_OF_SUFFIX, SOURCE_LANGUAGES, Compilation
from .toolchain.create import create_object, create_shared
from .toolchain.isolate import isolate
from .toolchain.verify import check_linked

if TYPE_CHECKING:
    from .embed import Embedder, Symbols
    from .files.output import Workspace
    from .files.progress import Progress
    from .toolchain.compiler import Language
    from .toolchain.create import Fcompile

# What generated and user's code includes: dso_abi.h, dso_packer.h and glue.h.
INCLUDE = (Path(runtime.__file__).parent / "include", Path(__file__).parent / "templates")
# As bfd, lld and gold say it of a symbol that is protected, as glue.h has those of functions.
_UNDEFINED = re.compile(
    r"(?:undefined reference to|undefined protected symbol:|protected symbol)\W+(\w+)"
)


class Link:
    """One library's link; what was compiled for it is compiled once, if it is linked again.

    Parameters
    ----------
    linker : Fcompile
        Links. Sources are compiled by its `compile_sources`, each with options of its own; if it
        has none, whoever links compiles them, and gets all options.
    code : sequence of CodeFile
        All host code.
    folder : Path
        A private folder for object files.
    options, addons : sequence
        The caller's, for the linker.
    target : str or None
        The target triple; this machine's by default.
    system_lib : bool
        Whether what is embedded registers itself at start-up.
    prefix : str
        Stands before every symbol that the code defines; then whoever links gets one object.
    functions : iterable of str
        The declared ones: an error says which of them are not there.
    """

    def __init__(
        self,
        linker: Fcompile,
        code: Sequence[CodeFile],
        folder: Path,
        options: Sequence[str],
        addons: Sequence[str | os.PathLike[str]],
        target: str | None,
        *,
        system_lib: bool = False,
        prefix: str = "",
        functions: Iterable[str] = (),
    ) -> None:
        self._linker = linker
        self._compile_sources = getattr(linker, "compile_sources", None)
        self._target = find_target(target)
        self._code = list(code)
        self.folder = folder
        self._options = list(options)
        self._addons = [os.path.abspath(path) for path in addons]
        self._system_lib = system_lib
        self._prefix = prefix
        self._functions = frozenset(functions)
        self._objects: dict[Path, Path] = {}

    def prepare(self, embedder: Embedder, symbols: Symbols) -> Path:
        """Write an embedder's file for the linker."""
        return embedder.prepare(symbols, self.folder, self._target.triple, self._system_lib)

    def run(self, output: Path, embedded: Path | None = None) -> None:
        """Link all code, and last an embedder's file.

        Raises
        ------
        ToolchainError
            A compiler or the linker breaks off.
        ExportError
            An object is for another target.
        """
        ours = [code_file(embedded)._replace(is_ours=True)] if embedded is not None else []
        code = [*self._code, *ours]
        sources = [file for file in code if file.language in SOURCE_LANGUAGES]
        source_options: list[str] = []
        if self._compile_sources is not None:
            self._compile([file for file in sources if file.path not in self._objects])
        else:
            source_options += [f"-I{path}" for path in INCLUDE]
            source_options += [option for file in sources for option in file.options]
        files = [self._objects.get(f.path, f.path) for f in code if f.language != "a"]
        archive_files = [f.path for f in code if f.language == "a"]
        check_objects([*files, *archive_files, *self._addons], self._target)
        # From here on everything is for one target; a linker would say less, or nothing.
        archives = whole(archive_files)
        if self._prefix:
            files, archives = [self._merge(files, [*source_options, *archives])], []
            isolate(files[0], self._prefix)
        elif archives and getattr(self._linker, "output_format", "so") == "tar":
            files, archives = [*files, self._merge([], archives)], []
        names = [*map(str, files), *self._addons]
        try:
            self._link(output, names, [*source_options, *archives])
        except ToolchainError as error:
            raise self._explained(error) from None

    def _link(self, output: Path, names: Sequence[str], options: Sequence[str]) -> None:
        if self._linker is create_shared and self._is_c():
            create_shared(output, names, options=options, language="c")
        else:
            self._linker(output, names, options=[*self._options, *options])

    def _explained(self, error: ToolchainError) -> ToolchainError:
        """Name a declared function that the linker misses: it points to our wrapper, not to why."""
        missing = set(_UNDEFINED.findall(error.stderr)) & self._functions
        if not missing:
            return error
        names = ", ".join(sorted(missing))
        return ToolchainError(
            f"{error}; declared, but defined by no source, or as static: {names}",
            command=error.command,
            returncode=error.returncode,
            stderr=error.stderr,
        )

    def _is_c(self) -> bool:
        """Whether nothing can ask for a C++ library: a C driver takes half as long to find none."""
        return not self._addons and not self._options and {f.language for f in self._code} <= {"c"}

    def _merge(self, files: Sequence[Path], options: Sequence[str]) -> Path:
        merge = getattr(self._linker, "create_object", create_object)
        made = self.folder / "merged.o"
        merge(made, files, options=options)
        return made

    def _compile(self, sources: Sequence[CodeFile]) -> None:
        assert self._compile_sources is not None
        jobs = [self._compilation(file) for file in sources]
        made = self._compile_sources(jobs, cwd=self.folder)
        self._objects.update(zip((file.path for file in sources), made, strict=True))

    def _compilation(self, file: CodeFile) -> Compilation:
        options, hardening = file.options, self._target.machine.hardening
        if file.is_ours and hardening:  # else the user's own marks would be lost
            options = (hardening, *options)
        language = cast("Language", file.language)
        return Compilation(file.path, file.path.with_suffix(".o"), language, options, INCLUDE)


def embed_and_link(
    link: Link,
    symbols: Symbols,
    embedders: Sequence[Embedder],
    workspace: Workspace,
    target: str | None,
    step: Progress,
) -> Symbols:
    """Link, with the bytes of symbols by the first embedder that the linker leaves a way.

    Parameters
    ----------
    link : Link
        What to link, and how.
    symbols : mapping of str to chunks
        May be empty.
    embedders : sequence of Embedder
        At least one.
    workspace : Workspace
        Its output is made.
    target : str or None
        The target triple; this machine's by default.
    step : callable
        Called with the name of each step, and with why an embedder did not do.

    Returns
    -------
    mapping of str to chunks
        What went through the linker, which may have changed it: to be compared.

    Raises
    ------
    ToolchainError
        A compiler or the linker breaks off, or left none of them a way.
    ExportError
        An embedder cannot take these bytes.
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
                check_linked(workspace.output, target)
                step("place")
                embedder.place(workspace.output, symbols, bytes_of(step), ahead)
        except NotPlacedError as error:
            reason = error
            step(f"embed {embedder.name!r} is not possible: {error}")
        else:
            return {}
    text = f"embed {embedder.name!r} is not possible: {reason}; use embed='llvm' or embed='c'"
    raise ToolchainError(text) from reason


def whole(archives: Sequence[Path]) -> list[str]:
    """The options that link every member of archives."""
    return [
        word
        for path in archives
        for word in ("-Wl,--whole-archive", str(path), "-Wl,--no-whole-archive")
    ]


def code_file(path: str | os.PathLike[str]) -> CodeFile:
    """Take a file for what its suffix says."""
    suffix = Path(path).suffix
    language = LANGUAGE_OF_SUFFIX.get(suffix) or ("a" if suffix == ".a" else "o")
    return CodeFile(Path(path).absolute(), language)


def target_without_linker(linker: Fcompile, asked: str | None) -> str | None:
    """The target of what would link; of this machine, if there is no compiler and none is named.

    Raises
    ------
    ToolchainError
        CC or CXX names none.
    ExportError
        As for `target_of`.
    """
    try:
        return target_of(linker, asked)
    except ToolchainError:
        if os.environ.get("CXX") or os.environ.get("CC"):
            raise
        return native_triple()


def target_of(linker: Fcompile, asked: str | None = None) -> str | None:
    """The target triple of what links: what it says, else what was asked for, else None.

    Raises
    ------
    ExportError
        It is another than was asked for, or one that no library can be made for.
    """
    get_target_triple = getattr(linker, "get_target_triple", None)
    said = (get_target_triple() if get_target_triple else None) or asked
    if said is None:
        return None
    target = find_target(said)
    if asked is not None and not target.is_like(find_target(asked)):
        text = f"target {asked!r}, but fcompile says that it is for {said!r}"
        raise ExportError(text)
    return asked or said
