"""Toolchains of other compilers: by the target, or as a caller names them (cross_compiler)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from ..files.arguments import PathLike, list_of, one_or_more
from ..target import find_target
from .compiler import Compilation, Compilers, compile_sources, compilers
from .create import CompileSources, Fcompile, as_fcompile, create_object, target_triple
from .cross import find_cross_compiler
from .formats import FORMATS


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
        triple = get_target_triple or functools.partial(target_triple, compile_func)
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
    linker: Callable[..., None] = FORMATS.get(output_format, FORMATS["so"]).linker
    link = functools.partial(linker, cc=find)
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


def _unknown_triple() -> None:
    return None
