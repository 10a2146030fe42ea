"""C functions named after their content."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from ..dtypes import c_type
from ..extent import FLOOR_DIV, Extent, in_c, parameter, product, symbols_of
from ..operator import Operator, shape_of, stored_shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import onnx_ir as ir

HEADER = '#include "dso_operators.h"\n'
_PLAIN_HEADER = """\
#include "dso_packer.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
"""
# Faster than memcpy for some KB whose addresses are not aligned alike; the statement without
# instructions keeps the compiler from making it a memcpy.
_COPY = """\
typedef char piece __attribute__((vector_size(64), aligned(1), may_alias));
static inline void copy(void *to, const void *from, int64_t nbytes) {
  char *y = (char *)to;
  const char *x = (const char *)from;
  for (; nbytes >= 64 && nbytes <= 1 << 16; nbytes -= 64, x += 64, y += 64) {
    *(piece *)y = *(const piece *)x;
    __asm__("" : "+r"(x));
  }
  memcpy(y, x, (size_t)nbytes);
}
"""
_SQUARE = 16  # elements of a side: as many as a line of the cache has of float32
_MOST_INLINE = 16  # elements that are copied by some instructions


def copy_in_c(to: str, source: str, count: Extent) -> str:
    """Return a statement that copies elements."""
    if isinstance(count, int) and count <= _MOST_INLINE:
        return f"memcpy({to}, {source}, {count} * sizeof *({to}));"
    return f"copy({to}, {source}, ({in_c(count)}) * (int64_t)sizeof *({to}));"


def is_symbolic(values: Iterable[ir.Value]) -> bool:
    """Return True if a value has an open extent."""
    return any(isinstance(extent, str) for value in values for extent in shape_of(value))


def count_in_c(shape: Sequence[int | str]) -> str:
    """Return the product of extents as a C expression."""
    return in_c(product(shape))


def operator_of(
    stem: str,
    body: str,
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    *,
    workspace: int | str = 0,
    parts: Iterable[str] = (),
    flops: int = 0,
    before: str = "",
    extents: Iterable[Extent] = (),
) -> Operator:
    """Make the operator of a C body over tensors.

    Parameters
    ----------
    stem : str
        The first part of the function's name.
    body : str
        C statements. The inputs are ``x0``, ``x1``, ..., the outputs ``y0``, ... .
    workspace : int or str
        In bytes, as an extent.
    before : str
        C code before the function, in which ``@`` is the function's name.
    extents : iterable of int or str
        Extents that the body uses beside the extents of the tensors.
    """
    values = (*inputs, *outputs)
    of_values = (one for value in values for one in (*shape_of(value), *stored_shape(value)))
    symbols = symbols_of((*of_values, *extents, workspace))
    parameters = [
        *(f"int64_t {parameter(symbol)}" for symbol in symbols),
        *(f"const {c_type(value)} *x{i}" for i, value in enumerate(inputs)),
        *(f"{c_type(value)} *y{i}" for i, value in enumerate(outputs)),
        *(["void *workspace"] if workspace else []),
    ]
    counts = [product(shape_of(value)) for value in outputs]
    if any(isinstance(count, str) for count in counts):
        nothing = " && ".join(f"!({in_c(count)})" for count in counts)
        body = f"  if ({nothing}) return 0; /* a kernel takes a batch of 0 as 1 */\n{body}"
    functions = FLOOR_DIV if re.search(r"\bn_(floor|max|min)\(", before + body) else ""
    functions += _COPY if " copy(" in before + body else ""
    header = (HEADER if parts else _PLAIN_HEADER) + functions
    code = f"{header}{before}\nint32_t @({', '.join(parameters)}) {{\n{body}}}\n"
    name, code = named(stem, code)
    return Operator(
        name=name,
        code=code,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        workspace=workspace,
        parts=frozenset(parts),
        flops=flops,
        symbols=symbols,
    )


def named(stem: str, code: str) -> tuple[str, str]:
    """Return the name of a function by its code, in which it is ``@``, and the code with it."""
    name = f"{stem}_{hashlib.sha256(code.encode()).hexdigest()[:10]}"
    return name, code.replace("@", name)


def squares_in_c(rows: str, columns: str, step: str, apart: str) -> str:
    """Return loops that transpose x to y in squares, whose extents the compiler knows."""
    inner = f"y[(i0 + i) * {step} + k0 + k] = x[(k0 + k) * {apart} + i0 + i];"
    return f"""\
    for (int64_t i0 = 0; i0 < {rows}; i0 += {_SQUARE})
      for (int64_t k0 = 0; k0 < {columns}; k0 += {_SQUARE})
        if ({rows} - i0 >= {_SQUARE} && {columns} - k0 >= {_SQUARE})
          for (int i = 0; i < {_SQUARE}; i++)
            for (int k = 0; k < {_SQUARE}; k++) {inner}
        else
          for (int i = 0; i < {_SQUARE} && i < {rows} - i0; i++)
            for (int k = 0; k < {_SQUARE} && k < {columns} - k0; k++) {inner}
"""
