"""Servers of files, and processes that unpickle a module by reference, for tests and campaigns."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import runtime

# Unpickles when a line arrives, so that many processes begin at once; then answers, or the error.
WORKER = """
import json, sys
data = open(sys.argv[1], "rb").read()
import pickle, time
sys.stdin.readline()
try:
    start = time.perf_counter()
    module = pickle.loads(data)
    took = time.perf_counter() - start
    print(json.dumps([module["answer"](), module.path, took]), flush=True)
except Exception as error:
    print(json.dumps([type(error).__name__, str(error), getattr(error, "reason", "")]), flush=True)
sys.stdin.readline()
"""


class FileServer:
    """A server of one file, which counts.

    Attributes
    ----------
    requests, sent : int
        The answers that were begun, and the bytes of all bodies.
    body : bytes
        The answer; `announced` is its length in the header, if that differs.
    gate : Event
        The answers wait for it after their first MiB.
    """

    def __init__(self, body: bytes, announced: int | None = None) -> None:
        self.requests = self.sent = 0
        self.body, self.announced = body, len(body) if announced is None else announced
        self.gate = threading.Event()
        self.gate.set()
        self.begun = threading.Event()
        self._lock = threading.Lock()
        self.port = 0

    @property
    def url(self) -> str:
        """The URL of the file; the name is not looked at."""
        return f"http://127.0.0.1:{self.port}/{{sha256}}.so"

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Send the file."""
        with self._lock:
            self.requests += 1
        handler.send_response(200)
        handler.send_header("Content-Length", str(self.announced))
        handler.end_headers()
        step = 1 << 20
        with contextlib.suppress(OSError):
            for start in range(0, len(self.body), step):
                piece = memoryview(self.body)[start : start + step]
                handler.wfile.write(piece)
                with self._lock:
                    self.sent += len(piece)
                self.begun.set()
                self.gate.wait()


@contextlib.contextmanager
def serving(body: bytes, announced: int | None = None) -> Iterator[FileServer]:
    """Serve these bytes at every path, from this process."""
    server = FileServer(body, announced)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answer."""
            server.answer(self)

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        server.port = http.server_address[1]
        thread = threading.Thread(target=http.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.gate.set()
            http.shutdown()
            thread.join()


def pickled_elsewhere(path: Path, to: Path, fetch: str | None) -> Path:
    """Write a pickle by reference of a library, which is removed afterwards."""
    module = runtime.by_reference(runtime.load(path), fetch=fetch)
    to.write_bytes(pickle.dumps(module))
    path.unlink()
    return to


def start(pickled: Path, code: str = WORKER, **options: Any) -> subprocess.Popen[str]:
    """Start a process that waits for a line, and then unpickles."""
    command = [sys.executable, "-P", "-c", code, str(pickled)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, **options)


def go(worker: subprocess.Popen[str]) -> None:
    """Let a process unpickle."""
    assert worker.stdin is not None
    worker.stdin.write("\n")
    worker.stdin.flush()


def answer(worker: subprocess.Popen[str]) -> list[Any]:
    """Return what a process answered; it stays."""
    assert worker.stdout is not None
    found: list[Any] = json.loads(worker.stdout.readline())
    return found


def end(worker: subprocess.Popen[str]) -> None:
    """End a process."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.close()
    worker.wait()
    worker.stdout.close()


def ask(pickled: Path, **options: Any) -> list[Any]:
    """Return the answer of one process that unpickles."""
    worker = start(pickled, **options)
    go(worker)
    found = answer(worker)
    end(worker)
    return found


def pss_of(pid: int) -> int:
    """Return the proportional set size of a process, in bytes."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) << 10
    raise AssertionError(os.listdir(f"/proc/{pid}"))
