"""A server that sends slowly, or sends control characters."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runtime.error import LibraryLoadError
from runtime.interchange import rebuild_by_reference
from runtime.reference import fetch as fetching
from runtime.reference.least_rate import at_least

HEAD = b"HTTP/1.0 200 OK\r\nContent-Length: 100000\r\n\r\n"


@contextlib.contextmanager
def served(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Serve one request with `answer`; the URL."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client:
                client.recv(65536)
                with contextlib.suppress(OSError):  # the client gave up
                    answer(client)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/model.so"
        thread.join(60)


def error_of(url: str) -> str:
    """The error of a fetch."""
    with pytest.raises(LibraryLoadError) as caught:
        rebuild_by_reference("/nowhere.so", 100000, "a" * 64, None, url)
    assert caught.value.reason == "fetch"
    return str(caught.value)


@pytest.mark.parametrize("begin", [b"", b"HTTP/1.0 200 OK\r\nX: ", HEAD, HEAD + bytes(5000)])
def test_a_slow_server_is_given_up(begin: bytes, monkeypatch, cache) -> None:
    """Wherever it becomes slow: at its status, in a header, in the body."""
    monkeypatch.setattr(fetching, "_WINDOW_S", 1.0)

    is_over = threading.Event()

    def answer(client: socket.socket) -> None:
        client.sendall(begin)
        while not is_over.wait(0.05):
            client.sendall(b"1")

    with served(answer) as url:
        message = error_of(url)
        is_over.set()
    assert "cannot be fetched: TimeoutError: " in message
    assert (
        "bytes so far, expected at least 1000 bytes per second over 1 s; try again, or" in message
    )


def test_the_rate_is_a_variable(monkeypatch, cache) -> None:
    """0 waits for any source; other texts are refused."""
    monkeypatch.setattr(fetching, "_WINDOW_S", 1.0)
    monkeypatch.setenv("DSO_FETCH_RATE", "0")

    def answer(client: socket.socket) -> None:
        client.sendall(HEAD)
        for _ in range(5):
            time.sleep(0.5)
            client.sendall(b"1")

    with served(answer) as url:
        assert error_of(url).endswith(": 5 bytes, expected 100000: the transfer was cut; try again")
    monkeypatch.setenv("DSO_FETCH_RATE", "1 KB")
    message = error_of("http://127.0.0.1:9/model.so")
    assert "DSO_FETCH_RATE: expected bytes per second, or 0 for any, found '1 KB'" in message


def test_the_time_of_the_caller_does_not_count() -> None:
    """A full disk that is slow is not the server's fault."""
    pieces = at_least(10**9, 0.5, lambda: (bytes(10) for _ in range(3)))
    found = []
    for piece in pieces:
        found.append(piece)
        time.sleep(0.6)
    assert found == [bytes(10)] * 3


def test_a_source_ends_with_its_reader() -> None:
    """A fetch that fails closes its source."""
    closed = threading.Event()

    def source() -> Iterator[bytes]:
        try:
            while True:
                yield bytes(1000)
        finally:
            closed.set()

    pieces = at_least(1000, 30.0, source)  # type: ignore[arg-type]
    next(pieces)
    pieces.close()
    assert closed.wait(60)


def test_control_characters_of_a_server_are_escaped(cache) -> None:
    """A terminal gets no command from the text of an error; a pickle's URL gives none either."""
    title = b"HTTP/1.0 404 \x1b]0;title\x07\x1b[31mred\xc2\x9b\r\n\r\n"
    with served(lambda client: client.sendall(title)) as url:
        message = error_of(f"{url}")
    assert message.isprintable()
    assert r"404: \x1b]0;title\x07\x1b[31mred" in message
    assert error_of("/nowhere/\x1b[31m\u202ered").isprintable()


def test_a_path_is_read_without_a_rate(model: Path, monkeypatch, cache) -> None:
    """A file system has no server."""
    monkeypatch.setattr(fetching, "at_least", None)
    assert "expected 100000" in error_of(str(model))
