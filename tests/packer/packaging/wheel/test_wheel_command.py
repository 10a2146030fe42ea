"""``packer wheel``: its output, its notes and its errors."""

from __future__ import annotations

import os
import subprocess
import zipfile

import pytest

from ....support.command_line import COMMAND, done, refused


@pytest.fixture
def wheel(library, tmp_path):
    """``wheel(*arguments)``: run the command in a folder that has model.so."""
    (tmp_path / "model.so").write_bytes(library.read_bytes())

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, "wheel", *arguments], cwd=tmp_path, capture_output=True, text=True,
            check=False, env={**os.environ, **variables},
        )  # fmt: skip

    return run


def test_path_and_size_are_printed(wheel, tmp_path) -> None:
    """The folder is dist, or the one that is given; a wheel of the same name is replaced."""
    said = done(wheel("model.so", "--name", "geo", "--version", "1.0"))
    (made,) = (tmp_path / "dist").iterdir()
    assert said.startswith(f"dist/{made.name}: ")
    assert said.endswith(" KiB\n")
    again = done(wheel("model.so", "--name", "geo", "--version", "1.0", "-o", "dist/"))
    assert again == said
    assert list((tmp_path / "dist").iterdir()) == [made]


def test_every_option(wheel, tmp_path) -> None:
    """Each of them reaches the wheel."""
    for name in ("README.md", "LICENSE", "extra.py"):
        (tmp_path / name).write_text(name)
    options = [
        *("--package", "pkg", "--description", "One line.", "--readme", "README.md"),
        *("--license", "MIT", "--license-file", "LICENSE", "--author", "A <a@b.org>"),
        *("--url", "https://example.org", "--requires-python", ">=3.12"),
        *("--requires", "numpy", "--requires", "pillow>=10", "--include", "extra.py"),
        *("--loader", "my.type=pkg.extra:load", "--platform", f"linux_{os.uname().machine}"),
    ]
    done(wheel("model.so", "--name", "geo", "--version", "1.0", "-o", ".", *options))
    (made,) = tmp_path.glob("*.whl")
    assert made.name == f"geo-1.0-py3-none-linux_{os.uname().machine}.whl"
    with zipfile.ZipFile(made) as archive:
        names = ("METADATA", "entry_points.txt")
        files = [*(f"geo-1.0.dist-info/{name}" for name in names), "pkg/extra.py"]
        text = "".join(archive.read(name).decode() for name in files)
    for part in (
        "Summary: One line.\n", "License-Expression: MIT\n", "Author-email: A <a@b.org>\n",
        "Project-URL: Homepage, https://example.org\n", "Requires-Python: >=3.12\n",
        "Requires-Dist: numpy\n", "Requires-Dist: pillow>=10\n", "\n\nREADME.md",
        "[dso_packer.loaders]\nmy.type = pkg.extra:load\n", "extra.py",
    ):  # fmt: skip
        assert part in text


def test_errors_are_one_line(wheel, tmp_path) -> None:
    """With the exit codes of all commands; nothing is written."""
    said = refused(wheel("model.so", "--name", "geo"))
    assert said == (
        "packer: version: expected one, found none; give it, as in --version 1.0, or set it in "
        "[library] of packer.toml\n"
    )
    said = refused(wheel("none.so", "--name", "geo", "--version", "1"))
    assert said.endswith("none.so: cannot open: No such file or directory\n")
    assert "--name" in refused(wheel("model.so", "--version", "1"), 2)
    usage = ("model.so", "--name", "geo", "--version", "1", "--loader", "key")
    assert "expected KEY=MODULE:FUNCTION, found 'key'" in refused(wheel(*usage), 2)
    assert not (tmp_path / "dist").exists()
    (tmp_path / "dist").write_text("a file")
    said = refused(wheel("model.so", "--name", "geo", "--version", "1"))
    assert said.startswith("packer: dist/geo-1-py3-none-")
    assert said.endswith(": cannot write: Not a directory\n")
