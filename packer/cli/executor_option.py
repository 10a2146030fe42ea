"""``--executor``: where compilers run."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from runtime.error import ExportError

if TYPE_CHECKING:
    from concurrent.futures import Executor

_POOLS = {"threads": "ThreadPoolExecutor", "processes": "ProcessPoolExecutor"}


def executor_text(text: str) -> str:
    """Check the text of the option."""
    kind, separator, rest = text.partition(":")
    is_pool = kind in _POOLS
    if not (separator and kind and rest) or (is_pool and not (rest.isdecimal() and int(rest))):
        raise argparse.ArgumentTypeError(
            f"expected threads:N, processes:N or MODULE:FUNCTION, found {text!r}"
        )
    return text


@contextlib.contextmanager
def open_executor(text: str | None) -> Iterator[Executor | None]:
    """Make the executor, and shut it down at the end of the block.

    A function of a module returns one; its module is also searched in the current folder. Raises
    ExportError if there is no such module or function, or if it fails.
    """
    if text is None:
        yield None
        return
    kind, _, rest = text.partition(":")
    pool = _POOLS.get(kind)
    with contextlib.ExitStack() as stack:
        if pool is not None:
            made = getattr(import_module("concurrent.futures"), pool)(int(rest))
        else:
            made = _called(kind, rest)
        if isinstance(made, contextlib.AbstractContextManager):
            made = stack.enter_context(made)
        yield made


def _called(module: str, function: str) -> Executor:
    sys.path.insert(0, os.getcwd())
    try:
        made: Executor = getattr(import_module(module), function)()
    except Exception as error:
        text = f"--executor {module}:{function}: {type(error).__name__}: {error}"
        raise ExportError(f"{text}; expected a function that returns an executor") from error
    finally:
        sys.path.remove(os.getcwd())
    return made
