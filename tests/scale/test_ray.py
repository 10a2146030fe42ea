"""Ray: actors that hold a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import ray
from ray.util import ActorPool

import runtime

from .conftest import WEIGHTS_NBYTES


@pytest.fixture
def started(tasks: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ray on this machine; its workers import from the driver's folder before the environment."""
    monkeypatch.chdir(tmp_path)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def test_a_pool_of_actors_shares_pages_and_survives_a_kill(
    started: None, weighty: Path, tasks: ModuleType, tmp_path: Path
) -> None:
    """An actor that is killed in a call is started again, and the call is repeated."""

    class Scorer:
        def __init__(self, module: runtime.Module) -> None:
            self.module = module

        def score(self, x: int) -> tuple[int, int, int, int, int]:
            """Use the weights."""
            return tasks.score(self.module, x)

        def crash_once(self, x: int) -> int:
            """Die in the first call of all."""
            return tasks.crash_once(self.module, mark, x)

    mark = str(tmp_path / "mark")
    module = runtime.by_reference(runtime.load(weighty))
    remote = ray.remote(max_restarts=3, max_task_retries=3)(Scorer)
    actors = [remote.remote(module) for _ in range(2)]
    pool = ActorPool(actors)
    found = list(pool.map(lambda actor, x: actor.score.remote(x), range(16)))
    assert [result for *_, result in found] == [2 * x for x in range(16)]
    assert len({(pid, identity) for pid, identity, *_ in found}) == 2
    assert len({total for _, _, _, total, _ in found}) == 1
    assert max(own for _, _, own, _, _ in found) < WEIGHTS_NBYTES / 8
    crashed = pool.map(lambda actor, x: actor.crash_once.remote(x), range(8))
    assert list(crashed) == [2 * x for x in range(8)]
    assert Path(mark).exists()

    call = ray.remote(lambda function, x: function(x))
    assert ray.get([call.remote(module["twice"], x) for x in range(4)]) == [0, 2, 4, 6]
