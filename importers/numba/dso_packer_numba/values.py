"""Values: what a compiled function takes and returns, described without Numba."""

from __future__ import annotations

from typing import NamedTuple


class Value(NamedTuple):
    """The type of one argument or result.

    Attributes
    ----------
    kind : str
        ``"number"``, ``"array"``, ``"tuple"``, ``"str"``, ``"bytes"``, ``"none"``, ``"optional"``
        or ``"pointer"``.
    text : str
        The type as Numba writes it, for messages.
    code : str
        Of a number, of the elements of an array or of what a pointer points to, as in
        docs/format.md; ``"void"`` for a pointer to anything.
    ndim : int
        The number of dimensions of an array.
    layout : str
        Of an array: ``"C"``, ``"F"``, or ``"A"`` for any strides.
    is_mutable : bool
        True if the function may write to the array.
    items : tuple of Value
        Of a tuple; the type of an optional value.
    names : tuple of str
        Of the items of a named tuple.
    """

    kind: str
    text: str
    code: str = ""
    ndim: int = 0
    layout: str = ""
    is_mutable: bool = True
    items: tuple[Value, ...] = ()
    names: tuple[str, ...] = ()


class Variant(NamedTuple):
    """One signature of a function, compiled.

    Attributes
    ----------
    symbol : str
        The hidden symbol of the code: ``int32_t symbol(result *, error **, arguments ...)``.
    arguments : tuple of Value
        One for each parameter.
    result : Value
        What it returns.
    notes : bool
        True if its kernels may note an exception, which the caller raises.
    allocates : bool
        True if it may hold memory when it raises, which the caller releases.
    """

    symbol: str
    arguments: tuple[Value, ...]
    result: Value
    notes: bool = False
    allocates: bool = False


class Compiled(NamedTuple):
    """One function of a module.

    Attributes
    ----------
    name : str
        The name that callers use.
    kind : str
        ``"jit"``, ``"vectorize"`` or ``"guvectorize"``.
    parameters : tuple of str
        The names of the parameters.
    defaults : dict of str to object
        The values of the parameters that callers may omit.
    variants : tuple of Variant
        One for each signature.
    place : str
        The file and the line of the function.
    doc : str
        Its docstring.
    nogil : bool
        True if other Python threads run during a call.
    core : tuple
        The names of the core dimensions of each input and output of a function of elements.
    num_inputs : int
        How many operands of a function of elements are inputs.
    """

    name: str
    kind: str
    parameters: tuple[str, ...]
    defaults: dict[str, object]
    variants: tuple[Variant, ...]
    place: str
    doc: str = ""
    nogil: bool = False
    core: tuple[tuple[str, ...], ...] = ()
    num_inputs: int = 0


class Unit(NamedTuple):
    """The functions that were compiled together, for one processor.

    Attributes
    ----------
    functions : tuple of Compiled
        The functions that can be exported.
    code : bytes
        A relocatable ELF object, whose symbols are hidden.
    undefined : frozenset of str
        The symbols that the code needs.
    refused : dict of str to str
        Functions that cannot be exported, each with the reason.
    notes : tuple of str
        What users should know, such as frozen arrays.
    """

    functions: tuple[Compiled, ...]
    code: bytes
    undefined: frozenset[str]
    refused: dict[str, str]
    notes: tuple[str, ...] = ()
