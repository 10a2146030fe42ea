"""Compile and link: create_shared and create_object."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from ..files.arguments import PathLike, list_of, one_or_more
from ..files.output import reporting
from ..files.private_directory import private_directory
from ..files.text import shown_path
from .build import current_build
from .compilation import Compilation, compile_sources, spell
from .compiler import (
    LANGUAGE_OF_SUFFIX,
    Compilers,
    Language,
    compilers,
    dump_machine,
    find_compiler,
    is_clang,
    is_nvcc,
    named_compiler,
    refuse_other_programs,
)
from .cross_search import without_cxx_library
from .outcome import check
from .process import run
from .reproducible import prefix_maps

Cc = str | Compilers | None
Function = TypeVar("Function", bound=Callable[..., None])

# Without -Bsymbolic a kernel named `gamma` or `index` would be bound to the C library's function.
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


def target_triple(cc: str | None = None) -> str | None:
    """Return a compiler's target, as ``x86_64-linux-gnu``, or None if it is unknown.

    Raises ToolchainError if there is no compiler, or if a variable names a program that is not a
    compiler.
    """
    if cc is None and (named := named_compiler("link")):
        refuse_other_programs(*named)
    return dump_machine(find_compiler("link", cc))


def as_fcompile(output_format: str) -> Callable[[Function], Function]:
    """Give a function the attributes that TVM's `export_library` reads of an `fcompile`."""

    def decorate(function: Function) -> Function:
        vars(function).update(
            output_format=output_format,
            object_format="o",
            get_target_triple=target_triple,
            compile_sources=compile_sources,
        )
        return function

    return decorate


@as_fcompile("so")
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
        The library. It is linked in a private folder and renamed, so it is never incomplete.
    objects : path or sequence of paths
        Object files, static libraries and sources (.c, .cc, .cpp, .cxx, .C, .cu), in link order.
    options : sequence of str, optional
        Options after the default ones, for sources and for the link.
    cc : str or callable, optional
        As in `find_compiler`, or a function that finds the compiler for a language. CUDA sources
        are compiled by nvcc.
    language : "link", "c", "cc" or "cu"
        The language whose driver links, unless there are C++ or CUDA sources.

    Raises
    ------
    ToolchainError
        If there is no compiler, or if it fails.
    ExportError
        If the folder of `output` cannot be written, or if `options` is one str.

    Notes
    -----
    `export_library` reads the attributes ``output_format``, ``object_format`` and
    ``get_target_triple`` of an `fcompile`; this function has them.
    """
    inputs = [Path(item).absolute() for item in one_or_more(objects, "objects")]
    words = list_of(options, "options")
    with making(output) as (cwd, made):
        driver = compilers(cc)(_link_language(inputs, language))
        linkable = _compile_inputs(inputs, words, cwd, cc)
        _link(driver, "shared", made, linkable, [*words, "-lm"], output)


# For C alone: a C driver takes half as long, but finds no C++ library.
vars(create_shared)["link_c"] = functools.partial(create_shared, language="c")


@as_fcompile("o")
def create_object(
    output: PathLike,
    objects: PathLike | Sequence[PathLike],
    options: Sequence[str] | None = None,
    cc: Cc = None,
) -> None:
    """Merge objects to one object, which is linked later.

    Parameters
    ----------
    output : path
        The object, written as `create_shared` does.
    objects : path or sequence of paths
        Objects and sources.
    options : sequence of str, optional
        For sources and for the linker driver. Only these options name libraries.
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
    """Make a private folder next to an output; the file that the block writes replaces it."""
    path = Path(output).absolute()
    with reporting(path), private_directory(path.parent) as cwd:
        yield cwd, cwd / "library.so"
        os.replace(cwd / "library.so", path)


def _link(
    driver: tuple[str, ...],
    mode: str,
    made: Path,
    inputs: Sequence[Path],
    options: Sequence[str],
    output: PathLike,
) -> None:
    """Run a linker driver that writes `made`; `mode` is a key of `_LINKED`."""
    private = made.parent
    build = current_build()
    build.hide(private)
    start = build.folder or private
    if "-fuse-ld=gold" in options:  # it writes the path of its output into the library
        start, options = private, [_absolute_search(word, start) for word in options]
    archives = [word for word in options if os.path.isabs(word) and os.path.isfile(word)]
    driver = without_cxx_library(driver, [*inputs, *archives])
    if is_nvcc(driver):
        defaults = [*_LINKED_BY_NVCC[mode]]
    else:  # LTO and the assembler write names of folders to debug information
        clang = is_clang(driver)
        folders = {str(item.parent): "." for item in inputs} | {str(private.resolve()): "."}
        defaults = [*_LINKED[mode], *prefix_maps({str(start): "."} | folders, is_clang=clang)]
    names = [str(item.absolute()) for item in inputs]
    command = [*driver, *defaults, "-o", spell(made, start, private), *names, *options]
    completed = run(command, cwd=start, private=private)
    name = build.names.get(str(output)) or Path(output).name
    check(completed, f"linking {shown_path(name)}", made)


def _absolute_search(option: str, start: Path) -> str:
    """Make the folder of an option ``-Llib`` absolute."""
    return f"-L{start / option[2:]}" if option.startswith("-L") and option[2:] else option


def _link_language(inputs: Sequence[Path], language: Language) -> Language:
    found = {LANGUAGE_OF_SUFFIX.get(path.suffix) for path in inputs}
    return "cu" if "cu" in found else "cc" if "cc" in found else language


def _compile_inputs(
    inputs: Sequence[Path], options: Sequence[str], cwd: Path, cc: Cc
) -> list[Path]:
    """Compile the sources among the inputs, and return their object files in their place."""
    languages = {i: LANGUAGE_OF_SUFFIX.get(path.suffix) for i, path in enumerate(inputs)}
    jobs = {
        i: Compilation(inputs[i], cwd / f"{i}.o", language, tuple(options))
        for i, language in languages.items()
        if language is not None
    }
    compiled = compile_sources(list(jobs.values()), cwd=cwd, find=compilers(cc))
    made = dict(zip(jobs, compiled, strict=True))
    return [made.get(index, path) for index, path in enumerate(inputs)]
