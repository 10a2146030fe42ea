"""The process of a Python file: it imports the file, compiles its functions, and answers."""

from __future__ import annotations

import faulthandler
import importlib.util
import os
import pickle
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any

from packer.files.text import shown_path

from .compile import compile_functions
from .deferred import deferring
from .found import Found, NotFoundError, find, is_numba_function
from .script import ERROR, IMPORTED, READY, STEP

# A traceback is written this long before the deadline.
_EARLY = 0.2


class _FileError(Exception):
    """The file cannot be used; the text says why."""


def main(request: Mapping[str, Any]) -> None:
    """Import, compile and answer."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    path, answer = Path(request["path"]), request["answer"]
    os.write(answer, READY)
    early = max(request["timeout"] - _EARLY, request["timeout"] / 2)
    faulthandler.dump_traceback_later(early, file=answer)
    try:
        module = _imported(path)
        faulthandler.cancel_dump_traceback_later()
        os.write(answer, IMPORTED)
        functions, refused = _functions(module, path, request["signatures"], request["only"])
        blas = None if request["blas"] is None else Path(request["blas"])

        def tell(step: str) -> None:
            os.write(answer, STEP + step.encode() + b"\n")

        units = compile_functions(functions, request["prefix"], request["processors"], blas, tell)
        units = [unit._replace(refused={**refused, **unit.refused}) for unit in units]
        data = pickle.dumps(units)
    except _FileError as error:
        data = ERROR + str(error).encode("utf-8", "replace")
    with os.fdopen(answer, "wb") as output:
        output.write(data)
    os._exit(0)  # the file may have started threads


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


def _imported(path: Path) -> ModuleType:
    """Import the file as a module of its name."""
    sys.path.insert(0, str(path.parent))
    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise _FileError(f"{shown_path(path)}: expected a Python file, .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        with deferring():
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise _FileError(_described(path, error)) from error
    return module


def _described(path: Path, error: BaseException) -> str:
    """Return the line of the file and the text of an error."""
    line = None
    if isinstance(error, SyntaxError) and error.filename == str(path):
        line = error.lineno
    else:
        frames = walk_tb(error.__traceback__)
        lines = [number for frame, number in frames if frame.f_code.co_filename == str(path)]
        line = lines[-1] if lines else None
    place = shown_path(path) if line is None else f"{shown_path(path)}:{line}"
    text = " ".join(str(error).split())
    return f"{place}: raised {type(error).__name__} on import: {text}"


def _functions(
    module: ModuleType, path: Path, signatures: Mapping[str, Sequence[str]], only: Sequence[str]
) -> tuple[list[Found], dict[str, str]]:
    """Return the functions to compile, and the refused ones with the reasons."""
    chosen = dict.fromkeys((*signatures, *only))
    own = dict(_own(module))
    for name in chosen:
        if not hasattr(module, name):
            raise _FileError(f"{shown_path(path)}: has no function {name!r}")
    names = list(only) if only else [*own, *(name for name in chosen if name not in own)]
    names += [name for name in signatures if name not in names]
    found, refused = [], {}
    for name in names:
        try:
            found.append(find(name, getattr(module, name), signatures.get(name, ()), is_file=True))
        except NotFoundError as error:
            refused[name] = str(error)
    if not names:
        text = "has no function of @njit, @vectorize, @guvectorize or @cfunc"
        raise _FileError(f"{shown_path(path)}: {text}")
    return found, refused


def _own(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the functions that Numba compiles and that the file itself defines, once each."""
    seen: set[int] = set()
    for name, value in vars(module).items():
        if is_numba_function(value) and value.__wrapped__.__module__ == module.__name__:
            if id(value) not in seen:
                yield name, value
            seen.add(id(value))
