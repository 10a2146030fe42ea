"""Graph JSON: one field of a good graph poked per row, and the one refusal it gets."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runtime
from runtime._core import Graph
from runtime.serial.strict_json import MAX_DEPTH, MAX_VALUES
from runtime.tensors.dtype import string_to_dtype

from ...support.graphs import graph, null, op, sum_graph

Poke = Callable[[dict[str, Any]], object]


def put(value: Any, *path: Any) -> Poke:
    """Set the value at a path."""

    def poke(fields: dict[str, Any]) -> None:
        for key in path[:-1]:
            fields = fields[key]
        fields[path[-1]] = value

    return poke


def drop(*path: Any) -> Poke:
    """Remove the value at a path."""

    def poke(fields: dict[str, Any]) -> None:
        for key in path[:-1]:
            fields = fields[key]
        del fields[path[-1]]

    return poke


# The nodes: x, w, first = add(x, w), total = add(first, w).
POKES = {
    "no nodes": (drop("nodes"), "nodes, expected a list, found None"),
    "node is not an object": (put(7, "nodes", 1), "node 1, expected an object, found 7"),
    "no name": (drop("nodes", 0, "name"), "node 0: name, expected text, found None"),
    "empty name": (put("", "nodes", 0, "name"), "node 0: name, expected text, found ''"),
    "half surrogate": (put("\udc80", "nodes", 0, "name"), "node 0: name, expected Unicode"),
    "unknown op": (put("relu", "nodes", 2, "op"), "node 2 'first': op, expected 'null' or"),
    "no func_name": (drop("nodes", 2, "attrs", "func_name"), "node 2 'first': func_name, expected"),
    "attrs is a list": (put([], "nodes", 2, "attrs"), "node 2 'first': attrs, expected an object"),
    "reads itself": (put([2, 0, 0], "nodes", 2, "inputs", 0), "'first': input 0: node, expected"),
    "reads ahead": (put([3, 0, 0], "nodes", 2, "inputs", 0), "one of the 2 before it, found 3"),
    "reads node -1": (put([-1, 0, 0], "nodes", 2, "inputs", 0), "before it, found -1"),
    "reads node 2^63": (put([1 << 63, 0, 0], "nodes", 2, "inputs", 0), "found 9223372036854775808"),
    "reads node true": (put([True, 0, 0], "nodes", 2, "inputs", 0), "before it, found True"),
    "reads node 0.0": (put([0.0, 0, 0], "nodes", 2, "inputs", 0), "before it, found 0.0"),
    "reads output 1": (put([0, 1, 0], "nodes", 2, "inputs", 0), "output, expected one of 1 of 'x'"),
    "reference of one": (put([0], "nodes", 2, "inputs", 0), "expected [node, output, version]"),
    "inputs is text": (put("01", "nodes", 2, "inputs"), "'first': inputs, expected a list"),
    "input that reads": (put([[0, 0, 0]], "nodes", 1, "inputs"), "node 1 'w': an input, expected"),
    "num_inputs": (put("3", "nodes", 2, "attrs", "num_inputs"), "num_inputs, expected its 2"),
    "num_outputs 2": (put("2", "nodes", 2, "attrs", "num_outputs"), "expected 4 (2 outputs)"),
    "num_outputs huge": (
        put("9" * 9, "nodes", 2, "attrs", "num_outputs"),
        "node_row_ptr, expected",
    ),
    "num_outputs -1": (
        put("-1", "nodes", 2, "attrs", "num_outputs"),
        "num_outputs, expected a cou",
    ),
    "flatten_data": (
        put("yes", "nodes", 2, "attrs", "flatten_data"),
        "flatten_data, expected a co",
    ),
    "nop of two": (put("__nop", "nodes", 2, "attrs", "func_name"), "__nop, expected one and one"),
    "row_ptr shorter": (put([0, 1, 2, 3], "node_row_ptr"), "node_row_ptr, expected 5 offsets"),
    "row_ptr from 1": (
        put([1, 2, 3, 4, 5], "node_row_ptr"),
        "expected 5 offsets that begin with 0",
    ),
    "row_ptr from -0.0": (put(-0.0, "node_row_ptr", 0), "5 offsets that begin with 0"),
    "row_ptr falls": (put(1, "node_row_ptr", 3), "node 2 'first': node_row_ptr, expected 3"),
    "row_ptr text": (
        put("3", "node_row_ptr", 3),
        "node_row_ptr, expected 3 (1 outputs), found '3'",
    ),
    "arg_nodes operator": (put(2, "arg_nodes", 1), "arg_nodes, expected the index of an input"),
    "arg_nodes beyond": (put(4, "arg_nodes", 1), "arg_nodes, expected the index of an input"),
    "arg_nodes twice": (put(0, "arg_nodes", 1), "arg_nodes: the input 'x' occurs twice"),
    "arg_nodes lacks w": (put([0], "arg_nodes"), "expected every input, ['w'] are missing"),
    "one name twice": (put("x", "nodes", 1, "name"), "arg_nodes: the input 'x' occurs twice"),
    "head beyond": (put([4, 0, 0], "heads", 0), "head 0: node, expected one of the 4"),
    "head's output": (put([3, 1, 0], "heads", 0), "head 0: output, expected one of 1 of 'total'"),
    "heads is null": (put(None, "heads"), "heads, expected a list, found None"),
    "no attrs": (drop("attrs"), "attrs, expected an object, found None"),
    "no shape": (drop("attrs", "shape"), "attrs: shape, expected ['list_shape', [...]]"),
    "other tag": (put("list_int", "attrs", "shape", 0), "attrs: shape, expected ['list_shape'"),
    "shapes shorter": (
        drop("attrs", "shape", 1, 3),
        "shape: number of values, expected 4, one per",
    ),
    "dtypes shorter": (drop("attrs", "dltype", 1, 3), "dltype: number of values, expected 4"),
    "ids shorter": (drop("attrs", "storage_id", 1, 3), "storage_id: number of values, expected 4"),
    "negative extent": (
        put(-1, "attrs", "shape", 1, 2, 0),
        "'first': output 0: shape, expected at",
    ),
    "65 dimensions": (put([1] * 65, "attrs", "shape", 1, 2), "expected at most 64 extents"),
    "size wraps": (put([1 << 32, 1 << 32], "attrs", "shape", 1, 2), "a size that can be addressed"),
    "size wraps after 0": (put([0, 1 << 62, 4], "attrs", "shape", 1, 2), "that can be addressed"),
    "extent of 2^63": (
        put([1 << 63], "attrs", "shape", 1, 2),
        "shape, expected at most 64 extents",
    ),
    "sizes wrap together": (
        lambda fields: [put([1 << 58], "attrs", "shape", 1, i)(fields) for i in range(4)],
        "bytes together, expected what can be addressed",
    ),
    "unknown dltype": (put("float99x", "attrs", "dltype", 1, 2), "dltype, expected a data type"),
    "dltype of no bits": (put("void", "attrs", "dltype", 1, 2), "dltype, expected a data type"),
    "dltype 256 bits": (put("int200", "attrs", "dltype", 1, 2), "dltype, expected a data type"),
    "dltype is a list": (put([], "attrs", "dltype", 1, 2), "dltype, expected a data type"),
    "storage_id -1": (put(-1, "attrs", "storage_id", 1, 2), "'first': output 0: storage_id, expe"),
    "storage_id 2^31": (put(1 << 31, "attrs", "storage_id", 1, 2), "expected 0 to 2^31 - 1"),
    "device_index -1": (put(["list_int", [-1] * 4], "attrs", "device_index"), "a DLDeviceType"),
    "two devices, one memory": (
        lambda fields: (
            put(["list_int", [1, 1, 1, 4]], "attrs", "device_index")(fields),
            put(2, "attrs", "storage_id", 1, 3)(fields),
        ),
        "storage_id 2 of 'first' and 'total': device_index, expected the same device, found [1, 4]",
    ),
    "texture": (
        put(["list_str", ["", "", "global.texture", ""]], "attrs", "storage_scope"),
        "storage_scope, expected 'global'",
    ),
}


@pytest.mark.parametrize("name", POKES)
def test_a_malformed_graph(name) -> None:
    """The error is raised when the graph is parsed, with the node's name."""
    poke, expected = POKES[name]
    fields = sum_graph()
    poke(fields)
    with pytest.raises(runtime.BlobFormatError, match=re.escape(expected)) as caught:
        Graph(json.dumps(fields), "here")
    assert str(caught.value).startswith("here: ")


OWN = {
    "copy of another size": (
        "__copy",
        [3, 3],
        0,
        "__copy: bytes, expected its input's 24, found 36",
    ),
    "copy of another shape": ("__copy", [6], 0, "__copy: shape, expected its input's (2, 3), and"),
    "nop of another size": ("__nop", [3, 3], 0, "__nop: bytes, expected its input's 24, found 36"),
    "nop of other memory": ("__nop", [6], 1, "__nop: storage_id, expected its input's 0, found 1"),
}


@pytest.mark.parametrize("name", OWN)
def test_operators_of_the_executor_itself(name) -> None:
    """Sizes and memory of reshapes and copies, which no function checks at a call."""
    function, shape, storage_id, expected = OWN[name]
    fields = graph([null("x"), op("y", function, [0])], [1], [[2, 3], shape], [0, storage_id])
    with pytest.raises(runtime.BlobFormatError, match=re.escape(f"node 'y': {expected}")):
        Graph(json.dumps(fields))


TEXTS = {
    "empty": ("", "not JSON: expecting value"),
    "an array": ("[1]", "the whole, expected an object, found [1]"),
    "cut": ('{"nodes": [', "not JSON: expecting value at 0xb"),
    "a key twice": ('{"heads": [], "heads": []}', "key 'heads' occurs twice"),
    "NaN": ('{"a": NaN}', "NaN, expected a finite number"),
    "too large": ('{"a": -1e999}', "-1e999, expected a finite number"),
    "-Infinity": ('{"a": -Infinity}', "-Infinity, expected a finite number"),
    "half a surrogate pair": ("\udc80", "'utf-8' codec can't decode byte 0x80 in position 0"),
    "a long number": ('{"a": 1' + "0" * 1_000_000 + "}", "1000001 digits in a number, expected at"),
    "deep": ("[" * 1_000_000, "1000000 levels, expected at most 64"),
    "deep after a string": ('{"[\\"[": ' + "[" * 64, "65 levels, expected at most 64"),
    "many values": ("[" + "[]," * MAX_VALUES + "[]]", "values, expected at most 400000"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_hostile_json(name) -> None:
    """Bounds are checked before any allocation."""
    text, expected = TEXTS[name]
    with pytest.raises(runtime.BlobFormatError, match=re.escape(expected)):
        Graph(text)


def test_too_much_json() -> None:
    """The limit is 100 MB."""
    with pytest.raises(runtime.BlobFormatError, match="100000001 bytes, expected at most"):
        Graph(" " * 100_000_001)


def test_brackets_and_digits_in_strings_do_not_count() -> None:
    """Names may contain any characters."""
    fields = sum_graph()
    fields["nodes"][3]["name"] = '["\\' * MAX_DEPTH + "9" * 100
    assert Graph(json.dumps(fields)).inputs == ("x", "w")


def test_unknown_attributes_are_ignored() -> None:
    """Versions of TVM write private attributes, and references of two numbers."""
    fields = sum_graph()
    fields["attrs"]["other"] = ["list_int", []]
    fields["metadata"] = {"signature": 1.5}
    fields["nodes"][2]["attrs"]["hash"] = "98b3"
    fields["nodes"][2]["control_deps"] = []
    fields["nodes"][2]["inputs"] = [[0, 0], [1, 0]]
    fields["heads"] = [[3, 0]]
    assert Graph(json.dumps(fields)).inputs == Graph(json.dumps(sum_graph())).inputs


VALUES = [None, True, -1, 0, 1, 7, 1 << 63, 1.5, -0.0, "", "1", "__nop", "null", [], [0, 0, 0], {}]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a graph, by its path."""
    if path:
        yield path
    keys = value if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
    for key in keys:
        yield from places(value[key], (*path, key))


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(st.randoms(), st.sampled_from(VALUES)), min_size=1, max_size=3))
def test_any_field_may_be_anything(pokes) -> None:
    """Refused by our error, or a graph that can be laid out."""
    fields = sum_graph()
    for random, value in pokes:
        put(copy.deepcopy(value), *random.choice(list(places(fields))))(fields)
    try:
        parsed = Graph(json.dumps(fields))
    except runtime.BlobFormatError:
        return
    runtime.GraphExecutor(parsed, [Anything()])


NAMES = """
    float32 int8x4 bool boolx2 uint1 handle handle64 void bfloat16 float8_e4m3fn float8_e4m3fnx2
    float4_e2m1fn float8_e4m3fn8 complex64 custom[99]32 custom[99]32x2 custom[256]8 custom[]8 int
    custom[1] intx4 int32x xint32 int32x4x2 int032 int32x65536 int32x04 int-8 int32x0 int129 int128
    x4 8 boolx bool8 handlex2 float6_e2m3fn
"""


@pytest.mark.parametrize("name", [*NAMES.split(), "", "float32 ", " int8"])
def test_names_of_data_types(name) -> None:
    """The names that runtime.tensor accepts, with a size that can be addressed."""
    fields = sum_graph()
    fields["attrs"]["dltype"][1][2] = name
    try:
        _, bits, lanes = string_to_dtype(name)
        is_sized = 0 < bits <= 128 and lanes > 0
    except ValueError:
        is_sized = False
    if is_sized:
        assert Graph(json.dumps(fields)).inputs
    else:
        with pytest.raises(runtime.BlobFormatError, match="dltype"):
            Graph(json.dumps(fields))


class Anything(runtime.Module):
    """Has every operator."""

    def find_function(self, name: str) -> Callable[..., None]:
        """Return a function that does nothing."""
        return lambda *_: None


def test_an_empty_graph() -> None:
    """A graph without operators is valid."""
    empty = {"nodes": [], "arg_nodes": [], "heads": [], "node_row_ptr": [0]}
    empty["attrs"] = {"shape": ["list_shape", []], "dltype": ["list_str", []]}
    empty["attrs"]["storage_id"] = ["list_int", []]
    executor = runtime.graph_executor.create(json.dumps(empty), runtime.Module())
    executor.run()
    assert executor.get_num_outputs() == 0
