"""examples/scale: the same lines on Dask, on Ray and in a pool of processes; and from S3."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import s3fs
from moto.server import ThreadedMotoServer

import runtime

from ..support.paths import EXAMPLES
from ..support.reference_workers import ask, pickled_elsewhere

FOLDER = EXAMPLES / "scale"
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}


def run(script: str, *arguments: object) -> list[str]:
    """Run a script as a user does; return its lines."""
    command = [sys.executable, script, *map(str, arguments)]
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(
        command, cwd=FOLDER, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_every_scheduler_scores_the_same(resnet18: Path, pictures: Path) -> None:
    """ResNet-18 over a folder of pictures."""
    sys.path.insert(0, str(FOLDER))
    try:
        from scoring import score
    finally:
        sys.path.remove(str(FOLDER))
    module = runtime.load(resnet18)
    scores = [score(module, path) for path in sorted(pictures.iterdir())]
    expected = [f"{name}: class {best}, score {value:.5f}" for name, best, value in scores]
    assert len(set(expected)) == 12
    for script in ("on_pool.py", "on_dask.py", "on_ray.py"):
        assert run(script, resnet18, pictures) == expected, script


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[s3fs.S3FileSystem]:
    """The bucket `models` of a server on this machine, which s3fs uses in every process."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, text in {**KEYS, "AWS_ENDPOINT_URL": f"http://{host}:{port}"}.items():
        monkeypatch.setenv(name, text)
    files = s3fs.S3FileSystem()
    files.mkdir("models")
    yield files
    server.stop()


def test_a_missing_library_comes_from_s3(
    bucket: s3fs.S3FileSystem, weighty: Path, tmp_path: Path, store: Path
) -> None:
    """Named by its digest; a bucket without it is an error of the project."""
    path = Path(shutil.copy(weighty, tmp_path / "model.so"))
    pickled = pickled_elsewhere(path, tmp_path / "pickled", "s3://models/{sha256}.so")
    kind, message, reason = ask(pickled)
    assert (kind, reason) == ("LibraryLoadError", "fetch")
    assert "s3://models/" in message
    digest = message.split("s3://models/")[1].split(".so")[0]
    bucket.put(str(weighty), f"models/{digest}.so")
    twice, found, _took = ask(pickled)
    assert (twice, found) == (42, str(store / f"{digest}.so"))
