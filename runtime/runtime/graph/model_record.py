"""The record ``dso.graph`` of a model: its inputs, its outputs, and the graph that it was made of.

JSON in the ``__metadata__`` of a safetensors file (docs/format.md). It describes the library:
nothing that runs depends on it.
"""

from __future__ import annotations

from typing import NamedTuple

from ..abi import MODEL_RECORD
from ..error import shown
from ..serial.strict_json import parse_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    Ends = tuple[tuple["TensorInfo", ...], tuple["TensorInfo", ...]]

VERSION = 1
_MOST_NUMBER = 1 << 62


class TensorInfo(NamedTuple):
    """An input or output of a model, or a value of its graph.

    Attributes
    ----------
    name : str
        Its name in the model.
    dtype : str
        The name of its data type, as ``"float32"``.
    shape : tuple of int or str
        The extents; one that each call may choose is its name, as ``"batch"``.
    layout : str
        How it is stored, if not in C order, as ``"NCHW16c"``; else "".
    most : tuple of (str, int)
        The names of extents of an input that have a greatest value, with that.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    layout: str = ""
    most: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        layout = f" as {self.layout}" if self.layout else ""
        bounds = {name: f"{name} <= {value}" for name, value in self.most}
        extents = (bounds.get(str(extent), str(extent)) for extent in self.shape)
        return f"{self.name}: {self.dtype}[{', '.join(extents)}]{layout}"


def signature_text(function: str, inputs: Iterable[object], outputs: Sequence[object]) -> str:
    """Return the signature of a function: ``"main(x: float32[1, 3]) -> y: float32[1, 10]"``."""
    result = ", ".join(map(str, outputs))
    result = result if len(outputs) == 1 else f"({result})"
    return f"{function}({', '.join(map(str, inputs))}) -> {result}"


class GraphNode(NamedTuple):
    """An operator of a graph.

    Attributes
    ----------
    name : str
        The node of the model.
    op : str
        Its kind, as ``"Conv"``.
    function : str
        The function that it calls.
    inputs, outputs : tuple of str
        Names of values.
    flops : int
        Floating-point operations of a call; with a symbolic extent those for 1.
    drawing : str
        Lines of text that an importer draws of it, for readers; else "".
    """

    name: str
    op: str
    function: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    flops: int
    drawing: str = ""


class Variant(NamedTuple):
    """One of several sets of shapes, and the function for it."""

    function: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]


class State(NamedTuple):
    """An input that a session keeps, and the output that is its next value.

    Attributes
    ----------
    input, output : str
        Their names in the model.
    appended : bool
        True if calls append rows, in place; else they replace it.
    """

    input: str
    output: str
    appended: bool


class ModelRecord:
    """A record, checked.

    Attributes
    ----------
    inputs, outputs : tuple of TensorInfo
        Of the model; if there are several sets of shapes, of the first set.
    variants : tuple of Variant
        All sets of shapes, or functions, if there are several.
    states : tuple of State
        What a session keeps; neither an input nor an output.
    nodes : tuple of GraphNode
        The operators.
    values : dict of str to TensorInfo
        What the operators read and write.
    weights : dict of str to dict
        How a weight is stored that is not an array of its shape: ``form`` and more.
    folded : dict of str to str
        The weights of the model that are not stored, each with the reason.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        _check_version(fields)
        self.inputs = _infos(fields, "inputs")
        self.outputs = _infos(fields, "outputs")
        variants = _each(fields, "variants", dict)
        self.variants = tuple(
            Variant(_field(v, "function", str), _infos(v, "inputs"), _infos(v, "outputs"))
            for v in variants
        )
        self.states = tuple(map(_state, _each(fields, "states", dict)))
        self.nodes = tuple(map(_node, _each(fields, "nodes", dict)))
        values = _field(fields, "values", dict, {})
        self.values = {name: _info(value, name) for name, value in values.items()}
        self.weights: dict[str, dict[str, Any]] = _table(fields, "weights", dict)
        self.folded: dict[str, str] = _table(fields, "folded", str)

    def ends_of(self, function: str) -> Ends | None:
        """Return the inputs and outputs of a function; None if it is not one of the record."""
        for variant in self.variants:
            if variant.function == function:
                return variant.inputs, variant.outputs
        return (self.inputs, self.outputs) if function == "main" else None


def parse_record(text: str) -> ModelRecord:
    """Parse a record; ValueError says what is wrong with it."""
    try:
        fields = parse_json(text)
        _expect("the record", fields, dict)
        return ModelRecord(fields)
    except ValueError as error:
        raise ValueError(f"{MODEL_RECORD}: {error}") from None


# ---- Fields


def _check_version(fields: Mapping[str, Any]) -> None:
    version = fields.get("version")
    if type(version) is not int or version != VERSION:
        raise ValueError(f"version {shown(version)}, expected {VERSION}")


def _expect(what: str, value: Any, kind: type) -> None:
    names = {dict: "a table", list: "a list", str: "text", int: "a number of at least 0"}
    names |= {bool: "true or false"}
    is_number = isinstance(value, int) and 0 <= value < _MOST_NUMBER
    if type(value) is not kind or (kind is int and not is_number):
        raise ValueError(f"{what}, expected {names[kind]}, found {shown(value)}")


def _field(fields: Mapping[str, Any], key: str, kind: type, default: Any = None) -> Any:
    value = fields.get(key, default)
    _expect(key, value, kind)
    return value


def _each(fields: Mapping[str, Any], key: str, kind: type) -> list[Any]:
    items: list[Any] = _field(fields, key, list, [])
    for item in items:
        _expect(key, item, kind)
    return items


def _table(fields: Mapping[str, Any], key: str, kind: type) -> dict[str, Any]:
    table: dict[str, Any] = _field(fields, key, dict, {})
    for name, value in table.items():
        _expect(f"{key}: {shown(name)}", value, kind)
    return table


def _infos(fields: Mapping[str, Any], key: str) -> tuple[TensorInfo, ...]:
    return tuple(_info(item, _field(item, "name", str)) for item in _each(fields, key, dict))


def _info(fields: Any, name: str) -> TensorInfo:
    _expect(f"value {shown(name)}", fields, dict)
    shape = _field(fields, "shape", list)
    for extent in shape:
        _expect(f"extent of {shown(name)}", extent, str if isinstance(extent, str) else int)
    layout = _field(fields, "layout", str, "")
    most = tuple(_table(fields, "most", int).items())
    return TensorInfo(name, _field(fields, "dtype", str), tuple(shape), layout, most)


def _state(fields: Mapping[str, Any]) -> State:
    return State(
        _field(fields, "input", str),
        _field(fields, "output", str),
        _field(fields, "appended", bool, False),
    )


def _node(fields: Mapping[str, Any]) -> GraphNode:
    return GraphNode(
        _field(fields, "name", str, ""),
        _field(fields, "op", str, ""),
        _field(fields, "function", str, ""),
        tuple(_each(fields, "inputs", str)),
        tuple(_each(fields, "outputs", str)),
        _field(fields, "flops", int, 0),
        _field(fields, "drawing", str, ""),
    )
