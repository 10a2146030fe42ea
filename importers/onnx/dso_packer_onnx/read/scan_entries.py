"""The Scan of opset 8, which has a batch: a Scan of its entries that runs another Scan."""

from __future__ import annotations

from typing import Any

from .words import name_of_node, refusal

_GRAPH = 5  # AttributeProto.type


def scan_entries(node: Any, source: str) -> None:
    """Make two Scans of opset 9 of one; ExportError if the entries have different lengths."""
    import onnx

    if node.input[0]:
        text = f"{name_of_node(node)}: input 'sequence_lens', expected none, found"
        raise refusal(source, f"{text} {node.input[0]!r}; export the model with opset 9 or newer")
    attributes = {one.name: one for one in node.attribute}
    body, count = attributes["body"].g, attributes["num_scan_inputs"].i
    inner = onnx.NodeProto(op_type="Scan", name=node.name)
    inner.input[:] = [f"{value.name}_of_entry" for value in body.input]
    inner.output[:] = [f"{value.name}_of_entry" for value in body.output]
    for name, new_name in (("body", ""), ("num_scan_inputs", ""), ("directions", "scan_input_")):
        if name in attributes:
            inner.attribute.add().CopyFrom(attributes[name])
            inner.attribute[-1].name = f"{new_name}{name}"
    outer = onnx.AttributeProto(name="body", type=_GRAPH)
    outer.g.name = "entry"
    outer.g.node.append(inner)
    pairs = [(outer.g.input, body.input, inner.input), (outer.g.output, body.output, inner.output)]
    num_states = len(body.input) - count
    for made, old, names in pairs:
        for index, (value, name) in enumerate(zip(old, names, strict=True)):
            one = made.add(name=name)
            one.type.tensor_type.elem_type = value.type.tensor_type.elem_type
            if index < num_states:  # a slice of the others lacks the axis of the rounds
                one.type.CopyFrom(value.type)
    del node.input[0], node.attribute[:]
    node.attribute.append(outer)
    node.attribute.add(name="num_scan_inputs", type=2, i=len(body.input))
