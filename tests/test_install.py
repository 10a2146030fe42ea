"""`pip install .` in a checkout: one command builds and installs both distributions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from runtime.abi import __version__

from .support import distributions as dist
from .test_packaging import DEMO

INSTALL = ("install", "--no-build-isolation")
QUICK = {"CPPFLAGS": "-O0"}  # after the build's own -O2: half the time
# What the importers need, for pip.
OTHERS = [
    *(("numba", "0.68.1"), ("onnx", "1.21.0"), ("onnxscript", "0.7.2")),
    *(("emx_onnx_cgen", "1.4.0"), ("onnx_shape_inference", "0.4.0"), ("torch", "2.13.0")),
]
# The kinds of importers, with the rest of the requirement and the folder.
EXTRAS = [
    ("numba", "numba", "numba"),
    ("onnx", "onnx", "onnx"),
    ("torch", "onnx[torch]", "onnx"),
    ("trees", "trees", "trees"),
]
MARKS = "import packer.target, runtime.abi as abi; print(packer.target.MARK, abi.MARK)"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory, sdists, wheels) -> Path:
    """A copy of the tracked files, under a path that a URL spells otherwise.

    It has the objects of the wheel, newer than its sources: the core is not compiled again.
    """
    copy = dist.copy_checkout(tmp_path_factory.mktemp("checkout") / "dso packer-1.0 #é")
    built = dist.unpacked(sdists["dso-runtime"]) / "build"
    shutil.copytree(built, copy / "runtime/build")
    return copy


@pytest.fixture
def environment(build_environment, tmp_path) -> Path:
    """The environment that has every package but ours."""
    dist.pip(build_environment, "uninstall", "--yes", *dist.PROJECTS, cwd=tmp_path)
    return build_environment


def mark(checkout: Path, value: int) -> None:
    """Change a file of each package."""
    for name in ("packer/target.py", "runtime/runtime/abi.py"):
        with (checkout / name).open("a", encoding="utf-8") as file:
            file.write(f"\nMARK = {value}\n")


def test_each_install_builds_and_installs_both_again(checkout, environment, tmp_path) -> None:
    """By the pip that came with Python and by the newest, without an index of the project."""
    python = environment / "bin/python"
    of_python = ("-m", "pip", *INSTALL, "--no-index", ".")
    for value in (1, 2):
        mark(checkout, value)
        said = dist.run(python, *of_python, cwd=checkout, **QUICK)
        assert "Requirement already satisfied: llvmlite" in said
        assert dist.run(python, "-c", MARKS, cwd=tmp_path) == f"{value} {value}\n"
    for value in (3, 4):
        mark(checkout, value)
        dist.pip(environment, *INSTALL, ".[numpy]", cwd=checkout, **QUICK)
        assert dist.run(python, "-c", MARKS, cwd=tmp_path) == f"{value} {value}\n"
    result, home = json.loads(dist.run(python, "-c", DEMO, cwd=tmp_path))
    assert (result, Path(home).is_relative_to(environment)) == (42, True)
    assert dist.pip(environment, "check", cwd=tmp_path) == "No broken requirements found.\n"

    dist.pip(environment, "uninstall", "--yes", "dso-packer", cwd=tmp_path)
    load = "import runtime; print(runtime.load('add.so')['add'](1, 2))"
    assert dist.run(python, "-c", load, cwd=tmp_path) == "3\n"


def test_runtime_alone_is_installed_from_its_folder(checkout, environment, tmp_path) -> None:
    """On a machine that only loads libraries."""
    dist.pip(environment, *INSTALL, "./runtime", cwd=checkout, **QUICK)
    listed = json.loads(dist.pip(environment, "list", "--format=json", cwd=tmp_path))
    assert [entry["name"] for entry in listed if entry["name"] in dist.PROJECTS] == ["dso-runtime"]


def test_an_importer_is_installed_from_its_folder_or_as_an_extra(
    checkout, environment, tmp_path
) -> None:
    """With packer and runtime of the checkout; other packages are as if they were there."""
    site = next(environment.glob("lib/python*/site-packages"))
    others = {site / f"{name}-{version}.dist-info": (name, version) for name, version in OTHERS}
    for folder, (name, version) in others.items():
        folder.mkdir()
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (folder / "METADATA").write_text(text)
    python = environment / "bin/python"
    # pip caches wheels of folders that are named like a release, as this one is.
    quick = {**QUICK, "PIP_NO_CACHE_DIR": "1"}
    kinds = "from packer.project.registry import every; print([i.kind for i in every()])"
    try:
        for words, found in (
            (["./importers/numba"], ["numba"]),
            (["./importers/trees"], ["trees"]),
            ([".[numba,torch]"], ["numba", "onnx", "torch"]),
            (["./runtime", ".", "./importers/onnx"], ["onnx", "torch"]),
        ):
            dist.run(python, "-m", "pip", *INSTALL, "--no-index", *words, cwd=checkout, **quick)
            assert dist.run(python, "-c", kinds, cwd=tmp_path) == f"{found}\n"
            dist.pip(environment, "uninstall", "--yes", *dist.PROJECTS, cwd=tmp_path)
    finally:
        for folder in others:
            shutil.rmtree(folder)


def test_path_of_the_checkout_is_in_the_answer_only(checkout, build_environment, sdists, tmp_path):
    """Pip asks for the metadata before it builds; the wheel must work on other machines."""
    wheel = dist.build("wheel", checkout, build_environment, tmp_path)
    required = dist.metadata(wheel).get_all("Requires-Dist")
    assert required[0] == f"dso-runtime=={__version__}"
    answer = dist.prepare(checkout, build_environment, tmp_path)
    path = f"dso-runtime @ {(checkout / 'runtime').as_uri()}"
    home = (checkout / "importers").as_uri()
    importers = {
        kind: f'dso-packer-{name} @ {home}/{folder} ; extra == "{kind}"'
        for kind, name, folder in EXTRAS
    }
    expected = [importers.get(line.split('"')[1] if '"' in line else "", line) for line in required]
    assert answer.get_all("Requires-Dist") == [path, *expected[1:]]

    source = dist.unpacked(sdists["dso-packer"])
    answer = dist.prepare(source, build_environment, tmp_path / "unpacked")
    assert answer.get_all("Requires-Dist") == required


def test_editable_install_runs_from_the_source_tree(checkout, environment, tmp_path) -> None:
    """The core is built in place; templates are found through their link."""
    projects = ("-e", "./runtime", "-e", ".")
    dist.pip(environment, *INSTALL, *projects, cwd=checkout, **QUICK)
    result, home = json.loads(dist.run(environment / "bin/python", "-c", DEMO, cwd=tmp_path))
    assert result == 42
    assert Path(home).is_relative_to(checkout)
    files = {path.name for path in (checkout / "runtime/runtime").rglob("*") if path.is_file()}
    assert {"libdso.a", "libdso.so", "libdso.so.0", "dso.pc", "dsoConfig.cmake", "dso.h"} <= files


def test_packer_without_runtime_says_how_to_install_it(wheels, tmp_path) -> None:
    """As after an upgrade of an environment in which dso-packer had both packages."""
    bare = dist.make_bare_environment(tmp_path / "bare")
    dist.pip(bare, "install", "--no-deps", wheels["dso-packer"], cwd=tmp_path)
    code = "try:\n    import packer\nexcept ModuleNotFoundError as error:\n    print(error)"
    said = dist.run(bare / "bin/python", "-c", code, cwd=tmp_path)
    assert said.startswith("packer: found no package runtime, expected the one of dso-runtime: ")
