"""``kind = "python"``: a module that a user's Python file makes, ``build.py:make``."""

from __future__ import annotations

import contextlib
import importlib.util
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from traceback import walk_tb
from types import ModuleType

from runtime.error import ExportError, PackerError, near_names
from runtime.module import Module

from ..files.text import shown_path

# The name in sys.modules; no import statement can name it, so no module is shadowed.
_NAME = "packer factory"
_TERMINATED = (128 + signal.SIGTERM, 128 + signal.SIGHUP)


def call_factory(path: Path, name: str) -> Module:
    """Run a Python file, and return the Module that one of its functions makes, without arguments.

    The file can import the files beside it. `sys.modules` and `sys.path` are restored afterwards,
    and no bytecode is written. An error of the file or the function becomes an ExportError that
    names the line.
    """
    origin = str(path.absolute())  # the name in its code objects
    with _isolated(path.absolute().parent), _reporting(path, origin):
        spec = importlib.util.spec_from_file_location(_NAME, origin)
        assert spec is not None and spec.loader is not None  # the suffix is .py
        namespace = sys.modules[_NAME] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(namespace)
        module = _function(namespace, name)()
        if not isinstance(module, Module):
            text = f"{name}() returns {type(module).__name__}, expected a runtime.Module"
            raise ExportError(text)
    return module


def _function(namespace: ModuleType, name: str) -> Callable[[], object]:
    function: Callable[[], object] | None = getattr(namespace, name, None)
    if callable(function):
        return function
    names = [n for n, v in vars(namespace).items() if callable(v) and not n.startswith("_")]
    raise ExportError(f"has no function {name!r}{near_names(name, names)}")


@contextlib.contextmanager
def _isolated(folder: Path) -> Iterator[None]:
    """Let the file import the files beside it, and restore the interpreter's state afterwards."""
    known, search, bytecode = set(sys.modules), list(sys.path), sys.dont_write_bytecode
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.path[:], sys.dont_write_bytecode = search, bytecode
        for name in sys.modules.keys() - known:
            file = getattr(sys.modules[name], "__file__", None)
            if name == _NAME or (file and Path(file).parent == folder):
                del sys.modules[name]


@contextlib.contextmanager
def _reporting(path: Path, origin: str) -> Iterator[None]:
    """Turn any exception of the user's code into an ExportError with its line."""
    try:
        yield
    except (Exception, SystemExit) as error:
        if isinstance(error, SystemExit) and error.code in _TERMINATED:
            raise  # a signal ends this process, not the file
        line = _line_of(origin, error)
        place = shown_path(path) if line is None else f"{shown_path(path)}:{line}"
        what = str(error) if isinstance(error, PackerError) else f"{type(error).__name__}: {error}"
        raise ExportError(f"{place}: {what}", path=str(path)) from error


def _line_of(origin: str, error: BaseException) -> int | None:
    """Return the innermost line of the file in the traceback, if it has one."""
    if isinstance(error, SyntaxError) and error.filename == origin:
        return error.lineno
    frames = walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename == origin]
    return lines[-1] if lines else None
