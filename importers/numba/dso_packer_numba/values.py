"""Values: what a compiled function takes and returns, described without Numba."""

from __future__ import annotations

from typing import NamedTuple


class Value(NamedTuple):
    """The type of one argument or result."""

    # ``"number"``, ``"array"``, ``"tuple"``, ``"str"``, ``"bytes"``, ``"none"``, ``"optional"`` or
    # ``"pointer"``.
    kind: str
    text: str  # the type as Numba writes it, for messages
    # Of a number, of the elements of an array or of what a pointer points to, as in docs/format.md;
    # ``"void"`` for a pointer to anything.
    code: str = ""
    ndim: int = 0  # the number of dimensions of an array
    layout: str = ""  # of an array: ``"C"``, ``"F"``, or ``"A"`` for any strides
    is_mutable: bool = True  # True if the function may write to the array
    items: tuple[Value, ...] = ()  # of a tuple; the type of an optional value
    names: tuple[str, ...] = ()  # of the items of a named tuple


class Variant(NamedTuple):
    """One signature of a function, compiled."""

    # The hidden symbol of the code: ``int32_t symbol(result *, error **, arguments ...)``.
    symbol: str
    arguments: tuple[Value, ...]  # one for each parameter
    result: Value  # what it returns
    notes: bool = False  # True if its kernels may note an exception, which the caller raises
    allocates: bool = False  # True if it may hold memory when it raises, which the caller releases


class Compiled(NamedTuple):
    """One function of a module."""

    name: str  # the name that callers use
    kind: str  # ``"jit"``, ``"vectorize"`` or ``"guvectorize"``
    parameters: tuple[str, ...]  # the names of the parameters
    defaults: dict[str, object]  # the values of the parameters that callers may omit
    variants: tuple[Variant, ...]  # one for each signature
    place: str  # the file and the line of the function
    doc: str = ""  # its docstring
    nogil: bool = False  # True if other Python threads run during a call
    # The names of the core dimensions of each input and output of a function of elements.
    core: tuple[tuple[str, ...], ...] = ()
    num_inputs: int = 0  # how many operands of a function of elements are inputs


class Unit(NamedTuple):
    """The functions that were compiled together, for one processor."""

    functions: tuple[Compiled, ...]  # the functions that can be exported
    code: bytes  # a relocatable ELF object, whose symbols are hidden
    undefined: frozenset[str]  # the symbols that the code needs
    refused: dict[str, str]  # functions that cannot be exported, each with the reason
    notes: tuple[str, ...] = ()  # what users should know, such as frozen arrays
