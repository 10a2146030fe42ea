"""The names of models, nodes and shapes in messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from packer import ExportError
from packer.files.text import visible
from runtime.error import shown


def refusal(source: str, text: str) -> ExportError:
    """Make the error about a model: its path, or ``model``; the place, and what is wrong."""
    return ExportError(f"{source}: {visible(text)}", path=source if source != "model" else None)


def name_of_node(node: Any) -> str:
    """Name a node, a NodeProto or an ir.Node: ``node 'conv1' (Conv)``.

    A node without a name is called after its first output.
    """
    name = node.name or ""
    if hasattr(node, "outputs"):
        outputs = [value.name for value in node.outputs if value.name]
    else:
        outputs = [output for output in node.output if output]
    if name or not outputs:
        return f"node {shown(name)} ({node.op_type})"
    return f"node of output {shown(outputs[0])} ({node.op_type})"


def shape_text(shape: Iterable[object] | None) -> str:
    """Show a shape: ``(1, 'batch', ?)``, where ``?`` is not known; ``unknown`` without a rank."""
    if shape is None:
        return "unknown"
    extents = [
        "?" if extent is None else str(extent) if isinstance(extent, int) else shown(extent)
        for extent in shape
    ]
    return f"({', '.join(extents)}{',' if len(extents) == 1 else ''})"


def first_line(error: BaseException) -> str:
    """The words of another package's error: its last line with a text, without its code."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return text if len(text) <= 300 else f"{text[:300]}..."
