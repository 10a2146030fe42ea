"""``packer export``: make one shared library."""

from __future__ import annotations

import argparse
import os
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from runtime.error import ExportError
from runtime.module import Module, preorder

from ..declare.automatic import table_lines
from ..declare.declaration import AUTO
from ..dialect import Dialect
from ..embed import Embed
from ..export import export_library
from ..files.output import refuse_output_among_inputs
from ..files.text import path_error, shown_path
from ..modules.c_source import CSourceModule
from ..project import PROJECT_FILE, Project, project_of_sources, read_project
from ..project.sources import COMPILED, is_device_code, kind_of
from ..toolchain.formats import FORMATS, format_of
from ..toolchain.visibility import VISIBILITIES
from .compiler_options import add_compiler_options, compiler_words, linker_words
from .model_options import add_model_options, model_source, note_about_speed
from .numba_options import add_numba_options, numba_source
from .parser import CommandParser
from .terminal import Steps, showing_steps, size_text, write, write_error
from .trust_options import add_trust_options

if TYPE_CHECKING:
    from ..project.sources import Functions

_DESCRIPTION = """\
Make one shared library of a tree of modules, or the objects to link one on another machine.

packer.toml describes the tree. A tree of source files and weights alone can be given as arguments
instead; packer.toml is not read then."""

_MAX_NAMES = 5  # in a message

_EPILOG = """\
examples:
  packer export a.so a.c       # every function of a.c; prints the declarations
  packer export a.so src/*.c -Iinclude -DSIZE=3 -O3 -std=c11 -Wall -Llib -lfoo
  packer export a.so a.c --function add        # this function alone
  packer export a.so a.c --function "add=int64_t(int64_t a, int64_t b)"
  packer export z.so --header /usr/include/zlib.h -lz   # those of a header
  packer export                # the library that packer.toml describes
  packer export model.so       # the same, written to model.so
  packer export a.so a.c b.ll --function "run=int(float *x)" --entry run
  packer export model.so --onnx model.onnx --input-shape x=1x3x224x224
  packer export model.so --torch net.py:make   # returns model, [example]
  packer export geo.so --numba geo.py --signature "dist=float64(float64[::1])"
  packer export model.so a.c --weights model.safetensors
  packer export model.so --weights 1.safetensors --weights 2.safetensors
  packer export model.tar      # `packer link model.tar -o model.so` links it
  packer export net1.o --system-lib --c-symbol-prefix net1_    # for a program
  packer export model.so a.c --target aarch64-linux-gnu
  packer export model.so a.c --cpu x86-64-v2,x86-64-v3,x86-64-v4
  packer export --function "add=int(int)" -- -strange.so -name.c

Source files: .c .cc .cpp .cxx .cu, LLVM IR (.ll .bc), objects and archives (.o .a); device code:
.cl .ptx .cubin .fatbin .spv .clbin .hsaco. CC, CXX and NVCC name the compilers: CC="ccache gcc".

A declaration is the C type of a function without its name; the packer.toml of `packer init` lists
the types, and docs/functions.md explains them.

The suffix of OUTPUT selects its kind: .o an object, .a an archive, .tar the objects with the
options of their link; any other a shared library (docs/outputs.md). If the export fails or is
interrupted, an existing OUTPUT is unchanged."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer export``."""
    usage = "packer export [OPTION ...] [OUTPUT] [SOURCE ...]"
    parser = CommandParser("packer export", usage=usage, description=_DESCRIPTION, epilog=_EPILOG)
    add = parser.add_argument
    add("output", nargs="?", metavar="OUTPUT", help="the library; default: that of packer.toml")
    add("sources", nargs="*", metavar="SOURCE", help="host code, instead of packer.toml")
    function = "a function to export; without TYPE, SOURCE or --header declares it"
    parser.add_repeated("--function", "NAME[=TYPE]", function)
    add("--header", metavar="FILE", help="a C header; its functions are exported")
    parser.add_repeated("--weights", "FILE", "a safetensors file to pack, instead of packer.toml")
    add("--project", metavar="FILE", help=f"read this file instead of {PROJECT_FILE}")
    add("--entry", metavar="NAME", help="the function that runtime.load(OUTPUT)(...) calls")
    add("--format", choices=get_args(Dialect), help="the dialect of the tree; default: tvm")
    add("--embed", choices=get_args(Embed), help="how to embed the imports; default: auto")
    static = "register the modules at start-up, for static linking"
    add("--system-lib", action="store_true", help=static)
    prefix = "a prefix for every symbol, to link several models into a program: net1_"
    add("--c-symbol-prefix", metavar="PREFIX", help=prefix)
    visible = "declared: hide all functions of the code that are not declared"
    add("--visibility", choices=VISIBILITIES, help=visible)
    described = "store this text: version=1.0, license=MIT, ...; packer.toml can store more"
    parser.add_repeated("--metadata", "KEY=TEXT", described)
    aligned = (
        "move the constants of relax bytecode to a safetensors payload, where they are used in "
        "place; TVM does not read it"
    )
    add("--align-constants", action="store_true", help=aligned)
    levels = "CPU levels, as x86-64-v2,x86-64-v3; or native: only for this machine's processor"
    add("--cpu", metavar="LEVELS", type=_levels, help=levels)
    legacy = (
        "plain names are packed C functions, which TVM to 2025 can call; C functions are hidden"
    )
    add("--legacy-calls", action="store_true", help=legacy)
    parser.add_link_options()
    add_model_options(parser)
    add_numba_options(parser)
    add_compiler_options(parser)
    add_trust_options(parser)
    arguments = parser.parse_paths(argv)
    if (arguments.sources or arguments.weights) and arguments.project is not None:
        parser.error("argument --project: not allowed with SOURCE or --weights")
    if arguments.header and arguments.project is not None:
        parser.error("argument --project: not allowed with --header")
    if arguments.function and not (arguments.sources or arguments.header):
        parser.error("argument --function: needs SOURCE; or declare functions in packer.toml")
    arguments.model = numba_source(parser, arguments) or model_source(parser, arguments)
    has_code = arguments.sources or arguments.header or arguments.model
    if compiler_words(arguments) and not has_code:
        option = compiler_words(arguments)[0]
        parser.error(f"argument {option}: needs SOURCE; or set options in packer.toml")
    arguments.functions = _functions(parser, arguments.function)
    arguments.metadata = _metadata(parser, arguments.metadata)
    return arguments


def run(arguments: argparse.Namespace) -> None:
    """Export, and print the size and contents of the output."""
    started = time.monotonic()
    if arguments.output is not None:
        _refuse_name_of_input(arguments.output)
    with showing_steps(arguments.verbose) as steps:
        project = _project(arguments, steps)
        output = _output(arguments, project)
        refuse_output_among_inputs(output, project.inputs.paths)
        export_library(
            _root(arguments, project),
            output,
            format=arguments.format or project.format,
            embed=arguments.embed or project.embed,
            entry=arguments.entry or project.entry,
            system_lib=arguments.system_lib or project.system_lib,
            c_symbol_prefix=_prefix(arguments, project),
            addons=project.addons,
            target=arguments.target or project.target,
            workspace_dir=arguments.save_temps,
            options=[*project.options, *arguments.option, *linker_words(arguments)],
            progress=_Progress(steps, project),
            visibility=arguments.visibility or project.visibility,
            soname=project.soname if arguments.soname is None else arguments.soname,
            metadata={**project.metadata, **arguments.metadata},
            cwd=project.folder,
            jobs=arguments.jobs,
            cpu=arguments.cpu or project.cpu or None,
            signature_room=arguments.signature_room,
            legacy_calls=arguments.legacy_calls or project.legacy_calls,
            sbom=arguments.sbom,
        )
    write(_summary(output, project, time.monotonic() - started))
    for note in (*project.inputs.notes, *note_about_speed(arguments)):
        write_error(f"packer: note: {note}")
    _write_functions(project, is_found=bool(arguments.sources or arguments.header))
    if note := _nothing_to_call(output, project):
        write_error(f"{shown_path(output)}: {note}")


def _root(arguments: argparse.Namespace, project: Project) -> Module:
    """Return the root, with the constants of bytecode beside it if an option says so."""
    if not arguments.align_constants:
        return project.root
    if (arguments.format or project.format) == "tvm-ffi":
        raise ExportError(
            "--align-constants: TVM does not read a safetensors payload, expected format 'tvm', "
            "found 'tvm-ffi'; leave out one of them"
        )
    from ..relax.align import align_constants, parsed

    root = parsed(project.root)
    align_constants(root)
    return root


def _levels(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _prefix(arguments: argparse.Namespace, project: Project) -> str:
    given: str | None = arguments.c_symbol_prefix
    return project.c_symbol_prefix if given is None else given


class _Progress:
    """Shows the steps; at the last one it checks that no input has changed."""

    def __init__(self, steps: Steps, project: Project) -> None:
        self._steps = steps
        self._project = project
        self.bytes = steps.bytes
        self.output = steps.output
        self.sources = steps.sources

    def __call__(self, step: str) -> None:
        self._steps(step)
        if step == "commit":
            self._project.inputs.check_unchanged()


def _functions(parser: CommandParser, texts: Sequence[str]) -> dict[str, str]:
    functions: dict[str, str] = {}
    for text in texts:
        name, separator, declaration = (part.strip() for part in text.partition("="))
        if not name or (separator and not declaration) or (not separator and "(" in name):
            parser.error(f"argument --function: expected NAME or NAME=TYPE, found {text!r}")
        if name in functions:
            parser.error(f"argument --function: {name!r} is declared twice")
        functions[name] = declaration or AUTO
    return functions


def _metadata(parser: CommandParser, texts: Sequence[str]) -> dict[str, str]:
    metadata: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not (name and separator):
            parser.error(f"argument --metadata: expected KEY=TEXT, found {text!r}")
        if name in metadata:
            parser.error(f"argument --metadata: {name!r} is given twice")
        metadata[name] = value
    return metadata


def _project(arguments: argparse.Namespace, steps: Steps) -> Project:
    if arguments.sources or arguments.weights or arguments.header or arguments.model:
        functions: Functions | Literal["auto"] = arguments.functions or AUTO
        return project_of_sources(
            arguments.sources,
            functions,
            arguments.weights,
            compiler_words(arguments),
            header=arguments.header,
            model=arguments.model,
            progress=steps,
        )
    if arguments.project is None and not os.path.lexists(PROJECT_FILE):
        text = f"no {PROJECT_FILE} here, and no source is given; run `packer init`"
        if found := sorted(name for name in os.listdir() if kind_of(Path(name)) in COMPILED):
            given = shlex.join(["packer", "export", arguments.output or "model.so", found[0]])
            text += f", or name sources: {given}"
        raise ExportError(text, path=PROJECT_FILE)
    return read_project(PROJECT_FILE if arguments.project is None else arguments.project)


def _output(arguments: argparse.Namespace, project: Project) -> str:
    output: str | None = project.output if arguments.output is None else arguments.output
    if output is None:
        text = "no output; name it (packer export model.so), or set output in [library]"
        raise ExportError(text)
    _refuse_name_of_input(output)
    return output


def _refuse_name_of_input(output: str) -> None:
    """Refuse to write an output over what is probably an input."""
    is_host_code = kind_of(Path(output)) not in (None, "static_library")
    is_source = is_host_code or is_device_code(Path(output))
    if is_source or output.endswith(".safetensors"):
        what = "a source" if is_source else "weights"
        given = shlex.join([*(["--weights"] if not is_source else []), output])
        text = f"is the name of {what}, expected an output first: packer export model.so {given}"
        raise path_error(output, text)


def _summary(output: str, project: Project, seconds: float) -> str:
    functions, modules = project.counts()
    return (
        f"{shown_path(output)}: {size_text(os.path.getsize(output))}, "
        f"{_counted(functions, 'function')}, {_counted(modules, 'module')}, {seconds:.2f} s"
    )


def _write_functions(project: Project, *, is_found: bool) -> None:
    """Write the declarations that were found, as packer.toml has them, and what was left out."""
    hosts = [module for module in preorder(project.root) if module.is_dso_exportable]
    for module in hosts if is_found else []:
        if isinstance(module, CSourceModule) and module.is_read and module.functions:
            write("\n".join(table_lines(module.functions)))
    for name, reason in project.left_out().items():
        write_error(f"{name}: not exported: {reason}")


def _nothing_to_call(output: str, project: Project) -> str:
    """Return how to declare functions, if there is host code without any; else ""."""
    hosts = [module for module in preorder(project.root) if module.is_dso_exportable]
    if not hosts or project.counts()[0] or format_of(output) is not FORMATS["so"]:
        return ""
    if project.left_out():  # each was reported with the reason
        return ""
    from ..inspect import inspect_library  # seldom needed

    report = inspect_library(output)
    if report.functions:
        return ""
    exported = [s.name for s in report.symbols.dynamic if s.defined and s.type == "FUNC"]
    names = [name for name in exported if name != "main" and name[0] not in "_."]
    if not names:
        return 'no function is declared, and it exports no C function; in C++ use extern "C"'
    some = ", ".join(names[:_MAX_NAMES]) + (", ..." if len(names) > _MAX_NAMES else "")
    if project.output and any(isinstance(host, CSourceModule) for host in hosts):
        text = 'set functions = "auto" in the table of the module'
        return f"no function is declared; it has {some}: {text}"
    return (
        f"no function is declared; it has {some}: declare each one to call by its C type, as in "
        f"--function '{names[0]}=int(int)' for int {names[0]}(int)"
    )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
