"""Exports whose compilers run on Dask and on Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import ray
from distributed import Client, LocalCluster

import packer
import runtime
from runtime.error import ToolchainError

SOURCE = "int twice(int x) { return 2 * x; }"


class RayExecutor(Executor):
    """As docs/scale.md shows it."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        """Run the function as a task."""
        return ray.remote(function).remote(*args, **options).future()


@contextmanager
def on_dask() -> Iterator[Executor]:
    """Two workers, each a process."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client.get_executor()


@contextmanager
def on_ray() -> Iterator[Executor]:
    """Ray on this machine; its workers import from the driver's folder before the environment."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        yield RayExecutor()
    finally:
        ray.shutdown()


@pytest.mark.parametrize("started", [on_dask, on_ray])
def test_the_bytes_are_those_of_an_export_alone(
    started: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure names the source, and leaves the library as it was."""
    monkeypatch.setenv("PACKER_CACHE", "off")
    monkeypatch.chdir(tmp_path)
    module = packer.CSourceModule(SOURCE, functions={"twice": "int(int)"})
    alone = packer.export_library(module, tmp_path / "alone.so").read_bytes()
    wrong = packer.CSourceModule("int twice(int x) { return y; }", functions={"twice": "int(int)"})
    with started() as executor:
        path = packer.export_library(
            module, tmp_path / "far.so", build=packer.Build(executor=executor)
        )
        with pytest.raises(ToolchainError, match="undeclared"):
            packer.export_library(wrong, path, build=packer.Build(executor=executor))
    assert path.read_bytes() == alone
    assert runtime.load(path)["twice"](21) == 42
