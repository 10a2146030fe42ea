"""C functions named after their content."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ..dtypes import c_type
from ..operator import Operator, elements, shape_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import onnx_ir as ir

HEADER = '#include "dso_operators.h"\n'


def is_symbolic(values: Iterable[ir.Value]) -> bool:
    """Return True if a value has the symbolic extent."""
    return any(isinstance(extent, str) for value in values for extent in shape_of(value))


def count_in_c(shape: Sequence[int | str]) -> str:
    """Return the product of extents as a C expression; the symbolic one is ``batch``."""
    fixed = elements(tuple(shape))
    return f"batch * {fixed}" if any(isinstance(extent, str) for extent in shape) else str(fixed)


def operator_of(
    stem: str,
    body: str,
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    *,
    workspace: int = 0,
    parts: Iterable[str] = (),
    flops: int = 0,
    before: str = "",
) -> Operator:
    """Make the operator of a C body over tensors.

    Parameters
    ----------
    stem : str
        The first part of the function's name.
    body : str
        C statements. The inputs are ``x0``, ``x1``, ..., the outputs ``y0``, ... .
    workspace : int
        In bytes; for each element of a symbolic batch.
    before : str
        C code before the function, in which ``@`` is the function's name.
    """
    takes_batch = is_symbolic((*inputs, *outputs))
    parameters = [
        *(["int64_t batch"] if takes_batch else []),
        *(f"const {c_type(value)} *x{i}" for i, value in enumerate(inputs)),
        *(f"{c_type(value)} *y{i}" for i, value in enumerate(outputs)),
        *(["void *workspace"] if workspace else []),
    ]
    code = f"{HEADER}{before}\nint32_t @({', '.join(parameters)}) {{\n{body}}}\n"
    name = f"{stem}_{hashlib.sha256(code.encode()).hexdigest()[:10]}"
    return Operator(
        name=name,
        code=code.replace("@", name),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        workspace=workspace,
        parts=frozenset(parts),
        flops=flops,
        takes_batch=takes_batch,
    )
