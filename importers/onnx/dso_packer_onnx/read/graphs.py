"""The names and nodes of a model, before anything else walks it.

A graph has no cycle, each value one producer, and each input of a node a value. The packages of
ONNX rely on that, and partly crash without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, NoReturn

from runtime.error import listed, near_names, shown

from .tensors import Tensors, check_type
from .words import name_of_node, refusal

MOST_DEPTH = 24  # of subgraphs; protobuf refuses more than 33
MOST_CALLS = 64  # of functions that call each other
MOST_NODES = 1_000_000  # after the calls of functions are replaced by their nodes
_TENSOR, _GRAPH, _SPARSE, _TYPE, _TENSORS, _GRAPHS = 4, 5, 11, 13, 9, 10  # AttributeProto.type
_SPARSES, _TYPES = 12, 14
Functions = dict[tuple[str, str, str], Any]


class Graphs:
    """The checks of one ModelProto, which refuse it with an ExportError."""

    def __init__(self, model: Any, tensors: Tensors) -> None:
        self._model, self._tensors = model, tensors

    def check(self) -> None:
        """Check the graph, its subgraphs, and the functions that it calls."""
        model = self._model
        if model.training_info:
            self._refuse("it has training_info, which is unsupported; export it for inference")
        if not model.HasField("graph"):
            self._refuse("it has no graph; the file is cut, or not an ONNX model")
        functions = {(f.domain, f.name, f.overload): f for f in model.functions}
        if len(functions) != len(model.functions):
            self._refuse("it has two functions of the same domain and name")
        for function in model.functions:
            where = f"function {shown(function.name)}"
            self._check_text([function.domain, function.name, *function.attribute], f"{where}: ")
            self._check_names([*function.input], function.node, [*function.output], f"{where}: ")
        self._check_graph(model.graph, frozenset(), 0, "")
        self._check_calls(functions)
        self._check_interface(model.graph)

    def _check_interface(self, graph: Any) -> None:
        initialisers = {tensor.name for tensor in graph.initializer}
        if not graph.output:
            self._refuse("the graph has no output")
        for kind, values in (("input", graph.input), ("output", graph.output)):
            for value in values:
                if value.type.WhichOneof("value") is None and value.name not in initialisers:
                    self._refuse(f"{kind} {shown(value.name)} has no type")

    def _check_calls(self, functions: Functions) -> None:
        """Refuse functions that call themselves, or would grow the graph too far."""
        sizes: dict[tuple[str, str, str], int] = {}

        def size(nodes: Iterable[Any], chain: tuple[str, ...]) -> int:
            total = 0
            for node in all_nodes(nodes):
                key = (node.domain, node.op_type, node.overload)
                total += 1
                if key not in functions:
                    continue
                self._check_call(node, functions[key])
                if node.op_type in chain or len(chain) > MOST_CALLS:
                    text = " -> ".join([*chain, node.op_type][-6:])
                    self._refuse(f"{name_of_node(node)}: functions call themselves: {text}")
                if key not in sizes:
                    sizes[key] = size(functions[key].node, (*chain, node.op_type))
                total += sizes[key]
            if total > MOST_NODES:
                self._refuse(f"more than {MOST_NODES:,} nodes, calls of functions replaced")
            return total

        size(self._model.graph.node, ())

    def _check_call(self, node: Any, function: Any) -> None:
        for kind in ("input", "output"):
            found, expected = len(getattr(node, kind)), len(getattr(function, kind))
            if found > expected:
                text = f"{name_of_node(node)}: {kind}s of a function, expected {expected} at most"
                self._refuse(f"{text}, found {found}")

    def _check_graph(self, graph: Any, outer: frozenset[str], depth: int, where: str) -> set[str]:
        """Check a graph; return the names of the graphs around it that it uses."""
        if depth > MOST_DEPTH:
            self._refuse(f"{where}: subgraphs nested deeper than {MOST_DEPTH}")
        if graph.sparse_initializer:
            name = graph.sparse_initializer[0].values.name
            self._refuse(f"{where}initialiser {shown(name)} is a sparse tensor; make it dense")
        inputs = [value.name for value in graph.input]
        initialisers = [tensor.name for tensor in graph.initializer]
        for tensor in graph.initializer:
            self._tensors.check(tensor, f"{where}initialiser {shown(tensor.name)}")
        producers = {name: node for node in graph.node for name in node.output}
        for value in graph.input:
            check_type(value.type, self._tensors.source, f"{where}input {shown(value.name)}")
        for value in [*graph.output, *graph.value_info]:
            self._check_type(value, producers.get(value.name), where)
        self._check_unique(initialisers, f"{where}initialiser")
        outputs = [value.name for value in graph.output]
        new = [name for name in initialisers if name not in {*inputs}]
        return self._check_names([*inputs, *new], graph.node, outputs, where, outer, depth)

    def _check_names(
        self,
        known: Sequence[str],
        nodes: Sequence[Any],
        outputs: Sequence[str],
        where: str,
        outer: frozenset[str] = frozenset(),
        depth: int = 0,
    ) -> set[str]:
        """Check that values have one producer and no cycle; return the names used from outside."""
        self._check_text([*known, *outputs], where)
        for node in nodes:
            self._check_text(_names_of(node), where)
        self._check_unique(known, f"{where}input")
        self._check_unique(outputs, f"{where}output")
        values = {*known}
        producer = self._producers(nodes, values)
        visible = outer | values | producer.keys()
        taken: set[str] = set()
        sources: dict[int, set[int]] = {}
        for index, node in enumerate(nodes):
            inner = self._check_attributes(node, visible, depth)
            used = {name for name in node.input if name} | inner
            for name in sorted(used - visible):
                text = f"{name_of_node(node)}: input {shown(name)}, expected an input of the graph,"
                text += " an initialiser or the output of a node, found none of this name"
                self._refuse(text + near_names(name, sorted(visible)))
            sources[index] = {producer[name] for name in used if name in producer}
            taken |= {name for name in used if name not in producer and name not in values}
        self._check_acyclic(nodes, sources)
        for name in outputs:
            if name not in visible:
                text = f"{where}output {shown(name)} is the output of no node"
                self._refuse(text + near_names(name, sorted(producer)))
        return taken | {name for name in outputs if name in outer and name not in producer}

    def _producers(self, nodes: Sequence[Any], known: set[str]) -> dict[str, int]:
        """Return which node makes each value; each has one."""
        found: dict[str, int] = {}
        for index, node in enumerate(nodes):
            for name in node.output:
                if name in found or name in known:
                    other = "an input or initialiser"
                    if name in found:
                        other = name_of_node(nodes[found[name]])
                    text = f"output {shown(name)}, expected an unused name, found that of"
                    self._refuse(f"{name_of_node(node)}: {text} {other}")
                if name:
                    found[name] = index
        return found

    def _check_acyclic(self, nodes: Sequence[Any], sources: dict[int, set[int]]) -> None:
        if all(source < index for index, found in sources.items() for source in found):
            return
        try:
            TopologicalSorter(sources).prepare()
        except CycleError as error:
            cycle = [name_of_node(nodes[index]) for index in error.args[1]]
            shown_nodes = " -> ".join(cycle[:6])
            self._refuse(f"the graph has a cycle, expected none: {shown_nodes}")

    def _check_attributes(self, node: Any, visible: frozenset[str], depth: int) -> set[str]:
        """Check what attributes contain; return the names that subgraphs use from around them."""
        taken: set[str] = set()
        names = [attribute.name for attribute in node.attribute]
        if len({*names}) != len(names):
            self._refuse(f"{name_of_node(node)}: an attribute is given twice: {listed(names)}")
        for attribute in node.attribute:
            where = f"{name_of_node(node)}: attribute {shown(attribute.name)}"
            if attribute.type in (_SPARSE, _SPARSES):
                self._refuse(f"{where} is a sparse tensor; make it dense")
            if attribute.type == _TYPE:
                check_type(attribute.tp, self._tensors.source, where)
            if attribute.type == _TYPES:
                self._refuse(f"{where} is a list of types, which no operator has")
            if attribute.type in (_TENSOR, _TENSORS):
                for tensor in [attribute.t] if attribute.type == _TENSOR else attribute.tensors:
                    self._tensors.check(tensor, where)
            for graph in _graphs(attribute):
                taken |= self._check_graph(graph, visible, depth + 1, f"{where}: ")
        return taken

    def _check_type(self, value: Any, producer: Any, where: str) -> None:
        """Refuse a value that is not a tensor of numbers."""
        name = f"{where}value {shown(value.name)}"
        if producer is not None:
            name = f"{name_of_node(producer)}: output {shown(value.name)}"
        check_type(value.type, self._tensors.source, name)

    def _check_text(self, names: Iterable[object], where: str) -> None:
        for name in names:
            if not isinstance(name, str):  # protobuf leaves them as bytes
                self._refuse(f"{where}name {shown(name)}, expected UTF-8")

    def _check_unique(self, names: Sequence[str], where: str) -> None:
        name, count = Counter(names).most_common(1)[0] if names else ("", 1)
        if count > 1:
            self._refuse(f"{where} {shown(name)} is there {count} times, expected once")
        if "" in names:
            self._refuse(f"{where}: a value without a name")

    def _refuse(self, text: str) -> NoReturn:
        raise refusal(self._tensors.source, text)


def _graphs(attribute: Any) -> Iterator[Any]:
    if attribute.type == _GRAPH:
        yield attribute.g
    elif attribute.type == _GRAPHS:
        yield from attribute.graphs


def _names_of(node: Any) -> Iterator[object]:
    yield from (node.name, node.op_type, node.domain, node.overload, *node.input, *node.output)
    for attribute in node.attribute:
        yield attribute.name
        yield attribute.ref_attr_name
        for text in [attribute.s, *attribute.strings]:
            yield "" if _is_text(text) else text


def _is_text(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def all_nodes(nodes: Iterable[Any], depth: int = 0) -> Iterator[Any]:
    """Walk nodes and the nodes of their subgraphs, to the allowed depth."""
    for node in nodes:
        yield node
        for attribute in node.attribute if depth <= MOST_DEPTH else ():
            for graph in _graphs(attribute):
                yield from all_nodes(graph.node, depth + 1)
