"""The versions of operators: which are known, and models of older ones as newer ones.

A model is converted only where an operator that it uses has changed its inputs or attributes;
the converter is not asked for more types of the same operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from runtime.error import near_names, shown

from .scan_entries import scan_entries
from .words import name_of_node, refusal

# Rewrites and kernels are written for this one; a newer model keeps its own.
TARGET = 23
MOST_IR_VERSION = 13
# Operators that mean something else before an opset, in a way that the converter does not know.
_CHANGED = {"PRelu": 7}
_SCAN = 9  # the opset whose Scan has no batch


def check_versions(model: Any, source: str) -> None:
    """Refuse a ModelProto of a version or domain that onnx does not know.

    Raises ExportError if no opset is given, or if one or the version of the file is too new.
    """
    import onnx

    newest = max(MOST_IR_VERSION, onnx.IR_VERSION)
    if not 3 <= model.ir_version <= newest:
        text = f"ir_version, expected 3 to {newest}, found {model.ir_version}; export the model"
        raise refusal(source, f"{text} with onnx {onnx.__version__}, if it is an ONNX model")
    known = onnx.defs.C.schema_version_map()
    if not model.opset_import:
        raise refusal(source, "opset_import, expected the opset of a domain, found none")
    for one in model.opset_import:
        domain = "" if one.domain == "ai.onnx" else one.domain
        if domain not in known:
            continue  # refused by name, if a node uses it
        least, most = known[domain]
        if not least <= one.version <= most:
            text = (
                f"opset {one.version} of domain {shown(domain or 'ai.onnx')}, expected {least} to"
            )
            text += f" {most}, which onnx {onnx.__version__} knows; export the model with opset"
            raise refusal(source, f"{text} {most}")


def versions_of(opsets: Iterable[Any]) -> dict[str, int]:
    """Return the version of each domain; the domain ai.onnx is ``""``."""
    return {"" if one.domain == "ai.onnx" else one.domain: one.version for one in opsets}


def find_schema(node: Any, versions: dict[str, int], source: str) -> Any:
    """Return the onnx.defs.OpSchema of a node.

    Raises ExportError if the operator is unknown, or if its opset has removed it.
    """
    import onnx

    domain = "" if node.domain == "ai.onnx" else node.domain
    where = name_of_node(node)
    shown_domain = shown(domain or "ai.onnx")
    if domain not in versions:
        text = f"{where}: domain {shown_domain}, expected one of the model's opset_import, found"
        raise refusal(source, f"{text} {', '.join(shown(d or 'ai.onnx') for d in versions)}")
    try:
        schema = onnx.defs.get_schema(node.op_type, versions[domain], domain)
    except onnx.defs.SchemaError:
        every = [s for s in onnx.defs.get_all_schemas_with_history() if s.domain == domain]
        since = [s.since_version for s in every if s.name == node.op_type]
        text = f"{where}: operator {node.op_type} is unknown in opset {versions[domain]} of domain"
        end = near_names(node.op_type, sorted({s.name for s in every}))
        if since:
            end = f"; it is of opset {min(since)}: export the model with that one or a later one"
        elif not every:
            end = "; export the model with operators of ONNX alone, without another tool's"
        raise refusal(source, f"{text} {shown_domain}{end}") from None
    if schema.deprecated:
        text = f"{where}: opset {versions[domain]} has no {node.op_type} any more; set the opset"
        raise refusal(source, f"{text} that the model was made for, or export it again")
    return schema


def convert(model: Any, source: str) -> Any:
    """Return a ModelProto of opset `TARGET` or newer, or the same one if it needs no change.

    A model that onnx cannot convert keeps its opset, which its nodes fit.
    """
    import onnx
    import onnx.version_converter

    versions = versions_of(model.opset_import)
    version = versions.get("", TARGET)
    if version >= TARGET:
        return model
    nodes = list(_standard_nodes(model.graph.node))
    if version < _SCAN:
        for node in [node for node, _ in nodes if node.op_type == "Scan"]:
            scan_entries(node, source)
    if any(version < _CHANGED.get(node.op_type, 0) for node, _ in nodes):
        return model
    if any(_has_changed(node, version) for node, _ in nodes):
        if any(depth and _has_changed(node, version) for node, depth in nodes):
            return model  # the converter leaves subgraphs as they are
        try:
            made = onnx.version_converter.convert_version(model, TARGET)
            for node, _ in _standard_nodes(made.graph.node):
                find_schema(node, versions_of(made.opset_import), source)
        except Exception:  # whatever the converter says: the model fits its own opset
            return model
        return made
    for one in model.opset_import:
        if one.domain in ("", "ai.onnx"):
            one.version = TARGET
    return model


def _has_changed(node: Any, version: int) -> bool:
    """Return True if the same node may mean something else in the opset `TARGET`."""
    import onnx

    old = onnx.defs.get_schema(node.op_type, version, "")
    new = onnx.defs.get_schema(node.op_type, TARGET, "")
    return new.deprecated or _signature(old) != _signature(new)


def _signature(schema: Any) -> object:
    def parameters(formal: Any) -> list[object]:
        return [(one.name, one.option, one.is_homogeneous) for one in formal]

    def attribute(one: Any) -> object:
        return one.type, one.required, one.default_value.SerializeToString()

    return (
        parameters(schema.inputs),
        parameters(schema.outputs),
        {name: attribute(one) for name, one in schema.attributes.items()},
    )


def _standard_nodes(nodes: Iterable[Any], depth: int = 0) -> Iterator[tuple[Any, int]]:
    """Walk the nodes of ONNX's own domain, with the depth of their subgraph."""
    for node in nodes:
        if node.domain in ("", "ai.onnx"):
            yield node, depth
        for attribute in node.attribute:
            for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                yield from _standard_nodes(graph.node, depth + 1)
