"""StaticLibraryModule with a file for each level: which level gets which, and what is refused."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import packer
from packer.levels.table import levels_of
from packer.project import read_project
from packer.target import find_target

from ...support import needs
from ...support.each_level import each_level

LEVELS = list(levels_of("x86_64").values())[1:]
X86 = find_target("x86_64-linux-gnu")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """An archive for v2 and an object for v4, whose functions return 2 and 4."""
    made = {"x86-64-v2": tmp_path / "fast-v2.a", "x86-64-v4": tmp_path / "fast-v4.o"}
    for number, path in zip((2, 4), made.values(), strict=True):
        source = f"int level(void) {{ return {number}; }}"
        compiled = path.with_suffix(".o")
        command = ["cc", "-c", "-fPIC", "-xc", "-", "-o", compiled]
        subprocess.run(command, input=source, text=True, check=True)
        if path.suffix == ".a":
            subprocess.run([needs.program("ar"), "rc", path, compiled], check=True)
    return made


def test_a_level_without_a_file_has_that_of_the_next_lower_one(files, tmp_path) -> None:
    """v3 has the archive of v2, v4 its object."""
    module = packer.StaticLibraryModule(files, {"level": "int(void)"})
    written = module.write_levels(tmp_path / "lib0", "o", X86, LEVELS)
    found = [path.read_bytes() for path in written.variants]
    v2, v4 = (path.read_bytes() for path in files.values())
    assert found == [v2, v2, v4]
    assert written.path == written.variants[0]


def test_one_file_is_written_once_for_all_levels(files, tmp_path) -> None:
    """It has no variants, so the export links it as it is."""
    module = packer.StaticLibraryModule(files["x86-64-v2"])
    written = module.write_levels(tmp_path / "lib0", "o", X86, LEVELS)
    assert written.variants == ()
    assert written.path.read_bytes() == files["x86-64-v2"].read_bytes()


def test_files_are_those_of_the_exports_levels(files, tmp_path) -> None:
    """The lowest level needs one, and a name that the export does not have is refused."""
    module = packer.StaticLibraryModule(files)
    with pytest.raises(packer.ExportError, match="a file for x86-64-v4, expected one of the levels "
                       "of the export: x86-64-v2, x86-64-v3; drop it"):  # fmt: skip
        module.write_levels(tmp_path / "lib0", "o", X86, LEVELS[:2])
    del files["x86-64-v2"]
    module = packer.StaticLibraryModule(files)
    with pytest.raises(packer.ExportError, match="no file for x86-64-v2, the lowest level of the"):
        module.write_levels(tmp_path / "lib0", "o", X86, LEVELS)


def test_files_of_levels_need_an_export_with_levels(files, tmp_path) -> None:
    """The message is the option to add."""
    module = packer.StaticLibraryModule(files, {"level": "int(void)"})
    with pytest.raises(packer.ExportError, match=r"export with cpu=\['x86-64-v2', 'x86-64-v4'\]"):
        packer.export_library(module, tmp_path / "a.so")
    with pytest.raises(packer.ExportError, match="no file, expected one for each level"):
        packer.StaticLibraryModule({})


def test_output_that_is_a_file_of_a_level_is_refused(files) -> None:
    """The files of all levels are inputs."""
    module = packer.StaticLibraryModule(files, {"level": "int(void)"})
    for path in files.values():
        before = path.read_bytes()
        with pytest.raises(packer.ExportError, match="is also an input"):
            packer.export_library(module, path, build=packer.Build(cpu=list(files)))
        assert path.read_bytes() == before


def test_packer_toml_has_a_file_for_each_level(files, tmp_path) -> None:
    """The key ``levels``, in place of ``sources``; its files are inputs."""
    needs.hardware(os.uname().machine == "x86_64", "an x86-64 processor")
    project_file = tmp_path / "packer.toml"
    project_file.write_text(
        '[library]\ncpu = ["x86-64-v2", "x86-64-v4"]\n[module.fast]\nkind = "static_library"\n'
        'levels = { x86-64-v2 = "fast-v2.a", x86-64-v4 = "fast-v4.o" }\n'
        'functions = { level = "int(void)" }\n'
    )
    project = read_project(project_file)
    assert [Path(path).name for path in project.inputs.paths[1:]] == ["fast-v2.a", "fast-v4.o"]
    path = packer.export_library(
        project.root, tmp_path / "a.so", build=packer.Build(cpu=project.cpu)
    )
    levels = {name: model["level"]() for name, model in each_level(path, project.cpu)}
    assert levels == {name: int(name[-1]) for name in levels}
    assert "x86-64-v2" in levels
    project_file.write_text('[module.fast]\nkind = "static_library"\n')
    with pytest.raises(packer.ExportError, match=r"\[module.fast\] sources: "):
        read_project(project_file)
