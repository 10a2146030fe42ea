"""The folder of the object cache: whole entries or none, a limit, and exports that never fail."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from packer.toolchain.cache.folder import Folder, cache_path, digest_of

from ...support import needs
from ...support.command_line import COMMAND
from ..compilers import write

CODE = "long f(long a) { return a + 1; }\n"


def entries(folder: Path) -> list[Path]:
    """The files of a cache."""
    return [path for path in folder.rglob("*") if path.is_file()]


def export(folder: Path, cache: Path | str, *prefix: str, name: str = "f.so") -> bytes:
    """Export `CODE` in a fresh process; return the library."""
    folder.mkdir(exist_ok=True)
    write(folder / "f.c", CODE)
    done = subprocess.run(
        [*prefix, *COMMAND, "export", name, "f.c"],
        cwd=folder,
        env={**os.environ, "PACKER_CACHE": str(cache)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return (folder / name).read_bytes()


def test_folder_is_named_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """PACKER_CACHE, or the user's folder for caches as the XDG specification has it."""
    monkeypatch.setenv("HOME", "/home/a")
    for variables, expected in (
        ({}, "/home/a/.cache/dso-packer/objects"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/dso-packer/objects"),
        ({"XDG_CACHE_HOME": "relative"}, "/home/a/.cache/dso-packer/objects"),
        ({"XDG_CACHE_HOME": "/x", "PACKER_CACHE": "/y"}, "/y"),
        ({"XDG_CACHE_HOME": "/x", "PACKER_CACHE": "~/y"}, "/home/a/y"),
        ({"XDG_CACHE_HOME": "/x", "PACKER_CACHE": "off"}, None),
    ):
        for name in ("XDG_CACHE_HOME", "PACKER_CACHE"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert cache_path() == expected


def test_folder_is_for_the_user_alone(tmp_path: Path) -> None:
    """It is made with its parents; no other user may read what others compile."""
    cache = tmp_path / "a" / "b"
    export(tmp_path / "work", cache)
    assert [path.stat().st_mode & 0o777 for path in (cache, cache.parent)] == [0o700] * 2
    assert {path.stat().st_mode & 0o077 for path in cache.rglob("*")} == {0}


def test_library_is_the_same_with_and_without(tmp_path: Path) -> None:
    """The first time, from the cache, and without it; in several folders."""
    cache = tmp_path / "cache"
    made = [export(tmp_path / name, cache) for name in "abc"]
    made.append(export(tmp_path / "d", "off"))
    assert len(set(made)) == 1


def damaged(data: bytes) -> dict[str, bytes]:
    """Damage of every kind to a file."""
    middle = len(data) // 2
    return {
        "empty": b"",
        "cut": data[:middle],
        "longer": data + b"\0",
        "a bit": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
        "zeros": bytes(len(data)),
    }


@pytest.mark.parametrize("kind", damaged(b"ab"))
def test_damaged_entries_are_made_again(kind: str, tmp_path: Path) -> None:
    """If all of them are wrong, the library is right, and so are the new entries."""
    cache = tmp_path / "cache"
    first = export(tmp_path / "work", cache)
    before = {path: path.read_bytes() for path in entries(cache)}
    assert before
    for path, data in before.items():
        path.write_bytes(damaged(data)[kind])
    assert export(tmp_path / "work", cache) == first
    assert {path: path.read_bytes() for path in entries(cache)} == before


def test_entry_under_another_name_is_not_used(tmp_path: Path) -> None:
    """The name is part of the checksum."""
    folder = Folder(str(tmp_path / "cache"))
    one, other = digest_of(b"1"), digest_of(b"2")
    folder.write(one, b"data")
    assert folder.read(one) == b"data"
    (tmp_path / "cache" / other[0]).mkdir(exist_ok=True)
    shutil.copy(tmp_path / "cache" / one[0] / one, tmp_path / "cache" / other[0] / other)
    assert folder.read(other) is None


def test_parts_of_a_key_are_separate() -> None:
    """Text that moves from one part to the next gives another key."""
    assert digest_of(b"ab", b"c") != digest_of(b"a", b"bc") != digest_of(b"abc")


def test_least_recently_used_entries_go_first(tmp_path: Path) -> None:
    """Use counts, not age; and the limit holds after each export."""
    folder = Folder(str(tmp_path / "cache"), limit=16 * 10_000)
    names = [f"a{digest_of(bytes([i]))[1:]}" for i in range(9)]
    for age, name in enumerate(names):
        folder.write(name, bytes(1000))
        os.utime(tmp_path / "cache" / "a" / name, (1000 + age,) * 2)
    folder.trim()
    assert all(folder.read(name) for name in names[:3])  # now they were used last
    for i in range(100, 103):
        folder.write(f"a{digest_of(bytes([i]))[1:]}", bytes(1000))
    folder.trim()
    assert sum(folder.entries()) <= 10_000
    assert [folder.read(name) is not None for name in names] == [True] * 3 + [False] * 4 + [
        True
    ] * 2


def test_many_entries_stay_below_the_limit(tmp_path: Path) -> None:
    """In all sixteen folders together."""
    folder = Folder(str(tmp_path / "cache"), limit=200_000)
    for i in range(400):
        folder.write(digest_of(i.to_bytes(2, "little")), bytes(1000))
    folder.trim()
    assert 100_000 < sum(folder.entries()) <= 200_000


def test_entry_that_is_larger_than_a_share_is_not_kept(tmp_path: Path) -> None:
    """It would displace all others."""
    folder = Folder(str(tmp_path / "cache"), limit=16 * 1000)
    folder.write(digest_of(b"large"), bytes(2000))
    folder.trim()
    assert list(folder.entries()) == []


def test_unfinished_files_of_killed_exports_are_removed(tmp_path: Path) -> None:
    """After an hour: another process may be writing one."""
    folder = Folder(str(tmp_path / "cache"))
    name = digest_of(b"1")
    folder.write(name, b"data")
    place = tmp_path / "cache" / name[0]
    old, new = write(place / ".new-1", ""), write(place / ".new-2", "")
    os.utime(old, (time.time() - 4000,) * 2)
    folder.trim()
    assert [old.exists(), new.exists()] == [False, True]
    assert folder.read(name) == b"data"


def test_clear_removes_all(tmp_path: Path) -> None:
    """And the next entry is written as ever."""
    folder = Folder(str(tmp_path / "cache"))
    folder.write(digest_of(b"1"), b"data")
    folder.clear()
    assert list(folder.entries()) == []
    folder.write(digest_of(b"1"), b"data")
    assert folder.read(digest_of(b"1")) == b"data"


def test_folder_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    """Anyone could have put an object there."""
    cache = tmp_path / "cache"
    cache.mkdir()
    for mode in (0o777, 0o770, 0o1777, 0o702):
        cache.chmod(mode)
        with pytest.raises(PermissionError, match="others can write to it"):
            Folder(str(cache))
        export(tmp_path / "work", cache)
        assert not entries(cache)
    cache.chmod(0o755)
    export(tmp_path / "work", cache)
    assert entries(cache)


def test_folder_of_another_user_is_not_used(tmp_path: Path) -> None:
    """Neither is one made in another user's folder: with sudo, the user could not use it later."""
    prefix = needs.unshare("--user", "--map-user=1234", "--map-group=1234")
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    (tmp_path / "parent").mkdir()
    tmp_path.chmod(0o755)
    for path in (cache, tmp_path / "parent"):
        os.chown(path, 4321, 4321) if os.geteuid() == 0 else None
    work = tmp_path / "work"
    work.mkdir()
    if os.geteuid() == 0:  # in the namespace this user is 1234, and 4321 has no name
        export(work, cache, *prefix)
        export(work, tmp_path / "parent" / "new", *prefix)
    assert not entries(cache)
    assert not (tmp_path / "parent" / "new").exists()


@pytest.mark.parametrize("kind", ["a file", "beneath a file", "a loop", "a long name"])
def test_place_where_no_folder_can_be(kind: str, tmp_path: Path) -> None:
    """An export does not need the cache."""
    (tmp_path / "loop").symlink_to("loop")
    places = {
        "a file": write(tmp_path / "file", ""),
        "beneath a file": tmp_path / "file" / "cache",
        "a loop": tmp_path / "loop",
        "a long name": tmp_path / ("x" * 300),
    }
    assert export(tmp_path / "work", places[kind]) == export(tmp_path / "work", "off")


def mounted(tmp_path: Path, options: str, before: str = "true") -> list[str]:
    """A command prefix that runs with a separate file system at the folder ``cache``."""
    prefix = needs.unshare("--user", "--map-root-user", "--mount")
    (tmp_path / "cache").mkdir()
    mount = f"mount -t tmpfs -o mode=0700,{options} cache {tmp_path}/cache"
    script = f'{mount} && {before} && "$@" && find {tmp_path}/cache -name ".new-*" >&2'
    return [*prefix, "sh", "-ec", script, "sh"]


@pytest.mark.parametrize(
    ("options", "before"),
    [
        ("size=4k", "true"),
        ("size=1m,nr_inodes=3", "true"),
        ("size=1m", "mount -o remount,ro $(pwd)/../cache"),
    ],
    ids=["full", "no inodes", "read-only"],
)
def test_disk_that_takes_nothing(options: str, before: str, tmp_path: Path) -> None:
    """A full or read-only file system: the library is made, and no part of an entry is left."""
    prefix = mounted(tmp_path, options, before)
    work = tmp_path / "work"
    work.mkdir()
    write(work / "f.c", CODE)
    done = subprocess.run(
        [*prefix, *COMMAND, "export", "f.so", "f.c"],
        cwd=work,
        env={**os.environ, "PACKER_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (work / "f.so").read_bytes() == export(work, "off")


def test_several_processes_share_the_folder(tmp_path: Path) -> None:
    """At once, from an empty folder: each gets a right library, and no entry is damaged."""
    cache = tmp_path / "cache"
    with ThreadPoolExecutor(6) as pool:
        made = set(pool.map(lambda name: export(tmp_path / name, cache), "abcdef"))
    assert made == {export(tmp_path / "g", "off")}
    folder = Folder(str(cache))
    assert all(folder.read(path.name) for path in entries(cache))


_WRITERS = """
import sys
from packer.toolchain.cache.folder import Folder, digest_of
folder = Folder(sys.argv[1], limit=16 * 20_000)
for i in range(10**9):
    name = "a" + digest_of(bytes([i % 40]))[1:]
    data = folder.read(name)
    assert data is None or data == bytes([i % 40]) * 1000, i
    folder.write(name, bytes([i % 40]) * 1000)
    if i % 5 == 0:
        folder.trim()
    if i == 2000:
        print("done", flush=True)
        break
"""


def test_writers_readers_and_removers_at_once(tmp_path: Path) -> None:
    """None sees half an entry, and one that is killed leaves none."""
    cache = str(tmp_path / "cache")
    running = [
        subprocess.Popen([sys.executable, "-c", _WRITERS, cache], stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    time.sleep(0.5)
    running[0].send_signal(signal.SIGKILL)
    results = [process.communicate(timeout=120)[0] for process in running]
    assert [process.returncode for process in running[1:]] == [0] * 3
    assert results[1:] == [b"done\n"] * 3
    folder = Folder(cache)
    found = [folder.read(path.name) for path in entries(tmp_path / "cache") if path.name[0] != "."]
    assert found
    assert None not in found
