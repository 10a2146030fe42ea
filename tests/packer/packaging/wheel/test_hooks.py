"""Projects that build their own wheels with a library in them: setuptools and hatch."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from ....support import needs
from ....support.paths import DOCS
from .conftest import SOURCE
from .installation import fresh_environment, install, run, tool

PROJECT = """
[library]
output = "model.so"

[module.host]
kind = "c"
sources = ["csrc/mean.c"]
functions = "auto"
libraries = ["m"]
"""
PACKAGE = """
from pathlib import Path

import runtime

model = runtime.load(Path(__file__).with_name("model.so"))
mean = model["mean"]
"""
BASE = """
[project]
name = "geo"
version = "2.0"
"""
SETUPTOOLS = """
[build-system]
requires = ["setuptools>=77", "dso-packer"]
build-backend = "setuptools.build_meta"
"""
HATCH = """
[build-system]
requires = ["hatchling", "dso-packer"]
build-backend = "hatchling.build"
[tool.hatch.build.targets.wheel]
packages = ["src/geo"]
"""
LINE = 'libraries = {"geo/model.so" = "packer.toml"}\n'
BUILDERS = {
    "setuptools": f"{SETUPTOOLS}{BASE}[tool.dso-packer]\n{LINE}",
    "hatch": f"{HATCH}{BASE}[tool.hatch.build.hooks.dso-packer]\n{LINE}",
}
CALL = "import array, geo; print(geo.mean(array.array('d', [1, 2, 6]), 3), geo.__file__)"


@pytest.fixture(autouse=True)
def builders() -> None:
    """Both builders are in one group."""
    needs.importable("hatchling", "wheel-tools")


def make_project(folder: Path, pyproject: str) -> Path:
    """Write a project with a package that loads a library."""
    files = {
        "pyproject.toml": pyproject,
        "packer.toml": PROJECT,
        "csrc/mean.c": SOURCE,
        "src/geo/__init__.py": PACKAGE,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture(params=BUILDERS)
def project(request, tmp_path) -> Path:
    """The project of each builder."""
    return make_project(tmp_path / "project", BUILDERS[request.param])


def build(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Build a wheel as pip does, with the packages of this environment."""
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    return subprocess.run(
        [*command, "-w", project.parent / "made", *options, project],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip


def built(project: Path, *options: str) -> Path:
    """Return the one wheel of a build."""
    done = build(project, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (project.parent / "made").iterdir()
    return wheel


def test_wheel_has_the_library_and_its_tag(project, environment) -> None:
    """The project file is exported by the build; the package runs where it is installed."""
    wheel = built(project)
    assert re.fullmatch(r"geo-2\.0-py3-none-(manylinux\w+\.)*manylinux_2_\d+_\w+\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        assert {"geo/__init__.py", "geo/model.so"} <= set(archive.namelist())
        assert "Root-Is-Purelib: false" in archive.read("geo-2.0.dist-info/WHEEL").decode()
    tool("auditwheel", "repair", "-w", project.parent / "repaired", wheel, group="test")
    assert [path.name for path in (project.parent / "repaired").iterdir()] == [wheel.name]
    install(environment, "--no-deps", "--force-reinstall", wheel)
    assert run(environment, "-c", CALL).startswith("3.0 ")


def test_wheel_from_a_source_distribution(project) -> None:
    """Python -m build: the source distribution has the sources of the library."""
    tool("build", "--no-isolation", "--outdir", project.parent / "dist", project)
    sdist, wheel = sorted((project.parent / "dist").iterdir(), key=lambda path: path.suffix)
    with tarfile.open(sdist) as archive:
        assert {"geo-2.0/packer.toml", "geo-2.0/csrc/mean.c"} <= set(archive.getnames())
        assert not [name for name in archive.getnames() if name.endswith(".so")]
    with zipfile.ZipFile(wheel) as archive:
        assert "geo/model.so" in archive.namelist()


def test_editable_install_has_the_library_beside_the_sources(project, tmp_path) -> None:
    """As extension modules are."""
    python = fresh_environment(tmp_path / "venv")
    (folder,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (folder / "outer.pth").write_text(sysconfig.get_path("purelib"))
    install(python, "--no-build-isolation", "--no-deps", "-e", project)
    assert (project / "src/geo/model.so").is_file()
    value, file = run(python, "-c", CALL).split()
    assert (value, Path(file)) == ("3.0", project / "src/geo/__init__.py")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("libraries = 1", r'libraries: expected {"geo/model.so" = "packer.toml"}, found 1'),
        ('libraries = {"model.so" = "packer.toml"}', "expected a library in a package, as geo/mo"),
        ('libraries = {"geo/m.so" = "p.toml"}', "expected the packer.toml of geo/m.so, found 'p.t"),
        (LINE.replace("packer.toml", "broken.toml"), "sources: .*none.c: cannot be read: No such"),
    ],
)
@pytest.mark.parametrize("builder", BUILDERS)
def test_mistake_is_one_line_of_the_build(tmp_path, builder, line, message) -> None:
    """It is an error of the project, so there is no traceback."""
    text = BUILDERS[builder].replace(LINE, f"{line}\n")
    project = make_project(tmp_path / "project", text)
    (project / "broken.toml").write_text(PROJECT.replace("mean.c", "none.c"))
    done = build(project)
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if "dso-packer: " in line]
    assert re.search(message, lines[0])
    assert "Traceback" not in done.stdout + done.stderr


def test_keyword_of_setup(tmp_path) -> None:
    """A setup.py names libraries in a keyword."""
    project = make_project(tmp_path / "project", SETUPTOOLS + BASE)
    line = 'from setuptools import setup\nsetup(dso_packer={"geo/model.so": "packer.toml"})\n'
    (project / "setup.py").write_text(line)
    with zipfile.ZipFile(built(project)) as archive:
        assert "geo/model.so" in archive.namelist()


def test_extension_module_beside_a_library(tmp_path) -> None:
    """The wheel stays one of its Python, and the platform is measured from both files."""
    text = "#include <Python.h>\nstatic struct PyModuleDef m = {PyModuleDef_HEAD_INIT, 0, 0, -1};\n"
    text += "PyMODINIT_FUNC PyInit_ext(void) { return PyModule_Create(&m); }\n"
    project = make_project(tmp_path / "project", BUILDERS["setuptools"])
    (project / "ext.c").write_text(text)
    line = 'setup(ext_modules=[Extension("geo.ext", ["ext.c"])])'
    (project / "setup.py").write_text(f"from setuptools import Extension, setup\n{line}\n")
    wheel = built(project)
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert wheel.name.startswith(f"geo-2.0-{python}-{python}-manylinux")


def test_library_for_this_system_only(tmp_path) -> None:
    """The log says why the wheel has no manylinux tag."""
    project = make_project(tmp_path / "project", BUILDERS["setuptools"])
    needs.header("sqlite3.h", "libsqlite3-dev")
    text = "#include <sqlite3.h>\nint version(void) { return sqlite3_libversion_number(); }\n"
    (project / "csrc/mean.c").write_text(SOURCE + text)
    (project / "packer.toml").write_text(PROJECT.replace('["m"]', '["m", "sqlite3"]'))
    done = build(project, "-v")
    assert "needs libsqlite3.so.0, which not every system has" in done.stdout + done.stderr
    (wheel,) = (tmp_path / "made").iterdir()
    assert "-py3-none-linux_" in wheel.name


def test_project_without_libraries_is_left_alone(tmp_path) -> None:
    """Its wheel is pure, though the hook is installed."""
    project = make_project(tmp_path / "project", SETUPTOOLS + BASE)
    assert built(project).name == "geo-2.0-py3-none-any.whl"


@pytest.mark.parametrize("block", [0, 1], ids=list(BUILDERS))
def test_project_of_the_document(tmp_path, block) -> None:
    """Its pyproject.toml as it is, with the package in the folder of the project."""
    text = (DOCS / "wheels.md").read_text().split("```toml\n")[block + 1].split("```")[0]
    project = make_project(tmp_path / "project", text)
    (project / "src" / "geo").rename(project / "geo")
    (project / "src").rmdir()
    (project / "csrc").rename(project / "geo" / "csrc")
    (project / "packer.toml").write_text(PROJECT.replace("csrc/", "geo/csrc/"))
    with zipfile.ZipFile(built(project)) as archive:
        assert {"geo/__init__.py", "geo/model.so"} <= set(archive.namelist())
        metadata = archive.read("geo-1.0.dist-info/METADATA").decode()
    assert "Requires-Dist: dso-runtime\n" in metadata
