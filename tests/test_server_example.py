"""examples/server: built with CMake and the installed package, and asked by several clients."""

from __future__ import annotations

import functools
import json
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import packer
import runtime

from .support import needs
from .support.command_line import COMMAND
from .support.graphs import factory, graph, null, op
from .support.paths import EXAMPLES

FOLDER = EXAMPLES / "server"
THREADS, CLIENTS, REQUESTS = 4, 8, 40
SIDE = 224
SHAPE = (SIDE, SIDE, 3)
OCTETS = {"Content-Type": "application/octet-stream"}

# A model with the functions of ResNet-18. The first byte of a picture makes it fail, or take long.
FAILING = """
#include <stdio.h>
#include <time.h>
#include "dso_packer.h"
dso_status normalize(const uint8_t *rgb, float *picture, int64_t pixels) {
  if (rgb[0] == 0) return dso_raise("ValueError", "the picture is too dark");
  if (rgb[0] == 2) {
    const struct timespec time = {0, 300000000};
    fclose(fopen(STARTED, "w"));
    nanosleep(&time, NULL);
  }
  picture[0] = (float)pixels;
  return 0;
}
void scores(const float *picture, float *scores) {
  for (int i = 0; i < 8; i++) scores[i] = picture[0] + (float)(i % 4);
}
"""
FUNCTIONS = {
    "normalize": "dso_status(const uint8_t *rgb, float *picture, int64_t pixels)",
    "scores": "void(const float *picture, float *scores)",
}

Build = tuple[Path, Path]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """The server and deploy.so, as README.md says."""
    needs.program("cmake")
    needs.library("cpp-httplib", "libcpp-httplib-dev")
    folder = tmp_path_factory.mktemp("server")
    config = [*COMMAND, "config", "--cmakedir"]
    package = subprocess.run(config, capture_output=True, text=True, check=True).stdout.strip()
    for command in (
        ["cmake", "-S", FOLDER, "-B", folder, f"-Ddso_DIR={package}"],
        ["cmake", "--build", folder],
    ):
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "warning" not in ran.stdout + ran.stderr
    return folder / "server", folder / "deploy.so"


@contextmanager
def serving(program: Path, library: Path, threads: int = THREADS) -> Iterator[Any]:
    """Start a server on a free port; it must end with 0 at SIGTERM."""
    command = [program, library, "0", str(threads)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as ran:
        assert ran.stdout is not None
        try:
            line = ran.stdout.readline()
            assert line.startswith("listening on http://127.0.0.1:"), ran.communicate()[1]
            yield Server(ran.pid, int(line.rpartition(":")[2]))
        finally:
            ran.send_signal(signal.SIGTERM)
            rest, errors = ran.communicate(timeout=30)
    assert (ran.returncode, rest, errors) == (0, "", "")


class Server:
    """A server that runs."""

    def __init__(self, pid: int, port: int) -> None:
        self.pid, self.port = pid, port

    def ask(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] = OCTETS
    ) -> tuple[int, str]:
        """Return status and text of one request on its own connection."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def classify(self, rgb: np.ndarray) -> dict[str, Any]:
        """Return the answer for a picture."""
        status, text = self.ask("POST", "/classify", rgb.tobytes())
        assert status == 200, text
        answer: dict[str, Any] = json.loads(text)
        return answer

    def memory(self, key: str, name: str = "") -> int:
        """Return the sum of a key of smaps, in bytes, over the mappings of a file, or over all."""
        total, is_counted = 0, True
        for line in Path(f"/proc/{self.pid}/smaps").read_text().splitlines():
            first = line.split()[0]
            if not first.endswith(":"):
                is_counted = line.endswith(name)
            elif is_counted and first == f"{key}:":
                total += int(line.split()[1]) * 1024
        return total


def pictures(count: int) -> list[np.ndarray]:
    """Random pictures, always the same."""
    random = np.random.default_rng(5)
    return [random.integers(0, 256, SHAPE, np.uint8) for _ in range(count)]


@functools.cache
def classify_here(library: Path) -> Any:
    """Return what run.py does, with the classes and scores as the server's JSON has them."""
    example = runpy.run_path(str(EXAMPLES / "resnet18/run.py"))
    model = runtime.load(library)

    def classify(rgb: np.ndarray) -> list[tuple[int, float]]:
        executor = example["classify"](model, rgb.tobytes())
        scores = executor.get_output(0).numpy().ravel()
        return [(i, float(scores[i])) for i in example["top"](scores.tolist())]

    return classify


def test_answers_are_those_of_python(build: Build) -> None:
    """Forty requests of eight clients at once: the same classes, and scores equal bit for bit."""
    sent = pictures(REQUESTS)
    with serving(*build) as server, ThreadPoolExecutor(CLIENTS) as clients:
        answers = list(clients.map(server.classify, sent))
        assert server.ask("GET", "/healthz") == (200, "ok\n")
    expected = [classify_here(build[1])(rgb) for rgb in sent]
    found = [[(best["class"], best["score"]) for best in answer["top"]] for answer in answers]
    assert [[(i, np.float32(score)) for i, score in top] for top in found] == expected
    assert all(answer["milliseconds"] > 0 for answer in answers)


def test_weights_are_in_memory_once(build: Build) -> None:
    """Four executors map the file once, and have no copy of the weights."""
    program, library = build
    resident = []
    for threads in (1, THREADS):
        with serving(program, library, threads) as server, ThreadPoolExecutor(CLIENTS) as clients:
            list(clients.map(server.classify, pictures(CLIENTS)))
            file = {key: server.memory(key, str(library)) for key in ("Size", "Rss", "Pss")}
            resident.append({"threads": threads, "Rss": server.memory("Rss"), "deploy.so": file})
    print(*resident, sep="\n")
    weights = library.stat().st_size
    one, four = resident
    assert four["deploy.so"]["Size"] < 1.1 * weights
    assert four["Rss"] - one["Rss"] < weights / 2


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of the model that fails."""
    nodes = [null("data"), op("scores", "scores", [0])]
    fields = graph(nodes, [1], [[1, 3, SIDE, SIDE], [1, 8]])
    folder = tmp_path_factory.mktemp("failing")
    started = f'-DSTARTED="{folder / "started"}"'
    host = packer.CSourceModule(FAILING, functions=FUNCTIONS, options=[started])
    return packer.export_library(factory(fields, {}, host), folder / "failing.so")


def test_bad_requests_and_errors_are_answered_in_words(build: Build, failing: Path) -> None:
    """400 and httplib's refusals say what is expected; 500 has the text of the library's error."""
    dark, bright = np.zeros(SHAPE, np.uint8), np.ones(SHAPE, np.uint8)
    with serving(build[0], failing, 1) as server:
        status, text = server.ask("POST", "/classify", dark.tobytes()[1:])
        assert status == 400
        assert text.startswith("body: expected 150528 bytes (224 rows") and "150527" in text
        assert server.ask("POST", "/classify", b"")[0] == 400
        status, text = server.ask("POST", "/classify", bytes(2 << 20))
        assert (status, "a picture of 150528 bytes" in text) == (413, True)
        status, text = server.ask("GET", "/nothing")
        assert (status, text.startswith("GET /nothing: expected GET /healthz")) == (404, True)
        status, text = server.ask("POST", "/classify", dark.tobytes())
        assert (status, text) == (500, "ValueError: the picture is too dark\n")
        # The executor works after an error. Equal scores: the lower class first.
        top = server.classify(bright)["top"]
        assert [best["class"] for best in top] == [3, 7, 2, 6, 1]
        assert top[0]["score"] == SIDE * SIDE + 3


def test_a_request_is_answered_before_the_end(build: Build, failing: Path) -> None:
    """SIGTERM while a picture is classified: its client gets the answer."""
    slow = np.full(SHAPE, 2, np.uint8)
    with ThreadPoolExecutor(1) as client:
        with serving(build[0], failing, 1) as server:
            answer = client.submit(server.classify, slow)
            while not failing.with_name("started").exists():
                time.sleep(0.01)
        assert len(answer.result()["top"]) == 5


def test_only_the_main_thread_takes_the_signal(build: Build, failing: Path) -> None:
    """SIGTERM is blocked in all others: in one of them it would kill the process."""
    with serving(build[0], failing, THREADS) as server:
        tasks = list(Path(f"/proc/{server.pid}/task").iterdir())
        texts = [(task / "status").read_text() for task in tasks if task.name != str(server.pid)]
    assert len(texts) > THREADS
    masks = [int(text.partition("SigBlk:")[2].split()[0], 16) for text in texts]
    assert all(mask >> (signal.SIGTERM - 1) & 1 for mask in masks)


def test_client_prints_the_classes(build: Build, tmp_path: Path) -> None:
    """client.py takes the middle of a picture of any size."""
    rgb = pictures(1)[0]
    wide = np.zeros((SIDE, 300, 3), np.uint8)
    wide[:, 38:262] = rgb
    Image.fromarray(wide).save(tmp_path / "wide.png")
    with serving(*build, threads=1) as server:
        command = [sys.executable, FOLDER / "client.py", tmp_path / "wide.png"]
        url = f"http://127.0.0.1:{server.port}"
        ran = subprocess.run(
            [*command, url], capture_output=True, text=True, check=False, timeout=120
        )
    assert ran.stderr == ""
    index, score = classify_here(build[1])(rgb)[0]
    assert ran.stdout.splitlines()[0] == f"class {index:3}  score {score:.3f}"


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        ((), 2, "usage: server LIBRARY [PORT [THREADS]]\n"),
        (("/none.so",), 1, "server: LibraryLoadError: /none.so: cannot open"),
        (("/none.so", "http"), 1, "server: expected a number, found 'http'"),
    ],
)
def test_start_that_fails_says_why(
    build: Build, arguments: tuple[str, ...], status: int, expected: str
) -> None:
    """Nothing is served."""
    ran = subprocess.run(
        [build[0], *arguments], capture_output=True, text=True, check=False, timeout=120
    )
    assert (ran.returncode, ran.stdout) == (status, "")
    assert ran.stderr.startswith(expected)


def test_port_in_use_is_refused(build: Build, failing: Path) -> None:
    """A second server on the same port."""
    with serving(build[0], failing, 1) as server:
        command = [build[0], failing, str(server.port)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (ran.returncode, ran.stderr) == (1, "server: the port is in use\n")
