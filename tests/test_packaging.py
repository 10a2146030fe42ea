"""The sdist, the wheel and an editable install: each is whole, and each works."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from .support.native import INCLUDE
from .support.paths import NATIVE, ROOT

DEMO = (
    "import json, packer, runtime\n"
    "add = packer.CSourceModule('long add(long a, long b) { return a + b; }',"
    " functions={'add': 'long(long a, long b)'})\n"
    "add.import_module(runtime.MetadataModule())\n"
    "print(json.dumps([runtime.load(packer.export_library(add, 'add.so'))['add'](40, 2),"
    " runtime.__file__]))"
)


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    """Return the output of a command, which must succeed."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, env={**clean, **env}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Path:
    """A fresh environment that sees the packages of this one, but for ours."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    run(folder / "bin/pip", "install", "--quiet", "setuptools>=77", cwd=folder.parent)
    outer = folder.parent / "outer"
    outer.mkdir()
    for path in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not path.name.startswith(("runtime", "packer", "dso_packer", "__editable__")):
            (outer / path.name).symlink_to(path)
    (next(folder.glob("lib/python*/site-packages")) / "outer.pth").write_text(f"{outer}\n")
    return folder


@pytest.fixture(scope="module")
def sdist(tmp_path_factory, environment) -> Path:
    """A source distribution, made of a copy of the tracked files."""
    source = tmp_path_factory.mktemp("source") / "tree"
    ignored = shutil.ignore_patterns(
        ".git", ".venv", "build", "dist", "*.egg-info", "*.so", ".*_cache"
    )
    shutil.copytree(ROOT, source, symlinks=True, ignore=ignored)
    code = "import setuptools.build_meta as b; print(b.build_sdist('dist'))"
    name = run(environment / "bin/python", "-c", code, cwd=source).splitlines()[-1]
    return source / "dist" / name


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Extract all members; Python before 3.11.4 has no filters and ignores the attribute."""
    archive.extraction_filter = getattr(tarfile, "data_filter", None)  # type: ignore[attr-defined]
    archive.extractall(folder)


@pytest.fixture(scope="module")
def wheel(sdist, environment, tmp_path_factory) -> Path:
    """A wheel that is built from the unpacked sdist."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        unpack(archive, folder)
    (source,) = folder.iterdir()
    code = "import setuptools.build_meta as b; print(b.build_wheel('dist'))"
    name = run(environment / "bin/python", "-c", code, cwd=source).splitlines()[-1]
    return source / "dist" / name


def test_wheel_has_core_header_templates_and_types(wheel) -> None:
    """The files that a user needs beside the Python files are inside."""
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "runtime/py.typed",
        "runtime/__init__.pyi",
        "runtime/_core.pyi",
        "runtime/include/dso.h",
        "runtime/include/dso.hpp",
        "runtime/include/dso_abi.h",
        "runtime/include/dso_packer.h",
        "runtime/include/dso_packer_system_lib.h",
        "runtime/include/dso_system_symbol.h",
        "runtime/include/dso_typed.h",
        "runtime/include/dso_value.h",
        "runtime/lib/cmake/dso/dsoConfig.cmake",
        "runtime/lib/cmake/dso/dsoConfigVersion.cmake",
        "runtime/lib/libdso.a",
        "runtime/lib/libdso.so",
        "runtime/lib/libdso.so.0",
        "runtime/lib/pkgconfig/dso.pc",
        "packer/__init__.pyi",
        "packer/py.typed",
        "packer/templates/glue.h",
        "packer/templates/glue_array.h",
    } <= names
    assert [n for n in names if n.startswith("runtime/_core.") and n.endswith(".so")]
    assert not [n for n in names if n.startswith("tests/")]


def test_runtime_takes_less_than_2_mb(wheel) -> None:
    """Installed, with its core, on a machine that only runs libraries; and libdso as much again."""
    with zipfile.ZipFile(wheel) as archive:
        files = {i.filename: i.file_size for i in archive.infolist()}
    libdso = {name for name in files if name.startswith("runtime/lib/")}
    sizes = [files[name] for name in files.keys() - libdso if name.startswith("runtime/")]
    assert 100_000 < sum(sizes) < 2_000_000
    assert 100_000 < sum(files[name] for name in libdso) < 2_000_000


def test_wheel_runs_from_anywhere(wheel, environment, tmp_path) -> None:
    """Installed, the packages export and load, and the command is there."""
    pip = environment / "bin/pip"
    run(pip, "install", "--no-deps", "--force-reinstall", wheel, cwd=tmp_path)
    result, home = json.loads(run(environment / "bin/python", "-c", DEMO, cwd=tmp_path))
    assert result == 42
    assert Path(home).is_relative_to(environment)
    assert run(environment / "bin/packer", "--version", cwd=tmp_path).startswith("packer 0.1.0")


def test_editable_install_runs_from_the_source_tree(sdist, environment, tmp_path) -> None:
    """The core is built in place; templates are found through their link."""
    with tarfile.open(sdist) as archive:
        unpack(archive, tmp_path)
    (source,) = tmp_path.iterdir()
    command = ("install", "--no-deps", "--no-build-isolation", "--force-reinstall", "-e", source)
    run(environment / "bin/pip", *command, cwd=tmp_path)
    result, home = json.loads(run(environment / "bin/python", "-c", DEMO, cwd=tmp_path))
    assert result == 42
    assert Path(home).is_relative_to(source)
    files = {path.name for path in (source / "runtime/lib").rglob("*") if path.is_file()}
    assert {"libdso.a", "libdso.so", "libdso.so.0", "dso.pc", "dsoConfig.cmake"} <= files


def test_free_threaded_python_is_refused_at_build_time(environment) -> None:
    """The core relies on the GIL, and a build elsewhere reports that."""
    code = (
        "import runpy, sysconfig\n"
        "sysconfig.get_config_vars()['Py_GIL_DISABLED'] = 1\n"
        "runpy.run_path('setup.py')"
    )
    ran = subprocess.run(
        [environment / "bin/python", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    expected = "dso-packer: found a free-threaded build of CPython, expected one with the GIL"
    assert (ran.returncode, ran.stderr[: len(expected)]) == (1, expected)


def test_core_does_not_compile_without_the_gil() -> None:
    """Nor does a compiler that is started by hand build it."""
    source = NATIVE / "python" / "coremodule.c"
    include = [f"-I{folder}" for folder in (*INCLUDE, sysconfig.get_path("include"))]
    ran = subprocess.run(
        ["cc", "-fsyntax-only", "-DPy_GIL_DISABLED=1", *include, source],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "build it for a CPython that is not free-threaded" in ran.stderr
