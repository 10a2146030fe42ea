"""The functions of a script or of a caller, and the signatures that each is compiled for."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from numba import njit
from numba.core import sigutils, types
from numba.core.ccallback import CFunc
from numba.core.dispatcher import Dispatcher
from numba.core.typing.typeof import typeof
from numba.np.ufunc.dufunc import DUFunc
from numba.np.ufunc.gufunc import GUFunc
from numba.np.ufunc.ufuncbuilder import UFuncDispatcher

from .constructs import generator_in
from .deferred import signatures_of


class Found(NamedTuple):
    """One function to compile."""

    name: str  # the name in the library
    kind: str  # ``"jit"``, ``"vectorize"`` or ``"guvectorize"``
    dispatcher: Any  # what compiles it
    signatures: Sequence[Any]  # Numba's signatures
    parameters: Sequence[str] = ()  # the names of the parameters
    # The values of the parameters that callers may omit.
    defaults: Mapping[str, object] = MappingProxyType({})
    place: str = ""  # file and line
    doc: str = ""  # the docstring
    nogil: bool = False  # True if the decorator has ``nogil=True``
    # True if the signatures come from a decorator; recursive calls may have added some.
    is_closed: bool = False
    # Of a ufunc: the names of the core dimensions of each argument and result.
    core: tuple[tuple[str, ...], ...] = ()
    num_inputs: int = 0


class NotFoundError(Exception):
    """An object that a library cannot export as a function; the text says why."""


def is_numba_function(given: object) -> bool:
    """Return True for what the decorators of Numba make."""
    return isinstance(given, (Dispatcher, CFunc, DUFunc, GUFunc))


def find(name: str, given: Any, signatures: Iterable[str] = (), *, is_file: bool = False) -> Found:
    """Return a function with its signatures.

    Parameters
    ----------
    name : str
        The name in the library.
    given : object
        What a decorator of Numba made, or a Python function, which is compiled as by ``@njit``.
    signatures : iterable of str
        Signatures that replace the function's.
    is_file : bool
        True for a function of a file: what its import happened to compile does not count.

    Raises
    ------
    NotFoundError
        If the object is not such a function, or has no signature.
    """
    if inspect.isfunction(given):
        given = njit(given)
    made = _described(name, given, is_file)
    function = made.dispatcher.py_func
    place = _place(function)
    if found := generator_in(function):
        raise NotFoundError(f"{found.file}:{found.line}: {name}: {found.why}")
    chosen = [_parsed(f"{place}: {name}", text) for text in signatures] or made.signatures
    if not chosen:
        hint = f"name one, as in --signature '{name}=float64(float64[::1])'"
        raise NotFoundError(f"{place}: {name}: no signature; {hint}, or in the decorator")
    names, defaults = _parameters(function, place, name)
    return made._replace(
        signatures=chosen,
        parameters=names,
        defaults=defaults,
        place=place,
        doc=inspect.getdoc(function) or "",
        nogil=bool(made.dispatcher.targetoptions.get("nogil")),
        is_closed=made.is_closed and chosen is made.signatures,
    )


def _described(name: str, given: Any, is_file: bool) -> Found:
    """Return what compiles a function, and the signatures that it has."""
    if isinstance(given, CFunc):
        return Found(name, "jit", dispatcher_of(given), [given._sig])
    if isinstance(given, Dispatcher):
        is_closed = not given._can_compile
        return Found(name, "jit", given, _compiled(given, is_file), is_closed=is_closed)
    if isinstance(given, DUFunc):
        inner = given._dispatcher
        dispatcher = UFuncDispatcher(inner.py_func, targetoptions=dict(inner.targetoptions))
        is_own = given._frozen or not is_file
        return Found(name, "vectorize", dispatcher, list(inner.overloads) if is_own else [])
    if isinstance(given, GUFunc):
        builder = given.gufunc_builder
        inner = builder.nb_func
        dispatcher = UFuncDispatcher(builder.py_func, targetoptions=dict(builder.targetoptions))
        core = tuple(tuple(dims) for dims in (*builder.sin, *builder.sout))
        found = Found(name, "guvectorize", dispatcher, list(builder._sigs), core=core)
        return found._replace(num_inputs=len(builder.sin))
    text = f"{name}: expected a function that Numba compiles, found {type(given).__name__}"
    raise NotFoundError(text)


def dispatcher_of(callback: CFunc) -> Any:
    """Return what compiles the function of ``@cfunc`` as by ``@njit``, with the same options."""
    return njit(**_options(callback._compiler.targetoptions))(callback._pyfunc)


def _compiled(dispatcher: Any, is_file: bool) -> list[Any]:
    """Return the decorator's signatures; without `is_file` also the ones that calls compiled."""
    if is_file and dispatcher._can_compile:
        return []
    found = [_with_defaults(signature) for signature in signatures_of(dispatcher)]
    return [signature for signature in found if not is_for_values(signature)] or found


def is_for_values(signature: Any) -> bool:
    """Return True for code that is for one value of an argument, as that of a recursive call."""
    arguments, _ = sigutils.normalize_signature(signature)
    return tuple(arguments) != tuple(map(types.unliteral, arguments))


def _with_defaults(signature: Any) -> Any:
    """Return a signature that has the types of omitted arguments: a library stores the defaults."""
    arguments, _ = sigutils.normalize_signature(signature)
    if not any(isinstance(kind, types.Omitted) for kind in arguments):
        return signature
    return tuple(
        typeof(kind.value) if isinstance(kind, types.Omitted) else kind for kind in arguments
    )


def _options(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key != "nopython" and value is not None}


def _parsed(where: str, text: Any) -> Any:
    try:
        sigutils.normalize_signature(text)
    except Exception as error:  # Numba evaluates the text as Python
        what = f"{where}: signature {text!r}, expected one such as 'float64(float64[::1])'"
        raise NotFoundError(f"{what}: {type(error).__name__}: {error}") from error
    return text


def _place(function: Any) -> str:
    code = function.__code__
    return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"


def _parameters(function: Any, place: str, name: str) -> tuple[list[str], dict[str, object]]:
    """Return the names of the parameters, and the defaults that a library can store."""
    names: list[str] = []
    defaults: dict[str, object] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise NotFoundError(f"{place}: {name}: *{parameter.name}, expected named parameters")
        names.append(parameter.name)
        value = parameter.default
        if value is parameter.empty:
            continue
        if value is not None and not isinstance(value, (bool, int, float, str)):
            what = f"default {parameter.name}={value!r}, expected a number, str or None"
            raise NotFoundError(f"{place}: {name}: {what}; pass it in each call")
        defaults[parameter.name] = value
    return names, defaults
