"""``packer export``: make one shared library."""

from __future__ import annotations

import argparse
import os
import shlex
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from runtime.error import ExportError
from runtime.module import Module, preorder

from ..declare.automatic import table_lines
from ..declare.declaration import AUTO
from ..export import export_library
from ..files.output import refuse_output_among_inputs
from ..files.text import path_error, shown_path
from ..modules.c_source import CSourceModule
from ..output import Build, Output
from ..project import PROJECT_FILE, Project, project_of_sources, read_project
from ..project.registry import problems
from ..project.sources import COMPILED, is_device_code, kind_of
from ..toolchain.formats import FORMATS, format_of
from ..toolchain.undefined import allowing
from .compiler_options import compiler_words, linker_words
from .executor_option import open_executor
from .export_options import parse as parse
from .terminal import Steps, showing_steps, size_text, write, write_error
from .trust_options import encrypting_parts

if TYPE_CHECKING:
    from ..project.sources import Functions

_MAX_NAMES = 5  # in a message


def run(arguments: argparse.Namespace) -> None:
    """Export, and print the size and contents of the output."""
    if arguments.all:
        from .export_all import export_all

        export_all(arguments)
    else:
        _export(arguments)


def _export(arguments: argparse.Namespace) -> None:
    started = time.monotonic()
    _find_packages(arguments)
    if arguments.output is not None:
        _refuse_name_of_input(arguments.output)
    with (
        showing_steps(arguments.verbose) as steps,
        open_executor(arguments.executor) as executor,
        ExitStack() as stack,
    ):
        project = _project(arguments, steps)
        output = _output(arguments, project)
        refuse_output_among_inputs(output, project.inputs.paths)
        root, prefix = _root(arguments, project), arguments.c_symbol_prefix
        encrypted = stack.enter_context(encrypting_parts(root, arguments, project))
        export_library(
            root,
            output,
            output=Output(
                visibility=arguments.visibility or project.visibility,
                soname=project.soname if arguments.soname is None else arguments.soname,
                metadata={**project.metadata, **arguments.metadata},
                signature_room=arguments.signature_room,
                legacy_calls=arguments.legacy_calls or project.legacy_calls,
                sbom=arguments.sbom,
            ),
            build=Build(
                target=arguments.target or project.target,
                cpu=arguments.cpu or project.cpu or None,
                embed=arguments.embed or project.embed,
                cwd=project.folder,
                jobs=arguments.jobs,
                executor=executor,
            ),
            format=arguments.format or project.format,
            entry=arguments.entry or project.entry,
            system_lib=arguments.system_lib or project.system_lib,
            c_symbol_prefix=project.c_symbol_prefix if prefix is None else prefix,
            addons=project.addons,
            workspace_dir=arguments.save_temps,
            options=_link_options(arguments, project),
            progress=_Progress(steps, project, output),
        )
    write(_summary(output, project, time.monotonic() - started))
    if encrypted:
        write(f"encrypted: {', '.join(encrypted)}")
    for note in [*project.inputs.notes, *problems().values()]:
        write_error(f"packer: note: {note}")
    _write_functions(project, is_found=bool(arguments.sources or arguments.header))


def _link_options(arguments: argparse.Namespace, project: Project) -> list[str]:
    allowed = allowing(project.allow_undefined)
    packages = [word for package in arguments.packages for word in package.link_options]
    return [*project.options, *allowed, *arguments.option, *linker_words(arguments), *packages]


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


class _Progress:
    """Shows the steps; before the last one it refuses an output without anything to call."""

    def __init__(self, steps: Steps, project: Project, output: str) -> None:
        self._steps = steps
        self._project = project
        self._output = output
        self.bytes = steps.bytes
        self.output = steps.output
        self.sources = steps.sources

    def __call__(self, step: str) -> None:
        self._steps(step)
        if step == "commit":
            self._project.inputs.check_unchanged()

    def made(self, made: Path) -> None:
        """Refuse the output if nothing can be called, before it replaces an older one."""
        if text := _nothing_to_call(self._output, made, self._project):
            _write_left_out(self._project)
            raise path_error(self._output, text)


def _find_packages(arguments: argparse.Namespace) -> None:
    """Find the packages; without sources and headers the header of each package is read."""
    arguments.packages = []
    if not arguments.pkg_config:
        return
    from ..toolchain.pkg_config import find_package, header_of

    arguments.packages = [find_package(name) for name in arguments.pkg_config]
    if not (arguments.sources or arguments.header):
        arguments.header = [header_of(package) for package in arguments.packages]


def _project(arguments: argparse.Namespace, steps: Steps) -> Project:
    if arguments.sources or arguments.weights or arguments.header or arguments.model:
        functions: Functions | Literal["auto"] = arguments.functions or AUTO
        return project_of_sources(
            arguments.sources,
            functions,
            arguments.weights,
            [
                *compiler_words(arguments),
                *(word for package in arguments.packages for word in package.compile_options),
            ],
            headers=arguments.header,
            header_filter=arguments.header_filter,
            constants=arguments.constants,
            model=arguments.model,
            progress=steps,
        )
    if arguments.project is None and not os.path.lexists(PROJECT_FILE):
        text = f"no {PROJECT_FILE} here, and no source is given; run `packer init`"
        if found := sorted(name for name in os.listdir() if kind_of(Path(name)) in COMPILED):
            given = shlex.join(["packer", "export", arguments.output or "model.so", found[0]])
            text += f", or name sources: {given}"
        raise ExportError(text, path=PROJECT_FILE)
    return read_project(
        PROJECT_FILE if arguments.project is None else arguments.project, progress=steps
    )


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
    constants = project.count_constants()
    parts = [
        size_text(os.path.getsize(output)),
        _counted(functions, "function"),
        *([_counted(constants, "constant")] if constants else []),
        _counted(modules, "module"),
        f"{seconds:.2f} s",
    ]
    return f"{shown_path(output)}: {', '.join(parts)}"


def _write_functions(project: Project, *, is_found: bool) -> None:
    """Write the declarations that were found, as packer.toml has them, and what was left out."""
    hosts = [module for module in preorder(project.root) if module.is_dso_exportable]
    for module in hosts if is_found else []:
        if isinstance(module, CSourceModule) and module.is_read and module.functions:
            write("\n".join(table_lines(module.functions)))
    _write_left_out(project)


def _write_left_out(project: Project) -> None:
    for name, reason in project.left_out().items():
        write_error(f"{name}: not exported: {reason}")


def _nothing_to_call(output: str, made: Path, project: Project) -> str:
    """Return how to declare functions, if a library of host code alone has none; else ""."""
    modules = list(preorder(project.root))
    hosts = [module for module in modules if module.is_dso_exportable]
    is_wanted = len(hosts) < len(modules) or any(getattr(m, "drops", False) for m in hosts)
    if (
        is_wanted
        or project.counts()[0]
        or project.count_constants()
        or format_of(output) is not FORMATS["so"]
    ):
        return ""
    from ..inspect import inspect_library  # seldom needed

    report = inspect_library(made)
    if report.functions:
        return ""
    if project.left_out():
        return "no function is exported: each was left out for its reason above"
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
