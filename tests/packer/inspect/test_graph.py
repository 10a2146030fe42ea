"""The graph of a model in `packer inspect`: as text, as JSON, and drawn on the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import packer
import runtime
from packer.inspect import inspect_library, render
from packer.inspect.graph import read_graph
from packer.inspect.page.graph import Row, draw_graph
from packer.model_text import flops_text

from ...support import models, needs
from ...support.paths import DOCS
from .browser import opened, running_browser
from .json_schema import faults

MAIN = "main(x.1: float32[batch, 40]) -> (scores: float32[batch, 48], hidden: float32[batch, 48])"
SCHEMA = json.loads((DOCS / "inspect.schema.json").read_text())


def node(name: str, reads: str, writes: str, op: str = "Op", flops: int = 1) -> dict[str, Any]:
    """A node of a record; values are separated by spaces."""
    values = {"inputs": reads.split(), "outputs": writes.split()}
    return {"name": name, "op": op, "function": f"f_{name}", **values, "flops": flops}


def info(name: str) -> dict[str, Any]:
    """An input or output."""
    return {"name": name, "dtype": "float32", "shape": [2, 3]}


def drawn(nodes: list[dict[str, Any]], inputs: str = "x", outputs: str = "y") -> list[Row]:
    """The rows of a graph."""
    record = models.record(nodes=nodes, values={})
    record["inputs"] = [info(name) for name in inputs.split()]
    record["outputs"] = [info(name) for name in outputs.split()]
    graph = read_graph(models.weights(record), [])
    assert graph is not None
    return list(draw_graph(graph))


def test_a_node_has_the_drawing_of_its_importer() -> None:
    """Text; another value is refused."""
    one = {**node("a", "x", "y"), "drawing": "x <= 1\n  yes: 2"}
    assert [row.drawing for row in drawn([one])] == ["", "x <= 1\n  yes: 2", ""]
    notes: list[str] = []
    assert read_graph(models.weights(models.record(nodes=[{**one, "drawing": 1}])), notes) is None
    assert "drawing, expected text, found 1" in notes[0]


@pytest.fixture(scope="module")
def path(tmp_path_factory: Any) -> Path:
    """The library of a model."""
    return packer.export_library(models.model(), tmp_path_factory.mktemp("model") / "m.so")


def test_the_text_has_the_graph(path: Path) -> None:
    """It leads with the signature, operators by kind, flops, and how the weights are stored."""
    lines = render(inspect_library(path)).splitlines()
    assert lines[1:4] == [
        MAIN,
        "graph: 2 operators, 3.89 kFLOP for batch = 1: 1 dso.MatMul, 1 Mul",
        "  weights of it: 1 packed as an operator reads them, 1 folded into others",
    ]


def test_the_operators_are_one_line(path: Path) -> None:
    """The functions that the bytecode calls; the signature of main is not repeated."""
    report = inspect_library(path)
    lines = render(report).splitlines()
    assert "operators: 2 functions that the model calls, listed with --json" in lines
    assert "functions:" not in lines
    assert not [line for line in lines if "dense_relu" in line]
    assert report.modules[0].signatures == (MAIN,)
    marks = {f["name"]: f["is_operator"] for f in report.to_dict()["functions"]}
    assert marks == {"dense_relu": True, "scaled": True}


def test_functions_beside_the_operators_are_listed(tmp_path: Path) -> None:
    """A library of a model and of a user's functions: only the operators are folded."""
    model = models.model()
    model.import_module(packer.CSourceModule("int own(int x) { return x; }", functions="auto"))
    path = packer.export_library(model, tmp_path / "m.so")
    lines = render(inspect_library(path)).splitlines()
    at = lines.index("functions:")
    assert lines[at + 1] == "  int own(int x)"
    assert lines[at + 2].startswith("operators: 2 functions")


def test_the_operators_of_a_graph_are_folded(tmp_path: Path) -> None:
    """TVM's graph executor calls its operators by the names of the graph."""
    graph = {
        "nodes": [
            {"op": "null", "name": "x", "inputs": []},
            {
                "op": "tvm_op",
                "name": "twice",
                "inputs": [[0, 0, 0]],
                "attrs": {
                    "func_name": "fused_twice",
                    "num_inputs": "1",
                    "num_outputs": "1",
                    "flatten_data": "0",
                },
            },
        ],
        "arg_nodes": [0],
        "heads": [[1, 0, 0]],
        "node_row_ptr": [0, 1, 2],
        "attrs": {
            "dltype": ["list_str", ["float32", "float32"]],
            "shape": ["list_shape", [[2], [2]]],
            "storage_id": ["list_int", [0, 1]],
        },
    }
    factory = runtime.GraphExecutorFactory(json.dumps(graph), {})
    source = "void fused_twice(float *x, float *y) {} int own(void) { return 1; }"
    factory.import_module(packer.CSourceModule(source, functions="auto"))
    report = inspect_library(packer.export_library(factory, tmp_path / "m.so"))
    assert {f.name: f.is_operator for f in report.functions} == {"fused_twice": True, "own": False}
    assert "operators: 1 function that the model calls" in render(report)


def test_the_json_has_all(path: Path) -> None:
    """As the schema says."""
    report = inspect_library(path).to_dict()
    assert list(faults(report, SCHEMA, SCHEMA)) == []
    graph = report["graph"]
    assert graph["nodes"] == [{**one, "drawing": ""} for one in models.RECORD["nodes"]]
    assert graph["operators"] == {"dso.MatMul": 1, "Mul": 1}
    assert graph["flops"] == 2 * 40 * 48 + 48
    assert graph["weights_nbytes"] == 4 * (2 * 40 * 32 + 48 + 48)
    assert graph["folded"] == models.RECORD["folded"]
    assert graph["values"]["hidden"]["shape"] == ["batch", 48]
    assert report["modules"][graph["module"]]["type_key"] == "safetensors"


def test_variants_are_listed(tmp_path: Path) -> None:
    """Each further set of shapes, with its function."""
    ends = {"outputs": [info("y")]}
    record = models.record()
    record["variants"] = [
        {"function": "main_1", "inputs": record["inputs"], **ends},
        {"function": "main_2", "inputs": [info("x.1")], **ends},
    ]
    report = inspect_library(packer.export_library(models.model(record), tmp_path / "m.so"))
    assert list(faults(report.to_dict(), SCHEMA, SCHEMA)) == []
    assert render(report).splitlines()[2] == "  also main_2(x.1: float32[2, 3]) -> y: float32[2, 3]"


def test_a_malformed_record_is_a_note(tmp_path: Path) -> None:
    """A load does not read it, so it is not a problem."""
    library = packer.export_library(models.model({"version": 3}), tmp_path / "m.so")
    report = inspect_library(library)
    assert report.graph is None
    assert report.problems == ()
    (note,) = report.notes
    assert note.startswith("the graph cannot be read: ")
    assert "dso.graph: version 3, expected 1" in note


def test_a_library_without_a_model_has_none(tmp_path: Path) -> None:
    """The JSON has null, the text no line."""
    plain = runtime.SafetensorsModule(models.safetensors({"w": models.BIAS}))
    host = packer.CSourceModule("int one(void) { return 1; }", functions="auto")
    host.import_module(plain)
    report = inspect_library(packer.export_library(host, tmp_path / "m.so"))
    assert list(faults(report.to_dict(), SCHEMA, SCHEMA)) == []
    assert report.to_dict()["graph"] is None
    assert "graph:" not in render(report)


@pytest.mark.parametrize(
    ("flops", "text"),
    [(0, "0 FLOP"), (999, "999 FLOP"), (1000, "1 kFLOP"), (3637e6, "3.64 GFLOP"),
     (999_600, "1 MFLOP"), (2e15, "2e+03 TFLOP")],
)  # fmt: skip
def test_flops_are_short(flops: float, text: str) -> None:
    """Three digits, and a unit."""
    assert flops_text(int(flops)) == text


# ---- The drawing


def test_a_chain_is_one_lane() -> None:
    """Inputs and outputs of the model are rows too."""
    rows = drawn([node("a", "x w", "h"), node("b", "h", "y")])
    assert [row.kind for row in rows] == ["input", "Op", "Op", "output"]
    assert [row.lane for row in rows] == [0, 0, 0, 0]
    assert [row.ends for row in rows] == [(), (0,), (0,), (0,)]
    assert [row.begins for row in rows] == [(0,), (0,), (0,), ()]
    assert [row.passes for row in rows] == [(), (), (), ()]


def test_a_value_that_is_read_again_passes() -> None:
    """A residual connection keeps its lane beside the branch."""
    rows = drawn([node("a", "x", "h"), node("b", "h", "i"), node("c", "i x", "y")])
    _, a, b, c, _ = rows
    assert (a.lane, a.ends, a.begins, a.passes) == (1, (0,), (1,), (0,))
    assert (b.lane, b.ends, b.begins, b.passes) == (1, (1,), (1,), (0,))
    assert (c.ends, c.begins, c.passes) == ((1, 0), (0,), ())


def test_values_that_no_one_reads_have_no_lane() -> None:
    """An operator without a line still has its dot, and weights have none."""
    rows = drawn([node("a", "w", "unused"), node("b", "x", "y")])
    assert rows[1].begins == rows[1].ends == ()
    assert rows[1].lane not in rows[1].passes


def test_lanes_do_not_cross_in_any_row() -> None:
    """In a random graph, each lane belongs to one value between its first and its last row."""
    import random

    numbers = random.Random(5)
    values, nodes = ["x"], []
    for index in range(200):
        reads = numbers.choices(values[-8:], k=numbers.randrange(1, 4))
        writes = [f"v{index}_{i}" for i in range(numbers.randrange(1, 3))]
        nodes.append(node(str(index), " ".join(reads), " ".join(writes)))
        values += writes
    rows = drawn(nodes, outputs=values[-1])
    open_lanes: set[int] = set()
    for row in rows:
        assert set(row.ends) <= open_lanes
        assert set(row.passes) <= open_lanes
        assert open_lanes == set(row.ends) | set(row.passes)
        open_lanes = set(row.passes) | set(row.begins)
        assert len(open_lanes) == len(row.passes) + len(row.begins)
    assert open_lanes == set()


def test_the_page_draws_it(path: Path, tmp_path: Path) -> None:
    """In a browser: the rows, their lanes, a row that opens, and the search."""
    needs.browser()
    page_path = tmp_path / "m.html"
    packer.write_report(path, page_path)
    with running_browser() as browser, opened(browser, page_path) as page:
        assert (
            page.locator("#graph-lead")
            .inner_text()
            .startswith("2 operators, 3.89 kFLOP for batch = 1. A line")
        )
        assert page.locator("header #signatures").inner_text() == MAIN
        assert page.locator("header #work").inner_text() == "2 operators, 3.89 kFLOP for batch = 1"
        sections = page.locator("main section")
        assert [sections.nth(i).get_attribute("id") for i in (0, 1)] == ["findings", "graph"]
        rows = page.locator("#graph-rows details")
        assert rows.count() == 5
        assert page.locator("#graph-rows svg circle").count() == 5
        assert "dso.MatMul" in rows.nth(1).inner_text()
        assert "float32[batch, 48]" in rows.nth(1).inner_text()
        rows.nth(1).locator("summary").click()
        assert "dense.weight float32[40, 48] as packed" in rows.nth(1).inner_text()
        assert "dense_relu" in rows.nth(1).inner_text()
        page.locator("#graph-query").fill("scaled")
        assert page.locator("#graph-count").inner_text() == "1 of 5 rows"
        page.locator("#graph-query").fill("")
        page.locator("#graph-folded summary").click()
        assert "norm.mean\ta part of dense" in page.locator("#graph-folded").inner_text()


def test_the_page_folds_the_operators(path: Path, tmp_path: Path) -> None:
    """The list has main; the functions of the operators open, and the search finds them."""
    needs.browser()
    page_path = tmp_path / "m.html"
    packer.write_report(path, page_path)
    with running_browser() as browser, opened(browser, page_path) as page:
        listed, fold = page.locator("#functions-list code"), page.locator("#functions-operators")
        assert listed.all_inner_texts() == [MAIN]
        assert fold.locator("summary").inner_text() == "2 functions of the model's operators"
        fold.locator("summary").click()
        assert "dense_relu(" in fold.locator("code").first.inner_text()
        page.locator("#functions-query").fill("scaled")
        (found,) = listed.all_inner_texts()
        assert "scaled(" in found
        assert not fold.is_visible()


def test_the_page_of_another_library_has_no_graph(tmp_path: Path) -> None:
    """The section is hidden, and not among the parts."""
    needs.browser()
    host = packer.CSourceModule("int one(void) { return 1; }", functions="auto")
    packer.write_report(packer.export_library(host, tmp_path / "m.so"), tmp_path / "m.html")
    with running_browser() as browser, opened(browser, tmp_path / "m.html") as page:
        assert page.locator("#graph").is_hidden()
        assert "Graph" not in page.locator("#parts").inner_text()
