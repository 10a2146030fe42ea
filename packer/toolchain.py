"""Compile and link: create_shared, and other compilers in its place."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from runtime.error import ExportError

from .arguments import list_of, one_or_more
from .compiler import (
    Compilation,
    Compilers,
    Language,
    check,
    compile_source,
    compile_sources,
    compilers,
    dump_machine,
    find_compiler,
    is_clang,
    is_nvcc,
    spell,
)
from .cross import find_cross_compiler, without_cxx_library
from .output import shown_path
from .private_directory import private_directory
from .process import run
from .reproducible import prefix_maps
from .target import find_target

__all__ = [
    "Compilation",
    "CreateShared",
    "Fcompile",
    "Language",
    "compile_source",
    "compile_sources",
    "create_object",
    "create_shared",
    "cross_compiler",
    "find_compiler",
    "run",
]

PathLike = str | os.PathLike[str]
Cc = str | Compilers | None
CompileSources = Callable[..., list[Path]]

_SUFFIXES: dict[str, Language] = {
    ".c": "c",
    ".cc": "cc",
    ".cpp": "cc",
    ".cxx": "cc",
    ".cu": "cu",
}
# Without -Bsymbolic a kernel named `gamma` or `index` is bound to the C library's.
_LINKER_OPTIONS = ("-Bsymbolic", "-z", "relro", "-z", "now", "-z", "noexecstack", "--as-needed")
_MERGED = ("-r", "-nostdlib")
_LINKED = {
    "shared": ("-O2", "-fPIC", "-shared", "-Wl," + ",".join(_LINKER_OPTIONS)),
    "merged": _MERGED,
}
_LINKED_BY_NVCC = {
    "shared": (
        *("-O2", "-Xcompiler", "-fPIC", "-shared"),
        *("-Xlinker", ",".join(_LINKER_OPTIONS)),
    ),
    "merged": _MERGED,
}


class Fcompile(Protocol):
    """What `export_library` takes as `fcompile`: links objects, and says what it makes.

    Attributes
    ----------
    output_format, object_format : str
        Suffixes of what it makes, and of what it wants of modules that have a choice.
    get_target_triple : callable
        The target, or None where that is not known.
    compile_sources : callable, optional
        As `packer.compiler.compile_sources`: sources are compiled by it, each with options of its
        own, and only objects are linked. Where it is missing the linker gets sources too.
    create_object : callable, optional
        Merges objects by the same compiler.
    """

    output_format: str
    object_format: str
    get_target_triple: Callable[[], str | None]

    def __call__(
        self,
        output: PathLike,
        objects: PathLike | Sequence[PathLike],
        options: Sequence[str] | None = None,
    ) -> None: ...


class CreateShared(Fcompile, Protocol):
    """The type of `create_shared`."""

    def __call__(
        self,
        output: PathLike,
        objects: PathLike | Sequence[PathLike],
        options: Sequence[str] | None = None,
        cc: Cc = None,
        *,
        language: Language = "link",
    ) -> None: ...


def _target_triple(cc: str | None = None) -> str | None:
    """Say which target a compiler is for, as ``x86_64-linux-gnu``; None if it does not know."""
    return dump_machine(find_compiler("link", cc))


def as_fcompile(
    output_format: str,
    object_format: str,
    get_target_triple: Callable[[], str | None],
    compile_sources: CompileSources | None = compile_sources,
) -> Callable[[Callable[..., None]], CreateShared]:
    """Give a function the attributes that TVM's `export_library` asks it for."""

    def decorate(function: Callable[..., None]) -> CreateShared:
        fcompile = cast(Any, function)
        fcompile.output_format = output_format
        fcompile.object_format = object_format
        fcompile.get_target_triple = get_target_triple
        if compile_sources is not None:
            fcompile.compile_sources = compile_sources
        return cast(CreateShared, fcompile)

    return decorate


@as_fcompile("so", "o", _target_triple)
def create_shared(
    output: PathLike,
    objects: PathLike | Sequence[PathLike],
    options: Sequence[str] | None = None,
    cc: Cc = None,
    *,
    language: Language = "link",
) -> None:
    """Link objects to a shared library.

    Parameters
    ----------
    output : path
        The library to make. It is linked beside its place and renamed, never half there.
    objects : path or sequence of paths
        Object files, static libraries and sources (.c, .cc, .cpp, .cxx, .cu), in link order.
    options : sequence of str, optional
        Come after the default ones, for sources and for the link.
    cc : str or callable, optional
        As in `find_compiler`, or what finds one for a language; CUDA sources are nvcc's.
    language : "link", "c", "cc" or "cu"
        Whose driver links; C++ and CUDA sources bring their own.

    Raises
    ------
    ToolchainError
        There is no compiler, or it did not make a library.
    ExportError
        The folder of `output` cannot be written; or `options` is one str.

    Notes
    -----
    The attributes ``output_format``, ``object_format`` and ``get_target_triple`` are what
    `export_library` asks an `fcompile` for.
    """
    inputs = [Path(item).absolute() for item in one_or_more(objects, "objects")]
    words = list_of(options, "options")
    with making(output) as (cwd, made):
        driver = compilers(cc)(_link_language(inputs, language))
        linkable = _compile_inputs(inputs, words, cwd, cc)
        _link(driver, "shared", made, linkable, [*words, "-lm"], output)


@as_fcompile("o", "o", _target_triple)
def create_object(
    output: PathLike,
    objects: PathLike | Sequence[PathLike],
    options: Sequence[str] | None = None,
    cc: Cc = None,
) -> None:
    """Merge objects to one, which is still to be linked.

    Parameters
    ----------
    output : path
        The object to make; as for `create_shared`.
    objects : path or sequence of paths
        Objects and sources.
    options : sequence of str, optional
        For sources and for the linker driver. No library is asked for but by an option.
    cc : str, optional
        As in `find_compiler`.

    Raises
    ------
    ToolchainError, ExportError
        As for `create_shared`.
    """
    inputs = [Path(item).absolute() for item in one_or_more(objects, "objects")]
    words = list_of(options, "options")
    with making(output) as (cwd, made):
        linkable = _compile_inputs(inputs, words, cwd, cc)
        _link(compilers(cc)("link"), "merged", made, linkable, words, output)


def target_compiler(triple: str, output_format: str = "so") -> Fcompile:
    """Make an `fcompile` of whatever compilers for a target are here; `cross` says which.

    Raises
    ------
    ExportError
        No library can be made for the target.
    ToolchainError
        Not here: when it is called, there is no compiler for it.
    """
    find = functools.partial(find_cross_compiler, find_target(triple))
    return _of_compilers(find, (), (), output_format, lambda: triple)


def cross_compiler(
    compile_func: str | Callable[..., None],
    options: Sequence[str] | None = None,
    output_format: str | None = None,
    get_target_triple: Callable[[], str | None] | None = None,
    add_files: Sequence[PathLike] | None = None,
) -> Fcompile:
    """Make an `fcompile` of a compiler, or of another one, with options and files of its own.

    Parameters
    ----------
    compile_func : str or callable
        A compiler for `create_shared`, or a function (output, objects, options=...).
    options : sequence of str, optional
        Given to every call, before the call's own.
    output_format : str, optional
        The suffix of what it makes, without a dot; by default that of `compile_func`, or "so".
    get_target_triple : callable, optional
        By default that of `compile_func`; for a compiler what ``cc -dumpmachine`` prints.
    add_files : sequence of paths, optional
        Linked in after the objects.

    Returns
    -------
    Fcompile
        Called as (output, objects, options=None).

    Raises
    ------
    ExportError
        `options` or `add_files` is one str.
    ToolchainError
        Not here: when it is called.

    Examples
    --------
    >>> fcompile = cross_compiler("aarch64-linux-gnu-gcc", options=["-static-libgcc"])
    >>> fcompile.output_format
    'so'
    """
    own_options = tuple(list_of(options, "options"))
    own_files = tuple(list_of(add_files, "add_files"))
    if isinstance(compile_func, str):
        triple = get_target_triple or functools.partial(_target_triple, compile_func)
        made_format = output_format or "so"
        return _of_compilers(compilers(compile_func), own_options, own_files, made_format, triple)
    return _of_linker(
        compile_func,
        own_options,
        own_files,
        output_format or str(getattr(compile_func, "output_format", "so")),
        get_target_triple or getattr(compile_func, "get_target_triple", None) or _unknown_triple,
        getattr(compile_func, "compile_sources", None),
    )


def _of_compilers(
    find: Compilers,
    options: tuple[str, ...],
    files: tuple[PathLike, ...],
    output_format: str,
    get_target_triple: Callable[[], str | None],
) -> Fcompile:
    link = functools.partial(_linker_of(output_format), cc=find)
    compile_with = functools.partial(compile_sources, find=find)
    fcompile = _of_linker(link, options, files, output_format, get_target_triple, compile_with)
    vars(fcompile)["create_object"] = functools.partial(create_object, cc=find)
    return fcompile


def _of_linker(
    link: Callable[..., None],
    own_options: tuple[str, ...],
    files: tuple[PathLike, ...],
    output_format: str,
    get_target_triple: Callable[[], str | None],
    compile_with: CompileSources | None,
) -> Fcompile:
    object_format = str(getattr(link, "object_format", "o"))
    if compile_with is not None and own_options:
        compile_with = functools.partial(_compile_with_options, compile_with, own_options)

    @as_fcompile(output_format, object_format, get_target_triple, compile_with)
    def fcompile(
        output: PathLike,
        objects: PathLike | Sequence[PathLike],
        options: Sequence[str] | None = None,
    ) -> None:
        all_options = [*own_options, *list_of(options, "options")]
        link(output, [*one_or_more(objects, "objects"), *files], options=all_options)

    return fcompile


def _compile_with_options(
    compile_with: CompileSources,
    options: tuple[str, ...],
    compilations: Sequence[Compilation],
    *,
    cwd: Path,
) -> list[Path]:
    jobs = [job._replace(options=(*options, *job.options)) for job in compilations]
    return compile_with(jobs, cwd=cwd)


def _linker_of(output_format: str) -> Callable[..., None]:
    from .formats import FORMATS

    return FORMATS[output_format].linker if output_format in FORMATS else create_shared


def _unknown_triple() -> None:
    return None


@contextlib.contextmanager
def making(output: PathLike) -> Iterator[tuple[Path, Path]]:
    """Have a private folder beside an output, and in it the file to make, which replaces it."""
    target = Path(output).absolute()
    try:
        with private_directory(target.parent) as cwd:
            yield cwd, cwd / "library.so"
            os.replace(cwd / "library.so", target)
    except OSError as error:
        message = f"{shown_path(target)}: cannot write: {error.strerror or error}"
        raise ExportError(message, path=str(target)) from error


def _link(
    driver: tuple[str, ...],
    kind: str,
    made: Path,
    inputs: Sequence[Path],
    options: Sequence[str],
    output: PathLike,
) -> None:
    """Start a linker driver in a private folder; `kind` is one of `_LINKED`."""
    cwd = made.parent
    archives = [word for word in options if os.path.isabs(word) and os.path.isfile(word)]
    driver = without_cxx_library(driver, [*inputs, *archives])
    if is_nvcc(driver):
        defaults = [*_LINKED_BY_NVCC[kind]]
    else:  # for LTO and the assembler, which name folders in debug information too
        folders = {item.parent: "." for item in inputs} | {cwd.resolve(): "."}
        defaults = [*_LINKED[kind], *prefix_maps(folders, is_clang=is_clang(driver))]
    names = [spell(item, cwd) for item in inputs]
    completed = run([*driver, *defaults, "-o", spell(made, cwd), *names, *options], cwd=cwd)
    check(completed, f"linking {shown_path(Path(output).name)}", made)


def _link_language(inputs: Sequence[Path], language: Language) -> Language:
    found = {_SUFFIXES.get(path.suffix) for path in inputs}
    return "cu" if "cu" in found else "cc" if "cc" in found else language


def _compile_inputs(
    inputs: Sequence[Path], options: Sequence[str], cwd: Path, cc: Cc
) -> list[Path]:
    """Replace the sources among the inputs by their object files."""
    jobs = {
        index: Compilation(path, cwd / f"{index}.o", _SUFFIXES[path.suffix], tuple(options))
        for index, path in enumerate(inputs)
        if path.suffix in _SUFFIXES
    }
    made = dict(
        zip(jobs, compile_sources(list(jobs.values()), cwd=cwd, find=compilers(cc)), strict=True)
    )
    return [made.get(index, path) for index, path in enumerate(inputs)]
