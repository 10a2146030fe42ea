"""dso.Append: further rows of a cache, in its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..extent import in_c
from ..plan import nbytes_of
from .code import operator_of

if TYPE_CHECKING:
    import onnx_ir as ir

    from ..operator import Operator


def append(node: ir.Node) -> Operator:
    """Lower an append: earlier rows are copied only if they are elsewhere."""
    past, rows = node.inputs
    assert past is not None
    assert rows is not None
    former, added = in_c(nbytes_of(past)), in_c(nbytes_of(rows))
    body = f"""\
  const size_t former = (size_t)({former});
  if ((const void *)x0 != (const void *)y0) memmove(y0, x0, former);
  memcpy((char *)y0 + former, x1, (size_t)({added}));
  return 0;
"""
    return operator_of("append", body, [past, rows], node.outputs)
