"""One node of a graph as a C function, and how a value is stored.

The C function of an `Operator` is::

    int32_t name([int64_t number0, ...] [int64_t n_SYMBOL, ...] const T0 *in0, ..., T *out0, ...,
                 [void *workspace])

It returns 0, or raises an error of the ABI and returns -1.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import onnx_ir as ir

_STORED = "stored"  # the key in `ir.Value.meta`

Shape = tuple[int | str, ...]  # a str is an expression of symbols (extent.py)


class Flow(NamedTuple):
    """A branch or a loop: functions of bytecode that are called with inputs of the operator.

    The first input of a branch is its condition. A loop has the number of rounds, the condition,
    the values that it carries, and then what each round reads; the first two may be left out.
    """

    bodies: tuple[str, ...]  # the functions: of then and else, or of a round
    # For each body which inputs of the operator are its parameters; for a loop, those after the
    # number of the round, the condition and the carried values.
    arguments: tuple[tuple[int, ...], ...]
    num_carried: int = -1  # of a loop; -1 for a branch
    has_rounds: bool = False
    has_condition: bool = False
    call: str = ""  # of a sequence or optional: what the machine does (sequence_code.py)
    where: str = ""  # the name of the node in messages of the machine


class Operator(NamedTuple):
    """A C function, and the values that it reads and writes."""

    # The C function. It is unique by content, as in ``conv2d_3f2a91``: equal operators have equal
    # names.
    name: str
    code: str  # a complete C file that defines the function, with its ``#include`` lines
    # The tensors that it reads, in order; weights (initialisers) among them.
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]  # the tensors that it writes
    # Bytes of scratch memory, aligned to 64, as an extent. If not 0, the last parameter is
    # ``void *workspace``.
    workspace: int | str = 0
    # The names in `packer.operators` that the function calls: ``"matmul"``, ``"conv2d"``.
    parts: frozenset[str] = frozenset()
    flops: int = 0  # Floating-point operations of one call, with 1 for each open extent
    symbols: tuple[str, ...] = ()  # the open extents whose values are parameters
    numbers: tuple[int, ...] = ()  # the arguments for its first parameters (lower/shared.py)
    is_plain: bool = False  # another generator wrote its loops, for one thread
    # The symbols whose values are the elements of its first output, in order.
    defines: tuple[str, ...] = ()
    flow: Flow | None = None  # what a branch or a loop runs; there is no C function then


class Stored(NamedTuple):
    """How a value is stored, if not as a row-major array of its ONNX shape."""

    shape: Shape  # the extents in memory
    # The name of the layout, such as ``"NCHW16c"``; the record of the graph has it.
    layout: str = ""
    padding: int = 0  # rows and columns of zeros around each image, which `shape` includes


def set_stored(value: ir.Value, stored: Stored) -> None:
    """Record that a value is stored in another form than its ONNX shape."""
    value.meta[_STORED] = stored


def stored(value: ir.Value) -> Stored:
    """Return how a value is stored; a plain value has its ONNX shape and no layout."""
    found: Stored | None = value.meta.get(_STORED)
    return found or Stored(shape_of(value))


def stored_shape(value: ir.Value) -> Shape:
    """Return the extents of a value in memory."""
    return stored(value).shape


def shape_of(value: ir.Value) -> Shape:
    """Return the ONNX shape of a value, which `read` made known."""
    return tuple(d if isinstance(d, int) else str(d.value) for d in value.shape)


def elements(shape: Shape) -> int:
    """Return how many elements an array has; an open extent counts as 1."""
    return prod(extent for extent in shape if isinstance(extent, int))
