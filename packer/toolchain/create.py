"""Compile and link: create_shared and create_object, and what may stand in their place."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from runtime.error import ExportError

from ..files.arguments import PathLike, list_of, one_or_more
from ..files.private_directory import private_directory
from ..files.text import shown_path
from .compiler import (
    LANGUAGE_OF_SUFFIX,
    Compilation,
    Compilers,
    Language,
    check,
    compile_sources,
    compilers,
    dump_machine,
    find_compiler,
    is_clang,
    is_nvcc,
    named_compiler,
    refuse_other_programs,
    spell,
)
from .cross import without_cxx_library
from .process import run
from .reproducible import prefix_maps

Cc = str | Compilers | None
CompileSources = Callable[..., list[Path]]

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
        As `compile_sources` of toolchain.compiler: it compiles sources, each with its own
        options, and only objects are linked. Where it is missing the linker gets sources too.
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


def target_triple(cc: str | None = None) -> str | None:
    """Say which target a compiler is for, as ``x86_64-linux-gnu``; None if it does not know.

    Raises
    ------
    ToolchainError
        There is none, or a variable names a program that is no compiler.
    """
    if cc is None and (named := named_compiler("link")):
        refuse_other_programs(*named)
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


@as_fcompile("so", "o", target_triple)
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
        Object files, static libraries and sources (.c, .cc, .cpp, .cxx, .C, .cu), in link order.
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


@as_fcompile("o", "o", target_triple)
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
    found = {LANGUAGE_OF_SUFFIX.get(path.suffix) for path in inputs}
    return "cu" if "cu" in found else "cc" if "cc" in found else language


def _compile_inputs(
    inputs: Sequence[Path], options: Sequence[str], cwd: Path, cc: Cc
) -> list[Path]:
    """Replace the sources among the inputs by their object files."""
    languages = {i: LANGUAGE_OF_SUFFIX.get(path.suffix) for i, path in enumerate(inputs)}
    jobs = {
        i: Compilation(inputs[i], cwd / f"{i}.o", language, tuple(options))
        for i, language in languages.items()
        if language is not None
    }
    compiled = compile_sources(list(jobs.values()), cwd=cwd, find=compilers(cc))
    made = dict(zip(jobs, compiled, strict=True))
    return [made.get(index, path) for index, path in enumerate(inputs)]
