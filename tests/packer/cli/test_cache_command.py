"""packer cache: what exports keep, and how to get rid of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ...support.command_line import ADD, Packer, done, refused


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cache, which does not exist yet."""
    monkeypatch.setenv("PACKER_CACHE", str(tmp_path / "objects"))
    return tmp_path / "objects"


def test_size_is_shown_and_cleared(packer: Packer, cache: Path) -> None:
    """Nothing is made by asking; after an export there are entries, and then none."""
    assert done(packer("cache")) == f"{cache}: 0 entries, 0 bytes of at most 1.0 GiB\n"
    assert not cache.exists()
    done(packer("export", "a.so", "add.c", "--function", ADD))
    found = json.loads(done(packer("cache", "--json")))
    files = [path for path in cache.rglob("*") if path.is_file()]
    assert found["path"] == str(cache)
    assert found["entries"] == len(files) > 1
    assert found["nbytes"] == sum(path.stat().st_size for path in files)
    assert found["limit_nbytes"] == 1 << 30
    assert ": 0 entries" in done(packer("cache", "--clear"))
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_export_from_the_cache_runs_only_the_linker(packer: Packer, cache: Path) -> None:
    """Of the commands that -v shows; the output beside the source does not count as a change."""
    commands = []
    for _ in range(2):
        run = packer("export", "-v", "a.so", "add.c", "--function", ADD)
        assert run.returncode == 0
        commands.append([line for line in run.stderr.splitlines() if " -o " in line])
    assert [len(lines) for lines in commands] == [3, 1]
    assert " -shared " in commands[1][0]


def test_cache_that_is_off(packer: Packer, monkeypatch: pytest.MonkeyPatch) -> None:
    """PACKER_CACHE=off."""
    monkeypatch.setenv("PACKER_CACHE", "off")
    assert done(packer("cache")) == "off: PACKER_CACHE is set\n"
    assert json.loads(done(packer("cache", "--json")))["path"] is None


def test_folder_that_exports_do_not_use(packer: Packer, cache: Path) -> None:
    """The reason, and what to do."""
    cache.mkdir()
    cache.chmod(0o777)
    for arguments in ([], ["--clear"], ["--json"]):
        text = refused(packer("cache", *arguments))
        assert text.endswith(
            f"{cache}: exports do not use it: others can write to it; name another folder in "
            "PACKER_CACHE\n"
        )
