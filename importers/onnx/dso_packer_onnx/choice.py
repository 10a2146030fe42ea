"""Several sets of input shapes: ``main`` chooses the function for the shapes of its arguments.

A generated C function compares the shapes of the inputs that differ between the sets; another one
raises the error that lists the sets there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from packer import CSourceModule
from packer.declare.c_text import c_string

from .dtypes import data_type, dtype_name
from .operator import shape_of

if TYPE_CHECKING:
    import onnx_ir as ir

    from packer.relax import Program

    from .operator import Shape

_CODE = r"""
#include <inttypes.h>
#include <stdio.h>

#include "dso_packer.h"

/* For each set the number of extents of each input, then its extents; -1 is any. */
static const int64_t sets[] = {%(sets)s};
static const char *const names[] = {%(names)s};

static int64_t has_shapes(int64_t set, const DLTensor *const *inputs) {
  const int64_t *at = sets;
  for (int64_t i = 0; i < set * %(count)d; i++) at += 1 + *at;
  for (int i = 0; i < %(count)d; at += 1 + *at, i++) {
    if (inputs[i]->ndim != *at) return 0;
    for (int64_t k = 0; k < *at; k++)
      if (at[1 + k] >= 0 && at[1 + k] != inputs[i]->shape[k]) return 0;
  }
  return 1;
}

static int refuse_shapes(const DLTensor *const *inputs) {
  char text[4096], found[1024] = "";
  size_t size = 0;
  for (int i = 0; i < %(count)d; i++) {
    for (int k = -1; k < inputs[i]->ndim && size < sizeof found; k++) {
      char *end = found + size;
      size_t room = sizeof found - size;
      if (k < 0) size += (size_t)snprintf(end, room, "%%s%%s=", i ? ", " : "", names[i]);
      else size += (size_t)snprintf(end, room, k ? "x%%" PRId64 : "%%" PRId64, inputs[i]->shape[k]);
    }
  }
  snprintf(text, sizeof text, "%%s: shapes of the inputs, expected %%s, found %%s; "
           "export the model with this set of shapes too",
           %(function)s, %(expected)s, found);
  return dso_raise("ValueError", text);
}

int64_t %(symbol)s_are(int64_t set, %(parameters)s) {
  const DLTensor *const inputs[] = {%(arguments)s};
  return has_shapes(set, inputs);
}

dso_status %(symbol)s_refused(%(parameters)s) {
  const DLTensor *const inputs[] = {%(arguments)s};
  return refuse_shapes(inputs);
}
"""
_MOST_LISTED = 20


class ShapeChoice:
    """The function that chooses among sets of shapes.

    Parameters
    ----------
    name : str
        The function.
    graphs : sequence of ir.Graph
        The model with each set of shapes; at least two, which differ.
    """

    def __init__(self, name: str, graphs: Sequence[ir.Graph]) -> None:
        self._name = name
        self._inputs = graphs[0].inputs
        self._shapes = [[shape_of(value) for value in graph.inputs] for graph in graphs]
        columns = list(zip(*self._shapes, strict=True))
        self._chosen = [i for i, shapes in enumerate(columns) if len(set(shapes)) > 1]
        self._code = self._make_code()

    def write(self, program: Program, functions: Sequence[str]) -> None:
        """Write the function, which calls one of `functions`, each for one set of shapes."""
        names = [str(value.name) for value in self._inputs]
        code = program.function(self._name, names)
        for value, register, shapes in zip(
            self._inputs, code.params, zip(*self._shapes, strict=True), strict=True
        ):
            ranks = {len(shape) for shape in shapes}
            rank = ranks.pop() if len(ranks) == 1 else -1
            context = f"{self._name}: input {value.name!r} of {dtype_name(value)} "
            code.run("vm.builtin.check_tensor_info", register, rank, data_type(value), context)
        compared = [code.params[i] for i in self._chosen]
        for index, function in enumerate(functions):
            other = code.label()
            condition = code.call(f"{self._symbol}_are", index, *compared)
            code.jump_if_zero(condition, other)
            code.release(condition)
            code.ret(code.call(function, *code.params))
            code.place(other)
        code.run(f"{self._symbol}_refused", *compared)
        code.ret(condition)

    def module(self) -> CSourceModule:
        """Make the module of the C functions that the function calls."""
        tensors = self._parameters()
        functions = {
            f"{self._symbol}_are": f"int64_t(int64_t set, {tensors})",
            f"{self._symbol}_refused": f"dso_status({tensors})",
        }
        return CSourceModule(self._code, functions=functions)

    def _parameters(self) -> str:
        return ", ".join(f"const DLTensor *in{i}" for i in range(len(self._chosen)))

    def _make_code(self) -> str:
        names = [str(self._inputs[i].name) for i in self._chosen]
        sets = [[shapes[i] for i in self._chosen] for shapes in self._shapes]
        numbers = [
            number
            for shapes in sets
            for shape in shapes
            for number in (len(shape), *(e if isinstance(e, int) else -1 for e in shape))
        ]
        texts = [
            ", ".join(f"{name}={shape_text(shape)}" for name, shape in zip(names, one, strict=True))
            for one in sets
        ]
        more = f" or one of {len(texts) - _MOST_LISTED} more" if len(texts) > _MOST_LISTED else ""
        facts = {
            "sets": ", ".join(map(str, numbers)),
            "names": ", ".join(map(c_string, names)),
            "count": len(names),
            "function": c_string(self._name),
            "expected": c_string(" or ".join(texts[:_MOST_LISTED]) + more),
            "parameters": self._parameters(),
            "arguments": ", ".join(f"in{i}" for i in range(len(names))),
        }
        digest = blake2b(repr(facts).encode(), digest_size=4).hexdigest()
        self._symbol = f"shapes_{digest}"
        return _CODE % {**facts, "symbol": self._symbol}


def shape_text(shape: Shape) -> str:
    """Return a shape as the command line takes it: ``1x3x224x224``."""
    return "x".join(map(str, shape)) or "scalar"


def input_text(value: ir.Value) -> str:
    """Name an input with its type, for messages."""
    extents = ", ".join(map(str, shape_of(value)))
    return f"input {value.name!r} of {dtype_name(value)}[{extents}]"
