"""``packer export --all``: every project below a folder, for every machine and CPU level."""

from __future__ import annotations

import argparse
import itertools
import os
import shlex
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from runtime.error import ExportError

from ..project import PROJECT_FILE
from ..toolchain.process import Completed, run
from .export_options import PASSED, PASSED_SWITCHES
from .terminal import write, write_error


class Cell(NamedTuple):
    """One export: a project, and the values of --matrix."""

    project: Path
    values: tuple[tuple[str, str], ...]
    output: Path

    def __str__(self) -> str:
        values = ", ".join(f"{key} {value}" for key, value in self.values)
        return f"{self.project} ({values})" if values else str(self.project)


def export_all(arguments: argparse.Namespace) -> None:
    """Export all; raise ExportError at the end if some failed.

    Each runs in a separate process, so that no project changes another one.
    """
    if arguments.jobs is not None and arguments.jobs < 1:
        raise ExportError(f"jobs: expected at least 1, found {arguments.jobs}")
    folder = Path(arguments.output or ".")
    cells = [*_cells(folder, arguments.matrix)]
    jobs = arguments.jobs or len(os.sched_getaffinity(0))
    at_a_time = min(jobs, len(cells))
    words = [*_passed(arguments), "--jobs", str(jobs // at_a_time)]
    with ThreadPoolExecutor(at_a_time) as threads:
        failed = 0
        for cell, done in zip(cells, threads.map(lambda c: _export(c, words), cells), strict=True):
            failed += _report(cell, done)
    if failed:
        raise ExportError(f"{failed} of {len(cells)} exports failed")


def _cells(folder: Path, matrix: list[tuple[str, list[str]]]) -> Iterator[Cell]:
    projects = sorted(_projects(folder))
    if not projects:
        raise ExportError(f"{folder}: no {PROJECT_FILE} in this folder or below", path=str(folder))
    rows = [[(key, value) for value in values] for key, values in matrix]
    for project, values in itertools.product(projects, itertools.product(*rows)):
        output = _output_of(project)
        below = output.parent.joinpath(*(value for _, value in values))
        yield Cell(project, values, below / output.name)


def _projects(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        raise ExportError(f"{folder}: there is no such folder", path=str(folder))
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        if PROJECT_FILE in files:
            yield Path(place, PROJECT_FILE)


def _output_of(project: Path) -> Path:
    try:
        output = tomllib.loads(project.read_text(encoding="utf-8"))["library"]["output"]
        return Path(project.parent, output)
    except (OSError, ValueError, KeyError, TypeError) as error:
        text = f"{project}: no output in [library], which --all needs ({error})"
        raise ExportError(text, path=str(project)) from error


def _passed(arguments: argparse.Namespace) -> list[str]:
    words = []
    for name in PASSED:
        if value := getattr(arguments, name):
            text = ",".join(value) if isinstance(value, list) else str(value)
            words += [f"--{name.replace('_', '-')}", text]
    words += [f"--{n.replace('_', '-')}" for n in PASSED_SWITCHES if getattr(arguments, n)]
    return words


def _export(cell: Cell, words: list[str]) -> Completed:
    cell.output.parent.mkdir(parents=True, exist_ok=True)
    chosen = [f"--{key}={value}" for key, value in cell.values]
    command = [sys.executable, "-m", "packer", "export", str(cell.output)]
    return run([*command, "--project", str(cell.project), *words, *chosen], cwd=Path.cwd())


def _report(cell: Cell, done: Completed) -> bool:
    """Write what the export wrote; return True if it failed."""
    output = done.output.rstrip("\n")
    if done.returncode == 0:
        write(output)
        return False
    write_error(f"{cell}: {output or shlex.join(done.command)}")
    return True
