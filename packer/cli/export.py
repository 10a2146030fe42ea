"""``packer export``: make one shared library."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from runtime.error import ExportError
from runtime.module import preorder

from ..dialect import Dialect
from ..embed import Embed
from ..export import export_library
from ..files.output import refuse_output_among_inputs
from ..files.text import shown_path
from ..project import PROJECT_FILE, Project, project_of_sources, read_project
from ..project.sources import kind_of
from ..toolchain.formats import FORMATS, format_of
from .parser import CommandParser
from .terminal import Steps, showing_steps, size_text, write, write_error

_DESCRIPTION = """\
Make one shared library of a module tree, or what is to be linked to one elsewhere.

The tree is described by packer.toml, or, in the simple case, given by source files and weights.
If any are given, packer.toml is not read."""

_EPILOG = """\
examples:
  packer export                    # as packer.toml says
  packer export model.so           # the same, to another file
  packer export model.so add.c --function "add=int64_t(int64_t a, int64_t b)"
  packer export model.so a.c b.ll --function "f=void(float *x, int64_t n)" --entry f
  packer export model.so add.c --option=-lfoo -v
  packer export model.so add.c --weights model.safetensors
  packer export model.tar          # to be linked elsewhere: packer link model.tar -o model.so
  packer export net1.o --system-lib --c-symbol-prefix net1_    # to be linked into a program
  packer export model.so add.c --target aarch64-linux-gnu
  packer export model.so --weights 1.safetensors --weights 2.safetensors
  packer export --function "add=int(int)" -- -strange.so -name.c

Source files: .c .cc .cpp .cxx .cu, LLVM IR (.ll .bc), objects and archives (.o .a).
A function is declared by its C type without the name; see `packer init` for what may stand there.
The suffix of OUTPUT says what is made: .o an object, .a an archive, .tar the objects and what their
link needs; any other a shared library. docs/outputs.md has more.
The output appears as a whole or not at all: whatever breaks off leaves the old file."""

_HOW_TO_DECLARE = "--function 'NAME=TYPE', or functions in packer.toml"


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read the words behind ``packer export``."""
    parser = CommandParser("packer export", description=_DESCRIPTION, epilog=_EPILOG)
    add = parser.add_argument
    add("output", nargs="?", metavar="OUTPUT", help="the library; by default as packer.toml says")
    add("sources", nargs="*", metavar="SOURCE", help="host code, instead of packer.toml")
    add(
        "--function",
        action="append",
        default=[],
        metavar="NAME=TYPE",
        help="a function to export, with its C type; as often as needed, only with SOURCE",
    )
    add(
        "--weights",
        action="append",
        default=[],
        metavar="FILE",
        help="a safetensors file to carry; as often as needed, with SOURCE or without",
    )
    add("--project", metavar="FILE", help=f"read this file instead of {PROJECT_FILE}")
    add("--entry", metavar="NAME", help="the function that calling the library itself runs")
    add("--format", choices=get_args(Dialect), help="the dialect of the tree: who can read it")
    add("--embed", choices=get_args(Embed), help="how the imports get into the library")
    add(
        "--system-lib",
        action="store_true",
        help="register everything at start-up, for static linking into a program",
    )
    add(
        "--c-symbol-prefix",
        metavar="PREFIX",
        help="stands before every symbol, so that several models go into one program",
    )
    add(
        "--option",
        action="append",
        default=[],
        metavar="OPTION",
        help="a further option for the linker driver; as often as needed",
    )
    add("--target", metavar="TRIPLE", help="for another machine or system: aarch64-linux-gnu")
    add("--save-temps", metavar="FOLDER", help="keep the intermediate files in this folder")
    add("-v", "--verbose", action="store_true", help="print each step, file and command")
    arguments = parser.parse_paths(argv)
    if (arguments.sources or arguments.weights) and arguments.project is not None:
        parser.error("argument --project: not with SOURCE or --weights, which stand in its place")
    if arguments.function and not arguments.sources:
        parser.error("argument --function: only with SOURCE; else packer.toml declares functions")
    arguments.functions = _functions(parser, arguments.function)
    return arguments


def run(arguments: argparse.Namespace) -> None:
    """Export, and say in one line what was made.

    Raises
    ------
    PackerError
        The library cannot be made.
    """
    started = time.monotonic()
    project = _project(arguments)
    output = _output(arguments, project)
    refuse_output_among_inputs(Path(output), project.inputs.paths)
    with showing_steps(arguments.verbose) as steps:
        export_library(
            project.root,
            output,
            format=arguments.format or project.format,
            embed=arguments.embed or project.embed,
            entry=arguments.entry or project.entry,
            system_lib=arguments.system_lib or project.system_lib,
            c_symbol_prefix=_prefix(arguments, project),
            addons=project.addons,
            target=arguments.target or project.target,
            workspace_dir=arguments.save_temps,
            options=[*project.options, *arguments.option],
            progress=_Progress(steps, project),
        )
    write(_summary(output, project, time.monotonic() - started))
    if _cannot_be_called(output, project):
        text = "it declares no function; declare each one that is to be called"
        write_error(f"{shown_path(output)}: {text}: {_HOW_TO_DECLARE}")


def _prefix(arguments: argparse.Namespace, project: Project) -> str:
    given: str | None = arguments.c_symbol_prefix
    return project.c_symbol_prefix if given is None else given


class _Progress:
    """Shows the steps; at the last one the inputs are found to be what they were."""

    def __init__(self, steps: Steps, project: Project) -> None:
        self._steps = steps
        self._project = project
        self.bytes = steps.bytes

    def __call__(self, step: str) -> None:
        self._steps(step)
        if step == "commit":
            self._project.inputs.check_unchanged()


def _functions(parser: CommandParser, texts: Sequence[str]) -> dict[str, str]:
    functions: dict[str, str] = {}
    for text in texts:
        name, separator, declaration = (part.strip() for part in text.partition("="))
        if not separator or not name or not declaration:
            parser.error(f"argument --function: expected NAME=TYPE, found {text!r}")
        if name in functions:
            parser.error(f"argument --function: {name!r} is declared twice")
        functions[name] = declaration
    return functions


def _project(arguments: argparse.Namespace) -> Project:
    if arguments.sources or arguments.weights:
        return project_of_sources(arguments.sources, arguments.functions, arguments.weights)
    if arguments.project is None and not os.path.lexists(PROJECT_FILE):
        text = (
            f"there is no {PROJECT_FILE} here, and no source file is given: begin with "
            "`packer init`, or name sources: "
            "packer export model.so add.c --function 'add=int64_t(int64_t a, int64_t b)'"
        )
        raise ExportError(text, path=PROJECT_FILE)
    return read_project(PROJECT_FILE if arguments.project is None else arguments.project)


def _output(arguments: argparse.Namespace, project: Project) -> str:
    output: str | None = project.output if arguments.output is None else arguments.output
    if output is None:
        text = "no output: name it, or set output in [library]: packer export model.so"
        raise ExportError(text)
    is_source = kind_of(Path(output)) not in (None, "static_library")
    if is_source or output.endswith(".safetensors"):
        what = "a source" if is_source else "weights"
        text = f"{shown_path(output)}: is the name of {what}, expected an output: model.so"
        raise ExportError(text, path=output)
    return output


def _summary(output: str, project: Project, seconds: float) -> str:
    functions, modules = project.counts()
    return (
        f"{shown_path(output)}: {size_text(os.path.getsize(output))}, "
        f"{_counted(functions, 'function')}, {_counted(modules, 'module')}, {seconds:.2f} s"
    )


def _cannot_be_called(output: str, project: Project) -> bool:
    """Return True for a library with host code that has no functions to look up."""
    hosts = [module for module in preorder(project.root) if module.is_dso_exportable]
    if not hosts or project.counts()[0] or format_of(output) is not FORMATS["so"]:
        return False
    from ..inspect import inspect_library  # seldom needed

    return not inspect_library(output).functions


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
