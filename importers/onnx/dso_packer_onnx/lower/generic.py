"""Every operator of ONNX that has no fast kernel: its C by emx-onnx-cgen, one node at a time.

A node becomes a model of one node with fixed shapes, and that a C function. For a symbolic batch
the function is that of one entry, called for each.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from ..dtypes import element_bits
from ..extent import parameter
from ..operator import Operator, elements, shape_of
from .batch import one_entry
from .c_text import Text, tidy
from .counts import count_checks
from .emx import ENTRY, generate
from .function_body import needs_body, with_body
from .guards import HELPER as GUARD_HELPER
from .guards import INCLUDE as GUARD_INCLUDE
from .guards import check_indices, guard
from .one_node import OneNode, one_node_model
from .open import has_open_loops, lower_open
from .refused import OperatorRefusedError, refuse
from .storage import Storage, compute_in_float, declared, helpers, storage_of
from .supported import cause_of, check_supported, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import onnx
    import onnx_ir as ir

    from ..operator import Shape

_INCLUDE = "#include <stdbool.h>\n#include <stdint.h>\n#include <string.h>\n"
_MOST_EMBEDDED = 1 << 16  # bytes of constants in the code
# Windows with all of their attributes, and results whose length a constant may contradict.
_GENERATED = ("AveragePool", "Compress", "Conv", "MaxPool", "NonZero")
_VIEWS = ("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity")


def lower_generic(node: ir.Node) -> Operator:
    """Make the C function of a node.

    Parameters
    ----------
    node : ir.Node
        Of a graph in which every value has a data type and a shape.

    Returns
    -------
    Operator
        Equal nodes give equal code and an equal name. An operator whose result has the memory of
        its input has no code.

    Raises
    ------
    OperatorRefusedError
        No code can be made; `cause` says why in a word.
    """
    check_supported(node)
    if node.op_type in _VIEWS and node.domain in ("", "ai.onnx") and node.inputs[0]:
        return Operator(node.op_type.lower(), "", (node.inputs[0],), tuple(node.outputs))
    if node.op_type not in _GENERATED and has_open_loops(node):
        check_indices(node)
        with suppress(OperatorRefusedError):
            return lower_open(node)
    try:
        shapes, symbol = one_entry(node)
    except OperatorRefusedError as error:
        if error.cause not in ("open", "shape"):
            raise
        if not has_open_loops(node):
            raise
        return lower_open(node)
    one, text = _generated(node, shapes)
    return _operator(node, one, text, shapes, symbol)


def _generated(node: ir.Node, shapes: dict[ir.Value, Shape]) -> tuple[OneNode, Text]:
    """Generate code of the node, of what defines it, or with all constants in it: the first."""
    failed: Exception | None = None
    for one in _models(node, shapes):
        try:
            return one, _text_of(one.model)
        except Exception as error:  # of any class: the generator does not document them
            failed = failed or error
    assert failed is not None
    reason = reason_of(failed)
    raise refuse(node, cause_of(reason), reason) from failed


def _models(node: ir.Node, shapes: dict[ir.Value, Shape]) -> Iterator[OneNode]:
    one = one_node_model(node, shapes)
    if not needs_body(node):
        yield one
    body = with_body(one.model)
    if body is not None:
        yield one._replace(model=body)
    if one.constants and _constant_bytes(node) <= _MOST_EMBEDDED:
        yield one_node_model(node, shapes, embed_all=True)


def _constant_bytes(node: ir.Node) -> int:
    return sum(value.const_value.nbytes for value in node.inputs if value and value.const_value)


def _text_of(model: onnx.ModelProto) -> Text:
    return _text_of_bytes(model.SerializeToString(deterministic=True))


@lru_cache(maxsize=512)
def _text_of_bytes(model: bytes) -> Text:
    """Generate the code of a model; a network has many equal nodes."""
    import onnx

    proto = onnx.ModelProto.FromString(model)
    compute_in_float(proto)
    return tidy(generate(proto))


def _operator(
    node: ir.Node, one: OneNode, text: Text, shapes: dict[ir.Value, Shape], symbol: str
) -> Operator:
    """Put the function of an operator around generated code."""
    values = (*one.inputs, *one.outputs)
    names = [f"in{i}" for i in range(len(one.inputs))]
    names += [f"out{i}" for i in range(len(one.outputs))]
    offset = text.workspace
    storages: list[Storage] = []
    for value, name in zip(values, names, strict=True):
        is_input = len(storages) < len(one.inputs)
        storages.append(storage_of(value, name, shapes[value], offset, is_input))
        offset += storages[-1].nbytes
    arguments = [*(["workspace"] if text.workspace else []), *(s.argument for s in storages)]
    stored = dict(zip(values, storages, strict=True))
    counts = count_checks(node, shapes, stored)
    checks = [*guard(node, shapes, stored), *counts.before]
    body = [
        *(storage.before for storage in storages if storage.before),
        *checks,
        f"{ENTRY}({', '.join(arguments)});",
        *counts.after,
        *(storage.after for storage in storages if storage.after),
        "return 0;",
    ]
    parameters = [
        f"{'const ' if i < len(one.inputs) else ''}{declared(value)} *{name}"
        for i, (value, name) in enumerate(zip(values, names, strict=True))
    ]
    parameters += ["void *workspace"] if offset else []
    call = [*names, *(["workspace"] if offset else [])]
    code = (GUARD_INCLUDE if checks else "") + _INCLUDE + helpers(storages) + text.code
    code += GUARD_HELPER if checks else "\n"
    code += _functions(body, parameters, call, symbol, _steps(one, shapes))
    name = f"{node.op_type.lower()}_{hashlib.sha256(code.encode()).hexdigest()[:10]}"
    return Operator(
        name=name,
        code=code.replace("@", name),
        inputs=one.inputs,
        outputs=one.outputs,
        workspace=offset,
        flops=sum(elements(shapes[value]) for value in one.outputs),
        symbols=(symbol,) if symbol else (),
        is_plain=True,
    )


def _steps(one: OneNode, shapes: dict[ir.Value, Shape]) -> list[int]:
    """Return the distance in bytes between the entries of a batch, for each parameter."""
    return [
        elements(shapes[value]) * element_bits(value) // 8 if _is_symbolic(value) else 0
        for value in (*one.inputs, *one.outputs)
    ]


def _is_symbolic(value: ir.Value) -> bool:
    return any(isinstance(extent, str) for extent in shape_of(value))


def _functions(
    body: list[str], parameters: list[str], call: list[str], symbol: str, steps: list[int]
) -> str:
    """Write the operator ``@``; with a symbol, as a loop over the entries of a batch."""
    lines = "".join(f"  {line}\n" for line in body)
    if not symbol:
        return f"int32_t @({', '.join(parameters) or 'void'}) {{\n{lines}}}\n"
    moved = [
        f"(void *)((char *){name} + i * {step})" if step else name
        for name, step in zip(call, [*steps, 0], strict=False)
    ]
    return (
        f"static int32_t one_entry({', '.join(parameters)}) {{\n{lines}}}\n\n"
        f"int32_t @({', '.join([f'int64_t {parameter(symbol)}', *parameters])}) {{\n"
        f"  for (int64_t i = 0; i < {parameter(symbol)}; i++)\n"
        f"    if (one_entry({', '.join(moved)})) return -1;\n"
        "  return 0;\n}\n"
    )
