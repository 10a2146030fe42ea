"""Graph JSON in C: the same graphs as in Python, and the same refusals."""

from __future__ import annotations

import copy
import ctypes
import json
import random
import subprocess
from collections.abc import Callable

import pytest

import runtime
from runtime.graph.graph import Graph
from runtime.graph.json import parse_graph

from ...runtime.graph.test_graph_json import OWN, POKES, TEXTS, VALUES, places, put
from ...support.graphs import graph, null, op, sum_graph
from ...support.libdso import FLAGS, LIBRARIES, archive

DRIVER = r"""
#include <inttypes.h>
#include <string.h>
#include "abi/raised.h"
#include "graph/graph.h"

static void dump(struct text *out, const struct graph *graph) {
  for (size_t i = 0; i < graph->num_nodes; i++) {
    const struct graph_node *node = &graph->nodes[i];
    text_add(out, node->name.data, node->name.size);
    text_format(out, " %s %d %zu+%zu:", node->function.data ? node->function.data : "-",
                node->flatten, node->first_output, node->num_outputs);
    for (size_t k = 0; k < node->num_inputs; k++) text_format(out, " %zu", node->inputs[k]);
    text_add(out, "\n", 1);
  }
  for (size_t i = 0; i < graph->num_entries; i++) {
    const struct graph_entry *entry = &graph->entries[i];
    graph_add_type(out, entry->dtype, entry->ndim, entry->shape);
    text_format(out, " %zu %" PRId64 " %d\n", entry->nbytes, entry->storage_id, entry->device_type);
  }
  for (size_t i = 0; i < graph->num_inputs; i++)
    text_format(out, "%zu ", graph_input_entry(graph, i));
  for (size_t i = 0; i < graph->num_outputs; i++) text_format(out, ">%zu ", graph->outputs[i]);
}

size_t run(const char *json, size_t nbytes, char *out, size_t room) {
  struct graph graph;
  struct text text = {0};
  const char *kind, *message;
  if (graph_parse(&graph, (struct span){json, nbytes}, "here") == 0) {
    dump(&text, &graph);
    graph_free(&graph);
  } else if (raised_look(&kind, &message)) {
    text_format(&text, "%s: %s", kind, message);
    raised_forget();
  }
  size_t size = text.size;
  if (size < room) memcpy(out, text_of(&text), size);
  text_free(&text);
  return size;
}
"""


@pytest.fixture(scope="module")
def parse(tmp_path_factory) -> Callable[[str], str]:
    """The graph as text, or the error."""
    folder = tmp_path_factory.mktemp("graph")
    (folder / "driver.c").write_text(DRIVER)
    command = ["cc", "-std=c11", *FLAGS, "-fvisibility=default", "-shared", "-Wl,-Bsymbolic"]
    command += [str(folder / "driver.c"), str(archive()), "-o", str(folder / "driver.so")]
    subprocess.run([*command, *LIBRARIES], check=True)
    library = ctypes.CDLL(str(folder / "driver.so"))
    library.run.restype = ctypes.c_size_t
    room = ctypes.create_string_buffer(1 << 20)

    def parse(text: str) -> str:
        data = text.encode()
        size = library.run(data, ctypes.c_size_t(len(data)), room, ctypes.c_size_t(len(room)))
        return room.raw[:size].decode("utf-8", "surrogatepass")

    return parse


def expected(text: str) -> str:
    """The same of Python."""
    try:
        return dump(parse_graph(text, where="here"))
    except runtime.BlobFormatError as error:
        return f"BlobFormatError: {error}"


def dump(parsed: Graph) -> str:
    """As the driver's."""
    text = ""
    for node in parsed.nodes:
        place = f"{node.outputs.start}+{len(node.outputs)}:"
        reads = "".join(f" {i}" for i in node.inputs)
        text += f"{node.name} {node.function or '-'} {node.flatten:d} {place}{reads}\n"
    for entry in parsed.entries:
        name = runtime.tensors.dtype.dtype_to_string(entry.dtype)
        device = -1 if entry.device_type is None else entry.device_type
        text += f"{name}{list(entry.shape)} {entry.nbytes} {entry.storage_id} {device}\n"
    inputs = "".join(f"{i} " for i in parsed.inputs.values())
    return text + inputs + "".join(f">{i} " for i in parsed.outputs)


@pytest.mark.parametrize("name", POKES)
def test_a_malformed_graph(parse, name) -> None:
    """The same text as Python's."""
    fields = sum_graph()
    POKES[name][0](fields)
    text = json.dumps(fields)
    assert parse(text) == expected(text)


@pytest.mark.parametrize("name", OWN)
def test_operators_of_the_executor_itself(parse, name) -> None:
    """Sizes and memory of reshapes and copies."""
    function, shape, storage_id, _ = OWN[name]
    fields = graph([null("x"), op("y", function, [0])], [1], [[2, 3], shape], [0, storage_id])
    assert parse(json.dumps(fields)) == expected(json.dumps(fields))


@pytest.mark.parametrize("name", [name for name, (text, _) in TEXTS.items() if text.isascii()])
def test_hostile_json(parse, name) -> None:
    """The limits of the text."""
    text = TEXTS[name][0]
    assert parse(text) == expected(text)


def test_any_field_may_be_anything(parse) -> None:
    """Random values at random places: the same graph, or the same refusal."""
    rng = random.Random(7)
    values = [*VALUES, "x" * 90, [1] * 40, {"a": [None, {"b": 1e300}]}, 1e16, "é'\n", "bool", "12"]
    for _ in range(4000):
        fields = sum_graph()
        fields["attrs"]["device_index"] = ["list_int", [1, 1, 1, 1]]
        for _ in range(rng.randint(1, 3)):
            put(copy.deepcopy(rng.choice(values)), *rng.choice(list(places(fields))))(fields)
        text = json.dumps(fields)
        assert parse(text) == expected(text), text


NAMES = """
    float32 int8x4 bool boolx2 uint1 handle handle64 void bfloat16 float8_e4m3fn float8_e4m3fnx2
    float4_e2m1fn float8_e4m3fn8 complex64 custom[99]32 custom[99]32x2 custom[256]8 custom[]8 int
    custom[1] intx4 int32x xint32 int32x4x2 int032 int32x65536 int32x04 int-8 int32x0 int129 int128
    x4 8 boolx bool8 handlex2 float6_e2m3fn
"""


@pytest.mark.parametrize("name", [*NAMES.split(), "", "float32 ", " int8"])
def test_names_of_data_types(parse, name) -> None:
    """All forms of a name."""
    fields = sum_graph()
    fields["attrs"]["dltype"][1][2] = name
    assert parse(json.dumps(fields)) == expected(json.dumps(fields))
