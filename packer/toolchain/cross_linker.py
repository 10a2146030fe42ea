"""Linkers of other compilers: by the target, or as callers name them (cross_compiler)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from ..files.arguments import PathLike, list_of, one_or_more
from ..target import find_target
from .compilation import Compilation, compile_sources
from .compiler import Compilers, compilers
from .create import create_object, target_triple
from .cross_search import find_cross_compiler
from .formats import FORMATS, OutputFormat, format_of
from .linker import CompileSources, Fcompile, Linker, Triple, as_linker


def find_linker(
    path: PathLike, fcompile: Fcompile | None, triple: str | None
) -> tuple[OutputFormat, Linker]:
    """Return the format of an output, and a caller's linker for it or ours.

    Our linker searches the compilers for a target when it is called. Raises ExportError if
    `fcompile` makes another format, or if the target is unsupported.
    """
    given = as_linker(fcompile) if fcompile else None
    output_format = format_of(path, given)
    if given is not None:
        return output_format, given
    if not triple:
        return output_format, as_linker(output_format.create)
    find = functools.partial(find_cross_compiler, find_target(triple))
    return output_format, _of_compilers(find, output_format.suffix, lambda: triple)


def cross_compiler(
    compile_func: str | Callable[..., None],
    options: Sequence[str] | None = None,
    output_format: str | None = None,
    get_target_triple: Callable[[], str | None] | None = None,
    add_files: Sequence[PathLike] | None = None,
) -> Fcompile:
    """Make an `fcompile` of a compiler, or of another `fcompile`, with further options and files.

    Parameters
    ----------
    compile_func : str or callable
        A compiler for `create_shared`, or a function (output, objects, options=...).
    options : sequence of str, optional
        Passed to every call, before the call's options.
    output_format : str, optional
        The suffix of the output, without a dot; by default that of `compile_func`, or "so".
    get_target_triple : callable, optional
        By default that of `compile_func`; for a compiler what ``cc -dumpmachine`` prints.
    add_files : sequence of paths, optional
        Linked after the objects.

    Returns
    -------
    Fcompile
        Called as (output, objects, options=None).

    Raises
    ------
    ExportError
        If `options` or `add_files` is one str.
    ToolchainError
        Not here: when it is called.

    Examples
    --------
    >>> fcompile = cross_compiler("aarch64-linux-gnu-gcc", options=["-static-libgcc"])
    >>> fcompile.output_format
    'so'
    """
    words, files = list_of(options, "options"), list_of(add_files, "add_files")
    if isinstance(compile_func, str):
        triple = get_target_triple or functools.partial(target_triple, compile_func)
        linker = _of_compilers(compilers(compile_func), output_format or "so", triple)
    else:
        linker = as_linker(compile_func)

    def link(
        output: PathLike, objects: PathLike | Sequence[PathLike], options: Sequence[str]
    ) -> None:
        linker(output, [*one_or_more(objects, "objects"), *files], [*words, *options])

    return Linker(
        link,
        output_format=output_format or linker.output_format or "so",
        object_format=linker.object_format,
        get_target_triple=get_target_triple or linker.get_target_triple,
        compile_sources=_with_options(linker.compile_sources, words),
        create_object=linker.create_object,
    )


def _of_compilers(find: Compilers, output_format: str, triple: Triple) -> Linker:
    link = FORMATS.get(output_format, FORMATS["so"]).create
    return Linker(
        functools.partial(link, cc=find),
        output_format=output_format,
        get_target_triple=triple,
        compile_sources=functools.partial(compile_sources, find=find),
        create_object=functools.partial(create_object, cc=find),
    )


def _with_options(
    compile_with: CompileSources | None, options: Sequence[str]
) -> CompileSources | None:
    """Compile sources with further options, before the options of each source."""
    if compile_with is None or not options:
        return compile_with

    def compile_all(jobs: Sequence[Compilation], *, cwd: Path, **given: Compilers) -> list[Path]:
        changed = [job._replace(options=(*options, *job.options)) for job in jobs]
        return compile_with(changed, cwd=cwd, **given)

    keywords = getattr(compile_with, "keywords", {})
    return functools.partial(compile_all, **keywords)
