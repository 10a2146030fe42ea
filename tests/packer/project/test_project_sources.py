"""packer.toml: sources that share declarations, and inputs that change."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import packer
from packer.project import project_of_sources
from packer.project.sources import SourceFileModule, source_of

from ...support.projects import ADD, HOST, TWO, exported, project


def test_sources_share_their_declarations(folder: Path) -> None:
    """Each function belongs to the LLVM file that defines it, else to C."""
    subprocess.run(["cc", "-c", "-fPIC", "sub.c", "-o", "sub.o"], cwd=folder, check=True)
    files = [folder / name for name in ("sub.o", "mul.ll", "add.c")]
    found = project_of_sources(files, dict.fromkeys(("sub", "mul", "add"), TWO))
    library = exported(found, folder)
    assert tuple(library[name](*a) for name, a in CALLS.items()) == (42, 40, 20)
    assert found.counts() == (3, 1)


CALLS = {"add": (40, 2), "sub": (42, 2), "mul": (4, 5)}


@pytest.mark.parametrize("order", [("add.c", "sub.c"), ("sub.c", "add.c")])
def test_wrong_declaration_is_a_compile_error_in_any_file(folder: Path, order) -> None:
    """The file that defines the function need not be the first."""
    files = [folder / name for name in order]
    found = project_of_sources(files, {"add": TWO, "sub": "double(double a)"})
    with pytest.raises(packer.ToolchainError, match="conflicting types for 'sub'"):
        packer.export_library(found.root, folder / "out.so")


def test_unknown_suffix_is_refused(folder: Path) -> None:
    """Device code is for the project file."""
    with pytest.raises(packer.ExportError, match=r"suffix '.cl', expected one of .*packer\.toml"):
        source_of(folder / "k.cl")
    assert isinstance(project_of_sources([folder / "add.c"], {}).root, SourceFileModule)


def test_changed_input_is_detected(folder: Path) -> None:
    """A file that was rewritten, or removed, is not the one that was read."""
    inputs = project(folder, HOST).inputs
    inputs.check_unchanged()
    assert (folder / "packer.toml", folder / "add.c") == inputs.paths
    (folder / "add.c").write_text(ADD + "/* more */")
    with pytest.raises(packer.ExportError, match=r"add\.c: was changed while it was exported"):
        inputs.check_unchanged()
    (folder / "add.c").unlink()
    with pytest.raises(packer.ExportError, match=r"add\.c: cannot be read: No such file"):
        inputs.check_unchanged()
