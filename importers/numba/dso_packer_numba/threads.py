"""Numba's functions that get or set the threads; while we compile, they call parallel.c.

Numba's own versions call the addresses of its threading layer, and print with Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import types, typing
from numba.core.errors import TypingError
from numba.core.typing.templates import builtin_registry
from numba.np.ufunc import parallel

_MOST = 256  # parallel.c: MAX_THREADS
_ERROR = f"The number of threads must be between 1 and {_MOST}"


def _external(name: str, result: Any, *arguments: Any) -> Any:
    return types.ExternalFunction(name, typing.signature(result, *arguments))


_threads = _external("get_num_threads", types.intp)
_set_threads = _external("set_num_threads", types.void, types.intp)
_chunksize = _external("get_parallel_chunksize", types.uintp)
_set_chunksize = _external("set_parallel_chunksize", types.uintp, types.uintp)


def _get_num_threads() -> Callable[..., Any]:
    def impl():  # type: ignore[no-untyped-def]
        return _threads()

    return impl


def _set_num_threads(n):  # type: ignore[no-untyped-def]  # Numba compares signatures
    _check(n, "number of threads")

    def impl(n):  # type: ignore[no-untyped-def]
        if n < 1 or n > _MOST:
            raise ValueError(_ERROR)
        _set_threads(n)

    return impl


def _get_parallel_chunksize() -> Callable[..., Any]:
    def impl():  # type: ignore[no-untyped-def]
        return _chunksize()

    return impl


def _set_parallel_chunksize(n):  # type: ignore[no-untyped-def]
    _check(n, "parallel chunksize")

    def impl(n):  # type: ignore[no-untyped-def]
        if n < 0:
            raise ValueError("chunksize must be greater than or equal to zero")
        return _set_chunksize(n)

    return impl


def _check(given: Any, what: str) -> None:
    if not isinstance(given, types.Integer):
        raise TypingError(f"the {what}: expected an integer, found {given}")


_OURS: dict[Any, Any] = {
    parallel.get_num_threads: _get_num_threads,
    parallel.set_num_threads: _set_num_threads,
    parallel.get_parallel_chunksize: _get_parallel_chunksize,
    parallel.set_parallel_chunksize: _set_parallel_chunksize,
}
_FIELDS = ("_overload_func", "_impl_cache", "_compiled_overloads")


@contextmanager
def threads_of_the_loader() -> Iterator[None]:
    """Let functions that are compiled now use our functions."""
    templates = {_template_of(function): made for function, made in _OURS.items()}
    saved = [(template, [template.__dict__[name] for name in _FIELDS]) for template in templates]
    for template, made in templates.items():
        for name, value in zip(_FIELDS, (staticmethod(made), {}, {}), strict=True):
            setattr(template, name, value)
    try:
        yield
    finally:
        for template, values in saved:
            for name, value in zip(_FIELDS, values, strict=True):
                setattr(template, name, value)


def _template_of(function: Any) -> Any:
    """Return the class by which Numba finds the implementation of a function."""
    found = [known for value, known in builtin_registry.globals if value is function]
    return found[-1].templates[0]
