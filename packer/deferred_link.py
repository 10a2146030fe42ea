"""link_library(inputs, path): link what an export deferred, in one straight line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.abi import FACT_PREFIX, FUNCTION_PREFIX
from runtime.error import ExportError
from runtime.serial.stream import FileRange

from .dialect import DATA_SYMBOLS
from .files.arguments import list_of
from .files.output import refuse_output_among_inputs, replacing
from .files.progress import output_of, silent
from .files.text import path_error
from .target import find_target
from .toolchain.build import building
from .toolchain.cross_linker import find_linker
from .toolchain.link_input import LinkInput
from .toolchain.linker import whole
from .toolchain.soname import soname_options, verify_soname
from .toolchain.tarball import unsafe_options
from .toolchain.undefined import Linked, check_undefined, split_allowed
from .toolchain.verify import verify_output

if TYPE_CHECKING:
    from runtime.serial.stream import Chunk

    from .elf.object_file import Definition
    from .files.progress import Progress
    from .toolchain.linker import Fcompile


def link_library(
    inputs: Sequence[str | os.PathLike[str]],
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    soname: str | None = None,
    options: Sequence[str] = (),
    fcompile: Fcompile | None = None,
    workspace_dir: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Path:
    """Link a ``.tar``, ``.o`` or ``.a`` of `export_library`, on a machine that has a linker.

    Parameters
    ----------
    inputs : sequence of path
        At least one. All members of an archive are linked.
    path : path
        The file to write: a shared library, or an object or archive by the suffix.
    target : str, optional
        The triple of another machine, as for `export_library`.
    soname : str, optional
        The library's name for other binaries, as for `export_library`.
    options : sequence of str
        Further options for the linker driver, and ``"--allow-undefined"`` as for `export_library`.
    fcompile : callable, optional
        Links instead of the default toolchain, as for `export_library`.
    workspace_dir, progress
        As for `export_library`.

    Returns
    -------
    Path
        `path`.

    Raises
    ------
    ExportError
        If an input is not a tar, object or archive, is damaged or for another machine, or if a tar
        contains what no export writes, such as an option that could make the linker run a program.
    ToolchainError
        If there is no linker, if it fails, or if its output lacks a part of the inputs.

    Notes
    -----
    No code of the inputs is run, and a tar is unpacked in a private folder only.
    """
    step = progress or silent
    inputs = list_of(inputs, "inputs")
    options, allowed = split_allowed(list_of(options, "options"))
    output_format, linker = find_linker(path, fcompile, target)
    if output_format.suffix == "tar":
        text = "a tar is not linked, and packer export writes it, expected .so, .o or .a"
        raise path_error(os.fsdecode(path), text)
    naming = soname_options(soname, os.fsdecode(path), output_format)

    step("read")
    refuse_output_among_inputs(os.fsdecode(path), inputs)
    link_inputs = [LinkInput(Path(os.fsdecode(item))) for item in inputs]
    if not link_inputs:
        raise ExportError("nothing to link, expected at least one .tar, .o or .a")
    all_options = [*_passed_on(link_inputs, options), *options]
    # From here on every input is known to contain objects and nothing else.
    with building(show=output_of(step)), replacing(path, workspace_dir) as workspace:
        triple = linker.triple(target)
        for item in link_inputs:
            item.check_machine(triple)
        archives = [item.path.absolute() for item in link_inputs if item.suffix == "a"]
        objects = [
            str(file)
            for index, item in enumerate(link_inputs)
            if item.suffix != "a"
            for file in item.split(workspace.directory / f"input{index}")
        ]

        step("link")
        linker(workspace.output, objects, options=[*whole(archives), *all_options, *naming])

        step("verify")
        made = output_format.read_back(workspace.output, triple)
        required = [name for item in link_inputs for name, _ in _exported(item)]
        symbols = {name: data for item in link_inputs for name, data in _embedded(item)}
        verify_output(workspace.output, made, required, symbols, symbols)
        verify_soname(workspace.output, soname)
        named = {path: path.name for path in (*archives, *map(Path, objects))}
        linked = Linked(Path(path), find_target(triple), all_options, named, allowed)
        check_undefined(made, linked)
        # From here on the library is known to contain all that was exported, byte for byte.

        step("commit")
        workspace.commit(is_program=output_format.is_linked)
    return Path(path)


def _passed_on(link_inputs: Sequence[LinkInput], given: Sequence[str]) -> list[str]:
    """Return the options of tars, after a check that all of them are safe."""
    for item in link_inputs:
        if refused := [o for o in unsafe_options(item.options) if o not in given]:
            text = (
                f"contains the option {refused[0]!r}, which is not passed on to a linker by default"
            )
            repeat = f"if you trust it, repeat it: --option={refused[0]}"
            raise path_error(item.path, f"{text}; {repeat}")
    return [option for item in link_inputs for option in item.options if option not in given]


def _exported(link_input: LinkInput) -> Iterator[tuple[str, Definition]]:
    """Yield what an export defined: functions, facts, the blob; not variables of the loader."""
    for found in link_input.objects:
        for name, definition in found.definitions.items():
            is_function = FUNCTION_PREFIX in name or FACT_PREFIX in name
            is_ours = is_function or name.endswith(DATA_SYMBOLS)
            if is_ours and definition.is_exported and definition.offset is not None:
                yield name, definition


def _embedded(link_input: LinkInput) -> Iterator[tuple[str, Sequence[Chunk]]]:
    for name, (offset, nbytes, _) in _exported(link_input):
        if name.endswith(DATA_SYMBOLS) and offset is not None:
            yield name, [FileRange(str(link_input.path), offset, nbytes)]
