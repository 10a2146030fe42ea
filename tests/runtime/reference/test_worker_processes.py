"""ProcessPoolExecutor in each way to start a process: loaded once, pages shared, results equal."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import shutil
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import ModuleType

import pytest

import packer
import runtime

from ...support import needs

SUPPORT = Path(__file__).parents[2] / "support"
WEIGHTS_NBYTES = 24 << 20
METHODS = ("spawn", "fork", "forkserver")
# Other tests leave threads that wait.
pytestmark = pytest.mark.filterwarnings(
    "ignore:This process .* is multi-threaded:DeprecationWarning"
)

SOURCE = """
#include <unistd.h>
#include <stdint.h>
int64_t twice(int64_t x) { return 2 * x; }
int64_t pid(void) { return getpid(); }
"""


@pytest.fixture(scope="module")
def weighty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with weights that are larger than a Python."""
    root = packer.CSourceModule(
        SOURCE, functions={"twice": "int64_t(int64_t x)", "pid": "int64_t(void)"}
    )
    root.import_module(runtime.ConstLoaderModule({"w": os.urandom(WEIGHTS_NBYTES)}, {}))
    return packer.export_library(root, tmp_path_factory.mktemp("weighty") / "weighty.so")


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tests/support/worker_tasks.py, as worker processes import it."""
    monkeypatch.syspath_prepend(str(SUPPORT))
    return importlib.import_module("worker_tasks")


@pytest.mark.parametrize("method", METHODS)
def test_a_pool_loads_once_and_shares_the_pages(
    method: str, weighty: Path, tasks: ModuleType
) -> None:
    """Sixteen tasks with the module as argument; no weight is copied in any worker."""
    module = runtime.by_reference(runtime.load(weighty))
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        found = list(pool.map(tasks.score, [module] * 16, range(16)))
    check(found)


def check(found: list[tuple[int, ...]]) -> None:
    """Results are equal; each worker loaded once, and copied none of the weights."""
    assert [result for *_, result in found] == [2 * x for x in range(16)]
    assert len({total for _, _, _, total, _ in found}) == 1
    modules: dict[int, set[int]] = {}
    for pid, identity, *_ in found:
        modules.setdefault(pid, set()).add(identity)
    assert os.getpid() not in modules
    assert all(len(identities) == 1 for identities in modules.values())
    assert max(own for _, _, own, _, _ in found) < WEIGHTS_NBYTES / 8


def test_a_data_loader_of_pytorch(weighty: Path, tasks: ModuleType) -> None:
    """A dataset that holds a module goes to the workers of a DataLoader; see examples/scale."""
    data = needs.module("torch.utils.data", "torch")
    dataset = tasks.Scored(runtime.by_reference(runtime.load(weighty)), 16)
    loader = data.DataLoader(dataset, None, num_workers=2, multiprocessing_context="fork")
    found = list(loader)
    check(found)
    assert len({pid for pid, *_ in found}) == 2


def test_functions_are_tasks(weighty: Path) -> None:
    """A function of a library is what a pool calls."""
    twice = runtime.by_reference(runtime.load(weighty))["twice"]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(twice, range(5))) == [0, 2, 4, 6, 8]


def test_a_killed_worker_stops_no_other_pool(
    weighty: Path, tmp_path: Path, tasks: ModuleType
) -> None:
    """Killed within a task: the pool is broken, as Python says, and the next one completes."""
    source = shutil.copy(weighty, tmp_path / "source.so")
    there = Path(shutil.copy(weighty, tmp_path / "there.so"))
    module = runtime.by_reference(runtime.load(there), fetch=str(source))
    there.unlink()
    context = multiprocessing.get_context("spawn")
    jobs = (tasks.crash_once, [module] * 4, [str(tmp_path / "mark")] * 4, range(4))
    with ProcessPoolExecutor(2, mp_context=context) as pool, pytest.raises(BrokenProcessPool):
        list(pool.map(*jobs))
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        assert list(pool.map(*jobs)) == [0, 2, 4, 6]
