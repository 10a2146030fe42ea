"""Decorators of a file that remember their signatures, and compile nothing while it is imported.

Numba compiles a function for each signature of its decorator, for this process, which only needs
the code if the import calls a function, or compiles another one that does, such as a ufunc
function. Then the functions so far are compiled after all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher, _DispatcherBase

_SIGNATURES = "_packer_signatures"


def signatures_of(dispatcher: Any) -> list[Any]:
    """Return the deferred and compiled signatures of a dispatcher."""
    deferred = dispatcher.__dict__.get(_SIGNATURES, [])
    return [*deferred, *(compiled.signature for compiled in dispatcher.overloads.values())]


@contextmanager
def deferring() -> Iterator[None]:
    """Let decorators compile nothing."""
    compile_now, call = Dispatcher.compile, Dispatcher.__call__
    disable, template = _DispatcherBase.disable_compile, _DispatcherBase.get_call_template
    pending: list[Any] = []

    def restore() -> None:
        Dispatcher.compile, Dispatcher.__call__ = compile_now, call
        _DispatcherBase.disable_compile = disable
        _DispatcherBase.get_call_template = template

    def compile_later(self: Any, signature: Any) -> Any:
        if global_compiler_lock.is_locked():  # as a part of another function
            return compile_now(self, signature)
        pending.append(self)
        self.__dict__.setdefault(_SIGNATURES, []).append(signature)
        return None

    def template_now(self: Any, args: Any, kws: Any) -> Any:
        _compile_all(self, compile_now)
        return template(self, args, kws)

    def disable_later(self: Any, val: bool = True) -> None:
        if _SIGNATURES in self.__dict__:
            self._can_compile = not val
        else:
            disable(self, val)

    def call_now(self: Any, *args: Any, **kws: Any) -> Any:
        restore()
        for dispatcher in dict.fromkeys(pending):
            _compile_all(dispatcher, compile_now)
        return self(*args, **kws)

    Dispatcher.compile, Dispatcher.__call__ = compile_later, call_now
    _DispatcherBase.disable_compile = disable_later
    _DispatcherBase.get_call_template = template_now
    try:
        yield
    finally:
        restore()


def _compile_all(dispatcher: Any, compile_now: Callable[..., Any]) -> None:
    """Compile what was deferred, as the decorator would have."""
    is_open = dispatcher._can_compile
    dispatcher._can_compile = True
    for signature in dispatcher.__dict__.pop(_SIGNATURES, ()):
        compile_now(dispatcher, signature)
    dispatcher._can_compile = is_open
