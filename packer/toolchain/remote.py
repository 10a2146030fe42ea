"""Compile in an executor: in other threads, processes, or on other machines.

The preprocessor runs here, so a worker needs no source, header or folder of this machine: it gets
the preprocessed text, and returns the object. Its compiler must be the same program.
"""

from __future__ import annotations

import functools
import os
import shutil
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from runtime.error import ToolchainError

from ..files.private_directory import temporary_directory
from ..files.text import shown_path
from .cache import Command
from .cache.inputs import may_read_files
from .compiler import is_clang, is_nvcc, is_zig
from .process import Completed, run, run_all

# The language of preprocessed text (GCC, "Options Controlling the Kind of Output").
_PREPROCESSED = {"c": "cpp-output", "c++": "c++-cpp-output"}
# Beginnings of options whose effect depends on the machine or on its folders: debug information
# has the command. Such a source is compiled here.
_LOCAL = (
    *("-g", "-march=native", "-mcpu=native", "-mtune=native", "-frecord", "-fprofile", "-fplugin"),
    *("-ftest-coverage", "--coverage", "-save-temps", "-fmodules", "@"),
)
_NUM_FILE_WORDS = 6  # "-x", language, "-c", source, "-o", object
_PROGRAMS = ("cc1", "cc1plus", "as")


class Unit(NamedTuple):
    """One compilation, with all that it needs."""

    name: str  # the source, for messages
    compiler: tuple[str, ...]  # the first words of the command
    identity: str  # the identity of that compiler
    options: tuple[str, ...]  # the words after it
    language: str  # that of the text
    text: bytes  # the preprocessed source


class Made(NamedTuple):
    """The outcome in a worker: as `Completed`, and the object."""

    returncode: int
    output: str
    data: bytes


def compile_unit(unit: Unit) -> Made:
    """Compile in a worker.

    Raises ToolchainError if it has no such compiler.
    """
    path, *more = unit.compiler
    program = path if os.path.exists(path) else shutil.which(os.path.basename(path))
    found = None if program is None else identity_of((os.path.abspath(program), *more))
    if program is None or found != unit.identity:
        has = f"has {found}" if found else "has none of this name"
        text = f"compiling {unit.name}: the worker on {socket.gethostname()} {has}"
        expected = f"expected {os.path.basename(path)} {unit.identity}"
        raise ToolchainError(f"{text}, {expected}; install the same compiler there")
    with temporary_directory() as folder:
        source, output = folder / "unit.i", folder / "unit.o"
        source.write_bytes(unit.text)
        quiet = ["-Qunused-arguments"] if is_clang(unit.compiler) else []  # -I, of which it warns
        files = ("-x", unit.language, "-c", str(source), "-o", str(output))
        words = [program, *more, *quiet, *unit.options, *files]
        done = run(words, cwd=folder, private=folder)
        data = output.read_bytes() if output.is_file() else b""
        return Made(done.returncode, done.output.replace(f"{folder}/", ""), data)


@functools.cache
def identity_of(compiler: tuple[str, ...]) -> str:
    """Return the version of a compiler, and a digest of its programs."""
    questions = ("--version", *(f"-print-prog-name={program}" for program in _PROGRAMS))
    asked = [[*compiler, question] for question in questions]
    done = run_all(asked, cwd=Path("/"))
    paths = [os.path.realpath(compiler[0])]
    paths += [path for completed in done[1:] if (path := shutil.which(completed.output.strip()))]
    digest = sha256()
    for path in paths:
        digest.update(Path(path).read_bytes())
    version = done[0].output.splitlines()[0] if done[0].output else ""
    return f"{version} ({digest.hexdigest()[:12]})"


def run_in_executor(
    executor: Executor,
    commands: Sequence[tuple[Sequence[str], Command, str]],
    *,
    cwd: Path,
    private: Path,
    ended: Callable[[int, Completed], None],
) -> None:
    """Run compilations as `run_all` does, in an executor where that gives the same bytes.

    `commands` has each command line, its facts, and the source's name. Raises ToolchainError if the
    executor fails, or a worker has another compiler.
    """
    far = [i for i, (words, command, _) in enumerate(commands) if _can_go(words, command)]
    near = [i for i in range(len(commands)) if i not in far]
    futures: dict[int, Future[Made]] = {}

    def submit(number: int, completed: Completed) -> None:
        index = far[number]
        _, command, name = commands[index]
        if completed.returncode != 0:
            ended(index, completed)
            return
        unit = _unit(command, name, _text_of(command))
        if may_read_files(unit.text):
            near.append(index)
            return
        printed[index] = completed
        futures[index] = _submitted(executor, unit)

    printed: dict[int, Completed] = {}
    try:
        words = [_preprocessing(*commands[i][:2]) for i in far]
        run_all(words, cwd=cwd, private=private, ended=submit)
        here = [commands[i][0] for i in near]
        run_all(here, cwd=cwd, private=private, ended=lambda n, done: ended(near[n], done))
        for index, future in sorted(futures.items()):
            words_of, command, name = commands[index]
            made = _result(future, name)
            if made.data:
                command.output.write_bytes(made.data)
            output = printed[index].output + made.output
            ended(index, Completed(tuple(words_of), made.returncode, output))
            if made.returncode != 0:
                break
    finally:
        for future in futures.values():
            future.cancel()


def _can_go(words: Sequence[str], command: Command) -> bool:
    if is_nvcc(command.compiler) or is_zig(command.compiler):
        return False
    return command.language in _PREPROCESSED and not any(w.startswith(_LOCAL) for w in words)


def _preprocessing(words: Sequence[str], command: Command) -> list[str]:
    """Return the command that writes the preprocessed text instead of the object."""
    made = str(command.output.absolute())
    return [*(str(_text_of(command)) if word == made else word for word in words), "-E"]


def _text_of(command: Command) -> Path:
    """Return the file of the preprocessed text."""
    return command.output.absolute().with_suffix(".i")


def _unit(command: Command, name: str, text: Path) -> Unit:
    language = _PREPROCESSED[command.language]
    options = command.words[len(command.compiler) : -_NUM_FILE_WORDS]
    identity = identity_of(command.compiler)
    data = text.read_bytes()
    text.unlink()
    return Unit(name, command.compiler, identity, tuple(options), language, data)


def _submitted(executor: Executor, unit: Unit) -> Future[Made]:
    try:
        return executor.submit(compile_unit, unit)
    except Exception as error:
        raise _failed(unit.name, error) from error


def _result(future: Future[Made], name: str) -> Made:
    try:
        return future.result()
    except ToolchainError:
        raise
    except Exception as error:
        raise _failed(name, error) from error


def _failed(name: str, error: Exception) -> ToolchainError:
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    return ToolchainError(f"compiling {shown_path(name)}: the executor failed: {what}")
