"""Pool: loaded on demand, closed for room, replaced while calls are in progress."""

from __future__ import annotations

import functools
import os
import shutil
import threading
from pathlib import Path

import pytest

import packer
import runtime
from runtime import Pool
from runtime.error import LibraryLoadError, ModelNotFoundError, OutOfMemoryError, VerifyError

from ..support.process import run_python


def export(path: Path, answer: int) -> Path:
    """A library whose function `answer` returns a number."""
    code = f"long answer(void) {{ return {answer}; }}"
    return packer.export_library(packer.CSourceModule(code, functions={"answer": "long()"}), path)


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three libraries, which answer 0, 1 and 2."""
    folder = tmp_path_factory.mktemp("versions")
    return [export(folder / f"{number}.so", number) for number in range(3)]


@pytest.fixture
def folder(versions: list[Path], tmp_path: Path) -> Path:
    """The folder of models a, b and c."""
    for name, path in zip("abc", versions, strict=True):
        shutil.copy(path, tmp_path / f"{name}.so")
    return tmp_path


def replace(path: Path, new: Path) -> None:
    """As a deployment does it: a copy beside the file, and a rename."""
    beside = path.with_suffix(".new")
    shutil.copy(new, beside)
    beside.rename(path)


def maps(path: Path) -> int:
    """The number of maps of a file, also of one that was replaced."""
    return sum(str(path) in line for line in Path("/proc/self/maps").read_text().splitlines())


def test_models_are_files_loaded_on_demand(folder: Path) -> None:
    """By name, once, the same Module as `load` gives."""
    pool = Pool(folder)
    assert list(pool) == ["a", "b", "c"]
    assert len(pool) == 3
    assert "a" in pool
    assert "z" not in pool
    assert maps(folder / "b.so") == 0
    assert pool["b"]["answer"]() == 1
    assert pool["b"] is runtime.load(folder / "b.so")
    found = pool.statistics()
    assert (found.models, found.loads, found.hits) == (1, 1, 1)
    assert found.nbytes == (folder / "b.so").stat().st_size


def test_named_paths_are_models(versions: list[Path]) -> None:
    """A mapping names files anywhere."""
    pool = Pool({"zero": versions[0], "two": versions[2]})
    assert [pool[name]["answer"]() for name in pool] == [2, 0]
    with pytest.raises(ModelNotFoundError, match="no model 'one'"):
        pool["one"]


def test_the_least_recently_used_is_closed_first(folder: Path) -> None:
    """By the number of models, and by the sum of the sizes; its memory is freed."""
    size = (folder / "a.so").stat().st_size
    for options in ({"limit": 2}, {"budget": 2 * size}, {"budget": f"{2 * size} B"}):
        with Pool(folder, **options) as pool:
            pool["a"], pool["b"], pool["a"], pool["c"]
            assert [bool(maps(folder / f"{name}.so")) for name in "abc"] == [True, False, True]
            found = pool.statistics()
            assert (found.models, found.evicted, found.draining) == (2, 1, 0)
            assert found.nbytes <= 2 * size
            assert pool["b"]["answer"]() == 1
        assert not any(maps(folder / f"{name}.so") for name in "abc")


def test_a_replaced_file_is_loaded_and_the_old_one_drained(
    folder: Path, versions: list[Path]
) -> None:
    """A caller that holds the old version goes on with it; the pool gives the new one."""
    pool = Pool(folder)
    old = pool["a"]
    replace(folder / "a.so", versions[2])
    assert pool["a"]["answer"]() == 2
    assert old["answer"]() == 0
    assert pool.statistics().draining == 1
    before = maps(folder / "a.so")
    del old
    assert pool.statistics().draining == 0
    assert maps(folder / "a.so") < before
    assert pool.statistics().replaced == 1


def test_a_link_to_another_version_replaces_the_model(tmp_path: Path, versions: list[Path]) -> None:
    """A folder of links, which a deployment replaces by a rename."""
    (tmp_path / "a.so").symlink_to(versions[0])
    pool = Pool(tmp_path)
    assert pool["a"]["answer"]() == 0
    (tmp_path / "new").symlink_to(versions[1])
    (tmp_path / "new").rename(tmp_path / "a.so")
    assert pool["a"]["answer"]() == 1


def test_a_broken_version_is_an_error_and_never_the_old_one(
    folder: Path, versions: list[Path]
) -> None:
    """Until a good one is there."""
    pool = Pool(folder)
    assert pool["a"]["answer"]() == 0
    cut = folder / "cut"
    cut.write_bytes(versions[0].read_bytes()[:1000])
    cut.rename(folder / "a.so")
    for _ in range(2):
        with pytest.raises(LibraryLoadError, match="a.so"):
            pool["a"]
    (folder / "a.so").unlink()
    with pytest.raises(ModelNotFoundError, match="No such file"):
        pool["a"]
    shutil.copy(versions[1], folder / "a.so")
    assert pool["a"]["answer"]() == 1
    assert pool.statistics().failed == 3


def test_a_removed_model_leaves_the_memory(folder: Path) -> None:
    """The look-up that misses its file drops it."""
    pool = Pool(folder)
    assert pool["b"]["answer"]() == 1
    (folder / "b.so").unlink()
    with pytest.raises(ModelNotFoundError):
        pool["b"]
    found = pool.statistics()
    assert (found.models, found.nbytes, found.draining) == (0, 0, 0)
    assert maps(folder / "b.so") == 0


@pytest.mark.parametrize(
    "name", ["../a", "/etc/a", "", ".", "..", ".hidden", "a\0", "\ud800", "x" * 9999]
)
def test_names_lead_to_files_of_the_folder_only(folder: Path, name: str) -> None:
    """Names come from requests."""
    pool = Pool(folder / "models")
    (folder / "models").mkdir()
    shutil.copy(folder / "a.so", folder / "models" / ".hidden.so")
    with pytest.raises(ModelNotFoundError, match="no model"):
        pool[name]
    assert name not in pool


def test_wrong_arguments_are_refused_in_words(folder: Path) -> None:
    """The message names the argument and what it takes."""
    for budget in ("4 GB", "much", "-1 GiB", "0 B", 0, True):
        with pytest.raises(ValueError, match="budget: expected"):
            Pool(folder, budget=budget)
    with pytest.raises(ValueError, match="limit: expected a positive number, found 0"):
        Pool(folder, limit=0)
    with pytest.raises(OutOfMemoryError, match="budget of the pool is 10"):
        Pool(folder, budget=10)["a"]
    with pytest.raises(TypeError, match="expected a str"):
        Pool(folder)[3]  # type: ignore[index]


def test_options_of_load_are_those_of_the_pool(folder: Path) -> None:
    """Here a rule that one file meets."""
    import hashlib

    digest = hashlib.sha256((folder / "a.so").read_bytes()).hexdigest()
    trust = runtime.Trust.sha256(digest)
    pool = Pool(folder, load=functools.partial(runtime.load, trust=trust))
    assert pool["a"]["answer"]() == 0
    with pytest.raises(VerifyError):
        pool["b"]


def test_threads_see_no_old_version(folder: Path, versions: list[Path]) -> None:
    """Version n answers n modulo 3; a look-up gets what was there when it began, or newer."""
    pool, newest, errors = Pool(folder, limit=2), [0], []

    def ask() -> None:
        try:
            while (least := newest[0]) < 60:
                found = pool["a"]["answer"]()
                if found not in {number % 3 for number in range(least, newest[0] + 2)}:
                    errors.append((least, found))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for number in range(1, 61):
        replace(folder / "a.so", versions[number % 3])
        newest[0] = number
    for thread in threads:
        thread.join()
    assert not errors


FORK = """
import os, sys, threading
import runtime

folder = sys.argv[1]
entered, leave = threading.Event(), threading.Event()

def load(path):
    if path.endswith("b.so") and os.getpid() == parent:
        entered.set()
        leave.wait(60)
    return runtime.load(path)

parent = os.getpid()
pool = runtime.Pool(folder, load=load)
assert pool["a"]["answer"]() == 0
thread = threading.Thread(target=lambda: pool["b"])
thread.start()
entered.wait(60)
child = os.fork()
if child == 0:
    os._exit(7 if (pool["a"]["answer"](), pool["b"]["answer"]()) == (0, 1) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
leave.set()
thread.join()
"""


def test_a_child_goes_on_where_a_thread_was_loading(folder: Path) -> None:
    """Its locks are new ones."""
    assert run_python(FORK, str(folder)) == 7


def test_many_models_have_room_for_few(tmp_path: Path, versions: list[Path]) -> None:
    """Of 300 names two are in memory."""
    for number in range(300):
        os.link(versions[0], tmp_path / f"m{number}.so")
        shutil.copy(versions[number % 3], tmp_path / f"n{number}.so")
    pool = Pool(tmp_path, limit=2)
    assert [pool[f"n{number}"]["answer"]() for number in range(300)] == [0, 1, 2] * 100
    found = pool.statistics()
    assert (found.models, found.evicted, found.draining, len(pool)) == (2, 298, 0, 600)
