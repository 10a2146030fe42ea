"""The nodes of a model by ONNX's own rules: schemas, its checker and its inliner."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runtime.error import shown

from .agreement import MOST_ATTRIBUTE, POSITIVE
from .graphs import all_nodes
from .opset import find_schema, versions_of
from .words import first_line, name_of_node, refusal

_INT = 2  # AttributeProto.type
# The operators of this domain that the generator of C knows.
_ML_DOMAIN = "ai.onnx.ml"
_ML_OPERATORS = (
    *("ArrayFeatureExtractor", "Binarizer", "LabelEncoder", "TreeEnsemble"),
    "TreeEnsembleClassifier",
)


def inline_functions(model: Any, source: str) -> Any:
    """Return a ModelProto in which the nodes of functions replace their calls.

    A SequenceMap, which is a function of ONNX, is inlined too. Raises ExportError if a function
    cannot be inlined, for instance one of another opset.
    """
    import onnx.inliner

    made = _inline_local(model, source) if model.functions else model
    if not any((n.domain, n.op_type) == ("", "SequenceMap") for n in all_nodes(made.graph.node)):
        return made
    try:
        made = onnx.shape_inference.infer_shapes(made)
        kinds = [("", "SequenceMap")]
        return onnx.inliner.inline_selected_functions(made, kinds, inline_schema_functions=True)
    except Exception as error:  # whatever class inference raises
        raise refusal(source, f"SequenceMap: {first_line(error)}") from error


def _inline_local(model: Any, source: str) -> Any:
    import onnx.inliner

    names = {(function.domain, function.name) for function in model.functions}
    try:
        made = onnx.inliner.inline_local_functions(model, convert_version=True)
    except Exception as error:  # whatever class the inliner raises
        text = f"its functions cannot be inlined: {first_line(error)}; inline them first:"
        raise refusal(source, f"{text} onnx.inliner.inline_local_functions(model)") from error
    for node in made.graph.node:
        if (node.domain, node.op_type) in names:
            text = f"{name_of_node(node)}: function {shown(node.op_type)} cannot be inlined; its"
            raise refusal(source, f"{text} opset_import is not the model's, make them equal")
    return made


def check_nodes(model: Any, source: str) -> None:
    """Check the inputs, outputs and attributes of each node by the schema of its operator.

    Raises ExportError if an operator is unknown, or if a node does not fit it; with the node's
    name.
    """
    import onnx.checker

    versions = versions_of(model.opset_import)
    context = onnx.checker.C.CheckerContext()
    context.ir_version = model.ir_version
    context.opset_imports = versions
    _check(model.graph.node, versions, context, source)


def _check(nodes: Iterable[Any], versions: dict[str, int], context: Any, source: str) -> None:
    import onnx.checker

    scope = onnx.checker.C.LexicalScopeContext()
    for node in nodes:
        find_schema(node, versions, source)
        if node.domain == _ML_DOMAIN and node.op_type not in _ML_OPERATORS:
            text = f"{name_of_node(node)}: of the domain {_ML_DOMAIN} only these are supported:"
            text += f" {', '.join(_ML_OPERATORS)}; write the others with operators of ai.onnx"
            raise refusal(source, text)
        _check_numbers(node, source)
        try:
            onnx.checker.C.check_node(_light(node).SerializeToString(), context, scope)
        except Exception as error:  # of a class of onnx, not a built-in one
            raise refusal(source, f"{name_of_node(node)}: {first_line(error)}") from error
        for attribute in node.attribute:
            for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                _check(graph.node, versions, context, source)


def _check_numbers(node: Any, source: str) -> None:
    """Refuse attributes that ONNX's inference would divide by."""
    for attribute in node.attribute:
        values = [attribute.i] if attribute.type == _INT else [*attribute.ints]
        if attribute.name in POSITIVE and not all(1 <= one <= MOST_ATTRIBUTE for one in values):
            text = f"{name_of_node(node)}: attribute {shown(attribute.name)}, expected 1 to"
            raise refusal(source, f"{text} {MOST_ATTRIBUTE:,}, found {values[:8]}")


def _light(node: Any) -> Any:
    """Return a node whose tensors and graphs are empty; they are checked separately."""
    import onnx

    if not any(map(_is_heavy, node.attribute)):
        return node
    made = onnx.NodeProto(
        input=node.input,
        output=node.output,
        op_type=node.op_type,
        domain=node.domain,
        name=node.name,
    )
    tensor = onnx.TensorProto(name="t", dims=[0], data_type=onnx.TensorProto.FLOAT, raw_data=b"")
    graph = onnx.GraphProto(name="g")
    for attribute in node.attribute:
        if not _is_heavy(attribute):
            made.attribute.append(attribute)
            continue
        one = made.attribute.add(name=attribute.name, type=attribute.type)
        if attribute.HasField("t"):
            one.t.CopyFrom(tensor)
        if attribute.HasField("g"):
            one.g.CopyFrom(graph)
        one.tensors.extend([tensor] * len(attribute.tensors))
        one.graphs.extend([graph] * len(attribute.graphs))
    return made


def _is_heavy(one: Any) -> bool:
    return bool(one.HasField("t") or one.HasField("g") or one.tensors or one.graphs)
