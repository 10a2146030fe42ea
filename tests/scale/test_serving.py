"""examples/serving: started as its README says, and asked over loopback."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from onnx import TensorProto, helper

import packer

from ..support.paths import EXAMPLES

FOLDER = EXAMPLES / "serving"
CLIENT = httpx.Client(timeout=60)
WEIGHTS = np.arange(6, dtype="float32").reshape(3, 2)


@pytest.fixture(scope="module", autouse=True)
def closed_at_the_end() -> Iterator[None]:
    """Close the client's connections."""
    yield
    CLIENT.close()


def export(path: Path, bias: float) -> Path:
    """The model x @ WEIGHTS + bias, of any batch."""
    constants = [
        helper.make_tensor("w", TensorProto.FLOAT, (3, 2), WEIGHTS.tobytes(), raw=True),
        helper.make_tensor("b", TensorProto.FLOAT, (), [bias]),
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Add", ["product", "b"], ["y"]),
    ]
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ("batch", extent))]
        for name, extent in (("x", 3), ("y", 2))
    ]
    model = helper.make_model(helper.make_graph(nodes, "linear", *ends, constants))
    return packer.export_library(packer.from_onnx(model, dynamic=["batch"]), path)


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two versions of the model: bias 0 and bias 100."""
    folder = tmp_path_factory.mktemp("versions")
    return [export(folder / f"{bias:.0f}.so", bias) for bias in (0.0, 100.0)]


@contextmanager
def started(command: list[str], environment: dict[str, str], ready: str) -> Iterator[str]:
    """Run a server until the block ends; its address, once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, *(part.format(port=port) for part in command)],
        cwd=FOLDER,
        env={**os.environ, **environment},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        address = f"http://127.0.0.1:{port}"
        _wait(f"{address}{ready}", process)
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode in (0, -signal.SIGTERM), errors


def _wait(url: str, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        try:
            if CLIENT.get(url, timeout=10).status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError(f"{url} does not answer")


def request(values: Any, shape: list[int], **changes: Any) -> dict[str, Any]:
    """The body of a request with one input."""
    tensor = {"name": "x", "shape": shape, "datatype": "FP32", "data": values, **changes}
    return {"id": "7", "inputs": [tensor]}


@pytest.fixture(scope="module")
def server(
    versions: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path]]:
    """Two workers over a folder with one model."""
    models = tmp_path_factory.mktemp("models")
    (models / "linear.so").write_bytes(versions[0].read_bytes())
    command = ["-m", "uvicorn", "app:app", "--workers", "2", "--port", "{port}"]
    options = {"MODELS": str(models), "BUDGET": "1 GiB"}
    with started([*command, "--log-level", "error"], options, "/v2/health/ready") as address:
        yield address, models


def test_the_protocol_of_version_2_is_spoken(server: tuple[str, Path]) -> None:
    """Metadata with the extents of each request as -1, and tensors as JSON."""
    address, _ = server
    assert CLIENT.get(f"{address}/v2").json()["name"] == "dso-packer"
    assert CLIENT.get(f"{address}/v2/health/live").json() == {"live": True}
    assert CLIENT.get(f"{address}/v2/models/linear/ready").json() == {
        "name": "linear",
        "ready": True,
    }
    found = CLIENT.get(f"{address}/v2/models/linear").json()
    assert found["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}]
    assert found["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [-1, 2]}]
    for values in ([1, 2, 3, 4, 5, 6], [[1, 2, 3], [4, 5, 6]]):
        answer = CLIENT.post(
            f"{address}/v2/models/linear/infer", json=request(values, [2, 3])
        ).json()
        expected = np.arange(1, 7, dtype="float32").reshape(2, 3) @ WEIGHTS
        assert answer == {
            "id": "7",
            "model_name": "linear",
            "outputs": [
                {
                    "name": "y",
                    "datatype": "FP32",
                    "shape": [2, 2],
                    "data": expected.ravel().tolist(),
                }
            ],
        }


@pytest.mark.parametrize(
    ("model", "body", "status", "text"),
    [
        ("none", request([1, 2, 3], [1, 3]), 404, "none"),
        ("..%2flinear", request([1, 2, 3], [1, 3]), 404, ""),
        ("linear", request([1, 2], [1, 3]), 400, "x: "),
        ("linear", request([1, 2], [1, 2]), 400, "expected"),
        ("linear", request(["a"] * 3, [1, 3]), 400, "x: "),
        ("linear", request([1, 2, 3], [1, 3], datatype="FP8"), 400, "expected one of BOOL"),
        ("linear", request([1, 2, 3], [1, 3], name="z"), 400, "expected each of ['x'] once"),
        ("linear", {"inputs": []}, 400, "expected each of ['x'] once"),
        ("linear", {}, 422, ""),
        ("linear", request([3e38, 3e38, 3e38], [1, 3]), 500, "JSON cannot express"),
    ],
)
def test_bad_requests_are_answered_in_words(
    server: tuple[str, Path], model: str, body: dict[str, Any], status: int, text: str
) -> None:
    """With the protocol's object `error`, except where FastAPI itself answers."""
    address, _ = server
    answer = CLIENT.post(f"{address}/v2/models/{model}/infer", json=body)
    assert answer.status_code == status, answer.text
    assert text in json.dumps(answer.json().get("error", ""))


def test_a_new_version_is_served_without_an_error(
    server: tuple[str, Path], versions: list[Path]
) -> None:
    """While eight clients ask both workers; after the rename only the new one answers."""
    address, models = server
    url = f"{address}/v2/models/linear/infer"

    def ask(_number: int) -> float:
        answer = CLIENT.post(url, json=request([0, 0, 0], [1, 3]))
        answer.raise_for_status()
        return answer.json()["outputs"][0]["data"][0]

    with ThreadPoolExecutor(8) as clients:
        answers = clients.map(ask, range(200))
        (models / "new").write_bytes(versions[1].read_bytes())
        (models / "new").rename(models / "linear.so")
        assert set(clients.map(ask, range(100))) == {100.0}
        assert set(answers) <= {0.0, 100.0}


def test_kserve_reads_and_serves_the_folder(versions: list[Path], tmp_path: Path) -> None:
    """The folder is written by one command, and served by the kserve package."""
    script = str(FOLDER / "kserve_server.py")
    for path in versions:
        command = [sys.executable, script, "write", tmp_path, "linear", path]
        subprocess.run(command, check=True, timeout=60)
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.so")] == [
        "linear/model.so"
    ]
    serve = [script, "serve", str(tmp_path), "{port}"]
    with started(serve, {}, "/v2/models/linear/ready") as address:
        found = CLIENT.get(f"{address}/v2/models/linear").json()
        assert found["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}]
        url = f"{address}/v2/models/linear/infer"
        answer = CLIENT.post(url, json=request([1, 2, 3], [1, 3])).json()
        expected = np.array([1, 2, 3], "float32") @ WEIGHTS + 100
        assert answer["outputs"][0]["data"] == expected.tolist()
        assert answer["outputs"][0]["shape"] == [1, 2]
        wrong = CLIENT.post(url, json=request([1, 2, 3], [1, 3], name="z"))
        assert wrong.status_code == httpx.codes.BAD_REQUEST
        assert "expected ['x']" in wrong.text
