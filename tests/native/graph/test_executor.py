"""Graph executors in C give what Python's give, bit for bit, and fail with the same texts."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
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


def error_of(action: Callable[[], object]) -> str:
    """The line of an error."""
    with pytest.raises(Exception) as caught:  # noqa: PT011
        action()
    name, value = type(caught.value).__name__, caught.value
    return f"! {name}: {value.args[0] if isinstance(value, KeyError) else value}"


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


def test_numbers_and_indices(run, export) -> None:
    """They count parameters too."""
    path = export(sum_graph(), {"w": W})
    assert run(path, "get_num_inputs", "get_num_outputs") == ["2", "1"]
    asked = ["get_input_index", "w", "get_input_index", "no", "get_output_index", "total"]
    assert run(path, *asked, "get_output_index", "first") == ["1", "-1", "0", "-1"]


def test_errors_have_the_texts_of_python(run, export, write) -> None:
    """Unknown names, indices, shapes and inputs that are not set."""
    path, x, short = export(sum_graph()), write(X), write(X[0])
    executor = runtime.load(path)["default"]()
    lines = run(
        *(path, "run", "set_input", "y", x, "set_input", 5, x, "set_input", "x", short),
        *("get_output", 1, "get_input", -1, "debug_get_output", "fist", "debug_get_output", 9),
    )
    assert lines == [
        error_of(executor.run),
        error_of(lambda: executor.get_input("y")),
        error_of(lambda: executor.get_input(5)),
        error_of(lambda: executor.set_input("x", X[0])),
        error_of(lambda: executor.get_output(1)),
        error_of(lambda: executor.get_input(-1)),
        error_of(lambda: executor.debug_get_output("fist")),
        error_of(lambda: executor.debug_get_output(9)),
    ]


def test_operators_that_are_missing(run, export) -> None:
    """All are named, in the order of the graph."""
    nodes = [null("x"), *(op(f"n{i}", f"f{i % 11}", [i]) for i in range(14))]
    path = export(graph(nodes, [14]))
    assert run(path) == [error_of(runtime.load(path)["default"])]


def test_a_device_that_is_not_given(run, export) -> None:
    """The graph needs a kind of device."""
    fields = sum_graph()
    fields["attrs"]["device_index"] = ["list_int", [1, 1, 4, 4]]
    path = export(fields)
    assert run(path) == [error_of(runtime.load(path)["default"])]
    given = ("device", 1)
    assert run(path, *given) == [
        error_of(lambda: runtime.load(path)["default"](runtime.Device("cpu")))
    ]


def test_parameters_that_do_not_fit(run, export) -> None:
    """Another shape, or no input."""
    for params in ({"w": W[:1]}, {"v": W, "u": W}, {"w": W.astype("int64")}):
        path = export(sum_graph(), params)
        assert run(path) == [error_of(runtime.load(path)["default"])]


def test_a_malformed_graph(run, export) -> None:
    """It is refused when the executor is made."""
    fields = sum_graph()
    fields["heads"] = None
    path = export(fields)
    assert run(path) == [error_of(runtime.load(path)["default"])]


def test_a_params_dict(run, export, tmp_path, write) -> None:
    """Set from the bytes of a file; damaged ones are refused."""
    path, params = export(sum_graph()), tmp_path / "w.params"
    data = runtime.save_param_dict({"w": W})
    params.write_bytes(data)
    lines = run(path, "params", params, "set_input", "x", write(X), "run", "get_output", 0)
    assert lines == [(X + 2 * W).tobytes().hex()]
    executor = runtime.load(path)["default"]()
    for wrong in (data[:-1], b"\0" + data[1:], runtime.save_param_dict({"v": W, "u": W})):
        params.write_bytes(wrong)
        assert run(path, "params", params) == [error_of(lambda: executor.load_params(wrong))]  # noqa: B023


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
    for option in ("#define VERSION 2", "#define POOLS 1"):
        other = aot(tmp_path / "other.so", option)
        assert run(other) == [error_of(runtime.load(other)["default"])]
    other = aot(tmp_path / "other.so", params={"w": X[:1]})
    assert run(other) == [error_of(runtime.load(other)["default"])]


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


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs(run, export, write, seed) -> None:
    """The same outputs, twice, since operators may write to their inputs."""
    rng, arrays = random.Random(seed), np.random.default_rng(seed)
    values = {name: aligned(arrays.random((2, 3), "float32")) for name in "abc"}
    path = export(random_graph(rng), {"c": values["c"]} if seed % 2 else {})
    executor = runtime.load(path)["default"]()
    commands: list[Any] = []
    for name, value in values.items():
        if name != "c" or not seed % 2:
            executor.set_input(name, value)
            commands += ["set_input", name, write(value)]
    expected = []
    for _ in range(2):
        executor.run()
        commands.append("run")
        for i in range(executor.get_num_outputs()):
            expected.append(executor.get_output(i).numpy().tobytes().hex())
            commands += ["get_output", i]
    assert run(path, *commands) == expected


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
