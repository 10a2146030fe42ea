"""Dask: a module as an argument of client.map, in workers that are processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from distributed import Client, LocalCluster

import runtime

from .conftest import WEIGHTS_NBYTES


@pytest.fixture
def client(tasks: ModuleType) -> Iterator[Client]:
    """Two workers, each a process under a nanny."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as connected:
        yield connected


def test_map_loads_once_and_survives_a_killed_worker(
    client: Client, weighty: Path, tasks: ModuleType, tmp_path: Path
) -> None:
    """Pages are shared, results equal; then a worker is killed in a call, and the job completes."""
    module = runtime.by_reference(runtime.load(weighty))
    found = client.gather(client.map(tasks.score, [module] * 16, range(16)))
    assert [result for *_, result in found] == [2 * x for x in range(16)]
    assert len({total for _, _, _, total, _ in found}) == 1
    modules: dict[int, set[int]] = {}
    for pid, identity, *_ in found:
        modules.setdefault(pid, set()).add(identity)
    assert len(modules) == 2
    assert os.getpid() not in modules
    assert all(len(identities) == 1 for identities in modules.values())
    assert max(own for _, _, own, _, _ in found) < WEIGHTS_NBYTES / 8

    mark = tmp_path / "mark"
    jobs = client.map(tasks.crash_once, [module] * 8, [str(mark)] * 8, range(8))
    assert client.gather(jobs) == [2 * x for x in range(8)]
    assert mark.exists()


def test_functions_are_tasks(client: Client, weighty: Path) -> None:
    """A function of a library is what client.map calls, and client.submit."""
    twice = runtime.by_reference(runtime.load(weighty))["twice"]
    assert client.gather(client.map(twice, range(5))) == [0, 2, 4, 6, 8]
    assert client.submit(twice, 21).result() == 42
