"""Graph executors called by a C program: results beside NumPy, errors, no leak."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime

from ...support.graph_arrays import W, X, aligned
from ...support.graphs import graph, null, op, sum_graph
from ...support.libdso import SANITIZE, compile_program, run_program
from ...support.paths import C_SOURCES

SOURCE = Path(__file__).with_name("executor.c").read_text()
AOT = (C_SOURCES / "aot.c").read_text()

Run = Callable[..., list[str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    """Run the program; its lines."""
    program = compile_program(SOURCE, tmp_path_factory.mktemp("c") / "executor")
    return lambda *arguments: run_program(program, *arguments).splitlines()


@pytest.fixture
def write(tmp_path) -> Callable[[np.ndarray], Path]:
    """A file of an array's bytes."""

    def write(array: np.ndarray) -> Path:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.bin"
        path.write_bytes(array.tobytes())
        return path

    return write


def test_a_model_with_its_parameters(run, export, write) -> None:
    """One file; input by name or index."""
    path = export(sum_graph(), {"w": W})
    x = write(X)
    expected = (X + 2 * W).tobytes().hex()
    lines = run(path, "set_input", "x", x, "run", "get_output", 0, "get_input", "w")
    assert lines == [expected, W.tobytes().hex()]
    assert run(path, "set_input_zero_copy", 0, x, "run", "get_output", 0) == [expected]
    assert run(path, "device", 1, "set_input", 0, x, "run", "get_output", 0) == [expected]
    assert run(path, "set_input", "x", x, "debug_get_output", "first") == [(X + W).tobytes().hex()]


def test_a_params_dict(run, export, tmp_path, write) -> None:
    """Set from the bytes of a file; damaged ones are refused."""
    path, params = export(sum_graph()), tmp_path / "w.params"
    data = runtime.save_param_dict({"w": W})
    params.write_bytes(data)
    lines = run(path, "params", params, "set_input", "x", write(X), "run", "get_output", 0)
    assert lines == [(X + 2 * W).tobytes().hex()]
    params.write_bytes(data[:-1])
    (line,) = run(path, "params", params)
    assert line.startswith("! BlobFormatError: params at 0x")


def test_alignment_of_zero_copy(run, export, write) -> None:
    """Declared functions take any alignment; the array begins at the second element."""
    path, x = export(sum_graph(), {"w": W}), np.arange(7, dtype="float32")
    lines = run(path, "unaligned", "x", write(x[:6]), "run", "get_output", 0)
    found = np.frombuffer(bytes.fromhex(lines[0]), "float32")[:5]
    assert np.array_equal(found, x[1:6] + 20)


def aot(path: Path, *options: str, params: dict[str, Any] | None = None) -> Path:
    """A library of a model that was compiled ahead of time."""
    made = runtime.AotExecutorFactory(params or {})
    made.import_module(packer.CSourceModule("\n".join([*options, AOT])))
    packer.export_library(made, path)
    return path


def test_a_model_that_was_compiled_ahead_of_time(run, tmp_path, write) -> None:
    """Its library states its inputs; its main function is the one operator."""
    path = aot(tmp_path / "aot.so", params={"w": X + 1})
    lines = run(path, "set_input", "x", write(X), "run", "get_output", 0, "get_num_inputs")
    assert lines == [(X * (X + 1)).tobytes().hex(), "2"]


def random_graph(rng: random.Random) -> dict[str, Any]:
    """A graph of additions, increments, reshapes and copies, on shared storage or not."""
    nodes: list[dict[str, Any]] = [null("a"), null("b"), null("c")]
    storage_ids = [0, 1, 2]
    for i in range(rng.randint(1, 12)):
        source, other = rng.randrange(len(nodes)), rng.randrange(len(nodes))
        kind = rng.choice(["add", "add", "increase", "__nop", "__copy"])
        inputs = [source, other] if kind == "add" else [source]
        flat = {"flatten_data": "1"} if kind == "add" and rng.random() < 0.3 else {}
        nodes.append(op(f"n{i}", kind, inputs, **flat))
        storage_ids.append(storage_ids[source] if kind == "__nop" else len(storage_ids))
    heads = [rng.randrange(3, len(nodes)) for _ in range(rng.randint(1, 3))]
    return graph(nodes, heads, None, storage_ids)


def by_numpy(fields: dict[str, Any], values: dict[str, np.ndarray]) -> Iterator[np.ndarray]:
    """Yield the outputs of two runs; arrays of one storage are one array."""
    places, nodes = fields["attrs"]["storage_id"][1], fields["nodes"]
    memory = {places[i]: values[name].copy() for i, name in enumerate("abc")}
    for _ in range(2):
        for place, node in list(zip(places, nodes, strict=True))[3:]:
            source, *others = (memory[places[i]] for i, _, _ in node["inputs"])
            kind = node["attrs"]["func_name"]
            if kind == "increase":
                source += 1
            if kind != "__nop":
                memory[place] = source + others[0] if others else source.copy()
        for head, _, _ in fields["heads"]:
            yield memory[places[head]].copy()


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs(run, export, write, seed) -> None:
    """NumPy's outputs, twice, since operators may write to their inputs."""
    fields, arrays = random_graph(random.Random(seed)), np.random.default_rng(seed)
    values = {name: aligned(arrays.random((2, 3), "float32")) for name in "abc"}
    path = export(fields, {"c": values["c"]} if seed % 2 else {})
    names = "ab" if seed % 2 else "abc"
    commands = [word for name in names for word in ("set_input", name, write(values[name]))]
    outputs = [word for i in range(len(fields["heads"])) for word in ("get_output", i)]
    expected = [array.tobytes().hex() for array in by_numpy(fields, values)]
    assert run(path, *commands, *(["run", *outputs] * 2)) == expected


def test_with_sanitizers(tmp_path, export, write, monkeypatch) -> None:
    """No leak, no undefined behaviour, on the way of success and of errors."""
    program = compile_program(SOURCE, tmp_path / "checked", *SANITIZE)
    path, x = export(sum_graph(), {"w": W}), write(X)
    params = tmp_path / "w.params"
    params.write_bytes(runtime.save_param_dict({"w": W}))
    words = ["set_input", "x", x, "run", "get_output", 0, "params", params, "run", "get_output", 9]
    words += ["set_input", "q", x, "debug_get_output", "first", "get_output", 0]
    text = run_program(program, path, *words)
    assert text.splitlines()[0] == text.splitlines()[-1] == (X + 2 * W).tobytes().hex()
    for fields in (sum_graph() | {"heads": None}, graph([null("x"), op("y", "lost", [0])], [1])):
        assert run_program(program, export(fields)).startswith("! ")
    assert json.loads(runtime.load(export(sum_graph())).get_graph_json()) == sum_graph()
