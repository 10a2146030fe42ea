"""Decorators of a file that remember their signatures, and compile nothing while it is imported.

Numba compiles a function for each signature of its decorator, for this process, which only needs
the code if the import calls a function. Then all functions so far are compiled after all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.dispatcher import Dispatcher, _DispatcherBase

_SIGNATURES = "_packer_signatures"


def signatures_of(dispatcher: Any) -> list[Any]:
    """Return the signatures of a dispatcher: those that are compiled or deferred."""
    deferred = dispatcher.__dict__.get(_SIGNATURES, [])
    return [*deferred, *(compiled.signature for compiled in dispatcher.overloads.values())]


@contextmanager
def deferring() -> Iterator[None]:
    """Let decorators compile nothing."""
    compile_now, call = Dispatcher.compile, Dispatcher.__call__
    disable = _DispatcherBase.disable_compile
    pending: list[Any] = []

    def restore() -> None:
        Dispatcher.compile, Dispatcher.__call__ = compile_now, call
        _DispatcherBase.disable_compile = disable

    def compile_later(self: Any, signature: Any) -> None:
        pending.append(self)
        self.__dict__.setdefault(_SIGNATURES, []).append(signature)

    def disable_later(self: Any, val: bool = True) -> None:
        if _SIGNATURES in self.__dict__:
            self._can_compile = not val
        else:
            disable(self, val)

    def call_now(self: Any, *args: Any, **kws: Any) -> Any:
        restore()
        for dispatcher in dict.fromkeys(pending):
            _compile_all(dispatcher)
        return self(*args, **kws)

    Dispatcher.compile, Dispatcher.__call__ = compile_later, call_now
    _DispatcherBase.disable_compile = disable_later
    try:
        yield
    finally:
        restore()


def _compile_all(dispatcher: Any) -> None:
    """Compile what was deferred, as the decorator would have."""
    is_open = dispatcher._can_compile
    dispatcher._can_compile = True
    for signature in dispatcher.__dict__.pop(_SIGNATURES):
        dispatcher.compile(signature)
    dispatcher._can_compile = is_open
