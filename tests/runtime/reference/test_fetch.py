"""fetch=: from a path, a server, a function; once per machine; and every way in which it fails."""

from __future__ import annotations

import io
import os
import pickle
import re
import resource
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

import runtime
from runtime.error import LibraryLoadError, VerifyError

from ...support.reference_workers import (
    answer,
    ask,
    end,
    go,
    pickled_elsewhere,
    serving,
    start,
)


def as_bytes(reference: runtime.Reference) -> bytes:
    """A source that gives bytes: the copy beside the missing file."""
    return Path(f"{reference.path}.copy").read_bytes()


def as_file(reference: runtime.Reference) -> io.BufferedReader:
    """A source that gives a file."""
    return open(f"{reference.path}.copy", "rb")


def as_small_pieces(reference: runtime.Reference) -> Any:
    """A source that gives a file with a method `read` alone."""
    file = io.BytesIO(as_bytes(reference))

    class Pieces:
        def read(self, _nbytes: int) -> bytes:
            return file.read(1000)

    return Pieces()


def broken(reference: runtime.Reference) -> bytes:
    """A source that fails."""
    raise ConnectionError(f"no {reference.name} today")


def elsewhere(model: Path, fetch: Any) -> bytes:
    """Pickle a module, and remove its file and the module; the file beside it stays."""
    shutil.copy(model, f"{model}.copy")
    data = pickle.dumps(runtime.by_reference(runtime.load(model), fetch=fetch))
    model.unlink()
    return data


@pytest.mark.parametrize("fetch", [as_bytes, as_file, as_small_pieces])
def test_a_function_gives_the_file(fetch, model, cache, stored_files) -> None:
    """Bytes, a file, anything with `read`."""
    module = pickle.loads(elsewhere(model, fetch))
    assert module["answer"]() == 42
    (name,) = stored_files(cache)
    assert module.path == str(cache / name)
    assert oct((cache / name).stat().st_mode & 0o777) == "0o400"


@pytest.mark.parametrize("form", ["{}.copy", "{}/{{name}}.copy"])
def test_a_path_is_a_source(form, model) -> None:
    """``{name}`` is replaced."""
    fetch = form.format(model.parent if "{{" in form else model)
    assert pickle.loads(elsewhere(model, fetch))["answer"]() == 42


def test_a_url_of_fsspec_without_it_says_what_to_install(model, monkeypatch) -> None:
    """The runtime needs nothing; only such a URL does."""
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    with pytest.raises(LibraryLoadError, match="pip install fsspec"):
        pickle.loads(elsewhere(model, "s3://bucket/{sha256}"))


def test_four_processes_fetch_once(model, tmp_path, cache, stored_files) -> None:
    """One request; the others wait, and map the same file. Later ones ask nothing."""
    with serving(model.read_bytes()) as server:
        nbytes = model.stat().st_size
        pickled = pickled_elsewhere(model, tmp_path / "pickled", server.url)
        workers = [start(pickled) for _ in range(4)]
        for worker in workers:
            go(worker)
        answers = [answer(worker)[:2] for worker in workers]
        answers.append(ask(pickled)[:2])
        for worker in workers:
            end(worker)
        assert (server.requests, server.sent) == (1, nbytes)
    (name,) = stored_files(cache)
    assert answers == [[42, str(cache / name)]] * 5


def test_a_killed_fetch_leaves_nothing_and_stops_nobody(
    model, tmp_path, cache, stored_files
) -> None:
    """Killed within the transfer, while another process waits for it."""
    # Large enough that the server is still sending: the rest of a library is not read by a load.
    body = model.read_bytes() + bytes(3 << 20)
    large = tmp_path / "large.so"
    large.write_bytes(body)
    with serving(body) as server:
        pickled = pickled_elsewhere(large, tmp_path / "pickled", server.url)
        server.gate.clear()
        first, second = start(pickled), start(pickled)
        go(first)
        assert server.begun.wait(30)
        go(second)
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        assert [name for name in stored_files(cache) if name.endswith((".so", ".part"))] == []
        server.gate.set()
        assert answer(second)[0] == 42
        for worker in (first, second):
            end(worker)
        assert server.requests == 2
    assert len(stored_files(cache)) == 1


def test_a_transfer_that_is_cut_leaves_nothing(model, tmp_path, cache, stored_files) -> None:
    """The message has both sizes; the next attempt succeeds."""
    body, copy = model.read_bytes(), tmp_path / "again.so"
    shutil.copy(model, copy)
    with serving(body[:5000], announced=len(body)) as server:
        pickled = pickled_elsewhere(model, tmp_path / "pickled", server.url)
        kind, message, reason = ask(pickled)
        assert (kind, reason) == ("LibraryLoadError", "fetch")
        assert f"5000 bytes, expected {len(body)}: the transfer was cut; try again" in message
        assert stored_files(cache) == []
        server.body = body
        assert ask(pickled)[0] == 42


def test_another_file_is_refused(model, other, tmp_path, cache, stored_files) -> None:
    """Of another size, and of the same size; nothing of it is stored or run."""
    body = model.read_bytes()
    changed = bytes([*body[:-1], body[-1] ^ 1])
    with serving(body) as server:
        pickled = pickled_elsewhere(model, tmp_path / "pickled", server.url)
        for server.body, expected in (
            (changed, f"sha256 .*, expected .*: {OTHER}"),
            (body + b"\0", f"more bytes, expected {len(body)}: {OTHER}"),
        ):
            server.announced = len(server.body)
            _kind, message, _reason = ask(pickled)
            assert re.search(expected, message)
    assert stored_files(cache) == []


OTHER = "the source has another file; put the pickled version there"


def test_errors_of_a_source_are_ours(model, cache, stored_files) -> None:
    """A function that raises, a server that does not answer, a missing file."""
    for fetch, message in (
        (broken, r"broken\(\): cannot be fetched: ConnectionError: no model.so today"),
        ("http://127.0.0.1:9/{sha256}?key=secret", r"127\.0\.0\.1:9/[0-9a-f]{64}: cannot be"),
        ("/nowhere/{name}", "/nowhere/model.so: cannot be fetched: FileNotFoundError"),
        (lambda _: 3, "cannot be fetched: TypeError"),
    ):
        module = runtime.by_reference(runtime.load(model), fetch=None)
        path, nbytes, sha256, state = module._reference.reference
        del module
        model.rename(f"{model}.away")
        rebuild = runtime.interchange.rebuild_by_reference
        with pytest.raises(LibraryLoadError, match=message) as caught:
            rebuild(path, nbytes, sha256, tuple(state), fetch)
        assert "secret" not in str(caught.value)
        Path(f"{model}.away").rename(model)
    assert stored_files(cache) == []


def limited() -> None:
    """No file of this process may have more than 8 KiB, as on a disk that is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


def test_a_full_disk_is_an_error_that_says_where(model, tmp_path, cache, stored_files) -> None:
    """Nothing partial stays; with room again the same pickle works."""
    source = shutil.copy(model, tmp_path / "source.so")
    pickled = pickled_elsewhere(model, tmp_path / "pickled", str(source))
    kind, message, reason = ask(pickled, preexec_fn=limited)
    assert (kind, reason) == ("LibraryLoadError", "io")
    assert re.search(f"cannot be stored in {cache}: File too large; .* with DSO_CACHE", message)
    assert stored_files(cache) == []
    assert ask(pickled)[0] == 42


def test_a_disk_without_room_is_refused_before_the_transfer(model, tmp_path, monkeypatch) -> None:
    """A server is not asked for bytes that cannot be stored."""
    data = elsewhere(model, as_bytes)
    full = os.statvfs_result((4096, 4096, 10, 1, 1, *os.statvfs(tmp_path)[5:]))
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    with pytest.raises(LibraryLoadError, match=r": 4096 bytes are free, expected \d+; free space"):
        pickle.loads(data)


def test_without_a_source_the_error_says_what_to_do(model, other) -> None:
    """A missing file, one of another size, and one of the same size with another digest."""
    module = runtime.by_reference(runtime.load(model))
    data, nbytes = pickle.dumps(module), model.stat().st_size
    del module
    body = model.read_bytes()
    model.unlink()
    hint = r"; give runtime\.by_reference a source with fetch="
    with pytest.raises(LibraryLoadError, match=f"No such file or directory, expected {nbytes} byt"):
        pickle.loads(data)
    model.write_bytes(body[:-1])
    with pytest.raises(VerifyError, match=f"{nbytes - 1} bytes, expected {nbytes} .*{hint}"):
        pickle.loads(data)
    model.write_bytes(bytes([*body[:-1], body[-1] ^ 1]))
    with pytest.raises(VerifyError, match=f"model.so: sha256 .*, expected {nbytes} .*{hint}") as c:
        pickle.loads(data)
    assert c.value.reason == "digest"


def test_a_damaged_file_of_the_store_is_fetched_again(model, cache) -> None:
    """Its size and its digest are verified whenever its state is new."""
    data = elsewhere(model, as_bytes)
    stored = Path(pickle.loads(data).path)
    body = stored.read_bytes()
    runtime.reference.resident._kept.clear()
    for damaged in (body[:-1], bytes([*body[:-1], body[-1] ^ 1])):
        stored.chmod(0o600)
        stored.write_bytes(damaged)
        module = pickle.loads(data)
        assert module["answer"]() == 42
        assert stored.read_bytes() == body
        del module
        runtime.reference.resident._kept.clear()


@pytest.mark.parametrize("digest", ["../../etc/passwd", "A" * 64, "", "a" * 63, None, "a\0" * 32])
def test_no_digest_names_a_file_outside_the_store(digest, cache) -> None:
    """64 hexadecimal digits, or nothing is opened."""
    with pytest.raises(VerifyError, match="expected a path, a size and 64 hexadecimal digits"):
        runtime.interchange.rebuild_by_reference("/a.so", 10, digest, None, "/etc/passwd")
    assert not cache.exists()


def test_many_names_are_each_an_error(cache) -> None:
    """They leave no lock and no file; a path may be any text."""
    rebuild = runtime.interchange.rebuild_by_reference
    for number in range(500):
        name = "n" * (number % 300) + ("\0" if number % 7 == 0 else "") + "/../" * (number % 5)
        with pytest.raises(LibraryLoadError, match="cannot be fetched"):
            rebuild(f"/nowhere/{name}", 10, f"{number:064x}", None, "/nowhere/{name}/{sha256}")
    assert [path for path in cache.rglob("*") if path.is_file()] == []


def test_a_folder_of_others_is_refused(model, cache) -> None:
    """A store that other users may write to could give them our code."""
    data = elsewhere(model, as_bytes)
    cache.chmod(0o777)
    with pytest.raises(LibraryLoadError, match="that this user alone may write to; .*DSO_CACHE"):
        pickle.loads(data)


@pytest.mark.parametrize("name", ["verified", "locks"])
def test_a_subfolder_of_others_is_refused(model, cache, name) -> None:
    """Their owner could replace the entries of verified files; a link leads elsewhere."""
    data = elsewhere(model, as_bytes)
    folder = cache / name
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o770)
    with pytest.raises(LibraryLoadError, match=f"{name}: .*this user alone may write to"):
        pickle.loads(data)
    folder.rename(cache / "gone")
    folder.symlink_to(cache.parent)
    with pytest.raises(LibraryLoadError, match=f"{name}: .*this user alone may write to"):
        pickle.loads(data)
    folder.unlink()
    if os.geteuid() == 0:
        folder.mkdir(0o700)
        os.chown(folder, 12345, -1)
        with pytest.raises(LibraryLoadError, match="of user 12345, expected"):
            pickle.loads(data)


def test_a_store_that_cannot_be_made_is_an_error(model, monkeypatch, tmp_path) -> None:
    """A file in the way, and no home at all."""
    data = elsewhere(model, as_bytes)
    (tmp_path / "file").touch()
    monkeypatch.setenv("DSO_CACHE", str(tmp_path / "file" / "store"))
    with pytest.raises(LibraryLoadError, match="no folder for fetched libraries: Not a directory"):
        pickle.loads(data)


def test_file_systems_without_unnamed_files(model, cache, monkeypatch, stored_files) -> None:
    """The file has a second name until it is whole; what a killed writer left is replaced."""
    real = os.open

    def no_tmpfile(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(95, "Operation not supported")
        return real(path, flags, *rest, **more)

    data = elsewhere(model, as_bytes)
    cache.mkdir(mode=0o700, exist_ok=True)
    digest = pickle.loads(data)._reference.reference.sha256
    runtime.reference.resident._kept.clear()
    shutil.rmtree(cache)
    cache.mkdir(mode=0o700)
    (cache / f"{digest}.so.part").write_bytes(b"half")
    monkeypatch.setattr(os, "open", no_tmpfile)
    assert pickle.loads(data)["answer"]() == 42
    assert stored_files(cache) == [f"{digest}.so"]
