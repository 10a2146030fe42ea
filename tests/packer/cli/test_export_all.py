"""packer export --all and --executor."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import runtime

from ...support.command_line import CODE, TWO, Packer, done, refused

PROJECT = f"""
[library]
output = "out/model.so"
[module.m]
kind = "c"
sources = ["add.c"]
functions.add = "{TWO}"
"""


def project(folder: Path, code: str = CODE) -> Path:
    """A project that exports `add`."""
    folder.mkdir(parents=True)
    (folder / "add.c").write_text(code)
    (folder / "packer.toml").write_text(PROJECT)
    return folder


def test_every_project_below_a_folder_is_exported(packer: Packer, tmp_path: Path) -> None:
    """Each to its own output; hidden folders are left out."""
    for name in ("a", "b/deep", ".hidden"):
        project(tmp_path / "nets" / name)
    lines = done(packer("export", "--all", "nets")).splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        "nets/a/out/model.so",
        "nets/b/deep/out/model.so",
    ]
    for line in lines:
        assert runtime.load(tmp_path / line.partition(": ")[0])["add"](40, 2) == 42
    assert not (tmp_path / "nets/.hidden/out").exists()


def test_a_matrix_is_exported_into_folders(packer: Packer, tmp_path: Path) -> None:
    """One library for each level."""
    project(tmp_path / "nets")
    row = "cpu=x86-64-v2,x86-64-v3"
    done(packer("export", "--all", "nets", "--matrix", row, "--executor", "threads:2"))
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.so"))
    assert found == [f"nets/out/x86-64-v{level}/model.so" for level in (2, 3)]
    report = json.loads(done(packer("inspect", "--json", found[1])))
    assert "x86-64-v3" in json.dumps(report)


def test_failures_name_the_project_and_do_not_stop_the_others(
    packer: Packer, tmp_path: Path
) -> None:
    """The exit status is 1."""
    project(tmp_path / "nets/a", "int add(int a) { return b; }")
    project(tmp_path / "nets/b")
    run = packer("export", "--all", "nets")
    assert "1 of 2 exports failed" in refused(run)
    assert "nets/a/packer.toml: " in run.stderr
    assert "undeclared" in run.stderr
    assert (tmp_path / "nets/b/out/model.so").exists()


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--all", "none"], 1, "there is no such folder"),
        (["--all", "empty"], 1, "no packer.toml in this folder or below"),
        (["--all", "nameless"], 1, "nameless/packer.toml: no output in [library]"),
        (["--all", "nets", "--matrix", "level=3"], 2, "expected target=VALUE,VALUE or cpu="),
        (["--all", "nets", "--matrix", "cpu=../up"], 2, "expected target=VALUE,VALUE or cpu="),
        (["--all", "nets", "--jobs", "0"], 1, "jobs: expected at least 1, found 0"),
        (["--matrix", "cpu=x86-64-v2"], 2, "argument --matrix: needs --all"),
        (["--all", "nets", "a.c"], 2, "argument --all: not allowed with SOURCE"),
        (["--all", "nets", "--entry", "add"], 2, "argument --all: not allowed with --entry"),
        (["--all", "nets", "-O", "3"], 2, "argument --all: not allowed with -O"),
        (
            ["--all", "nets", "--cpu", "native", "--matrix", "cpu=native"],
            2,
            "argument --matrix: not allowed with the option",
        ),
        (
            ["--all", "nets", "--matrix", "cpu=native", "--matrix", "cpu=native"],
            2,
            "argument --matrix: each key once",
        ),
        (["m.so", "--executor", "threads"], 2, "expected threads:N, processes:N or"),
        (["m.so", "--executor", "threads:0"], 2, "expected threads:N, processes:N or"),
        (["m.so", "--executor", "nothing:make"], 1, "--executor nothing:make: ModuleNotFound"),
        (["m.so", "--executor", "pools:none"], 1, "--executor pools:none: AttributeError"),
    ],
)
def test_wrong_arguments_are_refused_in_words(
    packer: Packer, tmp_path: Path, words: list[str], code: int, text: str
) -> None:
    """Exit code 2 for usage, 1 for what is missing."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "nameless").mkdir()
    (tmp_path / "nameless/packer.toml").write_text("[library]\n")
    (tmp_path / "pools.py").write_text("")
    assert text in refused(packer("export", *words), code)


def test_a_function_of_a_module_makes_the_executor(packer: Packer, tmp_path: Path) -> None:
    """It is searched in the current folder, and shut down at the end."""
    project(tmp_path / "net")
    (tmp_path / "pools.py").write_text(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "class Pool(ThreadPoolExecutor):\n"
        "    def submit(self, function, *args):\n"
        "        print('compiling', args[0].name, flush=True)\n"
        "        return super().submit(function, *args)\n"
        "def make():\n    return Pool(2)\n"
    )
    options = ["--project", "net/packer.toml", "--executor", "pools:make"]
    run = packer("export", "m.so", *options, env={**os.environ, "PACKER_CACHE": "off"})
    assert "compiling net/add.c" in done(run)
    assert runtime.load(tmp_path / "m.so")["add"](40, 2) == 42
