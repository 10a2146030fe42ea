"""`packer config`, dso.pc and the CMake package: small projects are built with the real tools."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import runtime

from ...support import needs
from ...support.command_line import COMMAND, refused

HOME = Path(runtime.__file__).parent
VERSION = "#include <dso.h>\n#include <stdio.h>\nint main(void) { return puts(dso_version()) < 0; }"
PRINTED = f"{runtime.__version__}\n"
CMAKE = """
cmake_minimum_required(VERSION 3.18)
project(app C)
find_package(dso 0.1 CONFIG REQUIRED)
add_executable(app main.c)
target_link_libraries(app PRIVATE dso::dso)
add_executable(alone main.c)
target_link_libraries(alone PRIVATE dso::static)
dso_add_library(model SOURCES add.c)
dso_add_library(described SOURCES add.c PROJECT packer.toml OPTIONS --visibility declared)
add_dependencies(app model)
target_compile_definitions(app PRIVATE MODEL="$<TARGET_PROPERTY:model,DSO_LIBRARY>")
"""
PROJECT = """
[module.host]
kind = "c"
sources = ["add.c"]
functions = { add = "int64_t(int64_t a, int64_t b)" }
"""
ADD = "#include <stdint.h>\nint64_t add(int64_t a, int64_t b) { return a + b; }\n"


def output(*command: str | Path, **environment: str) -> str:
    """Return what a command prints; it must succeed."""
    everything = {**os.environ, **environment}
    everything.pop("PYTHONSAFEPATH", None)
    ran = subprocess.run(
        command, capture_output=True, text=True, check=False, env=everything, cwd=HOME.parent
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture
def source(tmp_path) -> Path:
    """A program that prints the version of libdso."""
    path = tmp_path / "main.c"
    path.write_text(VERSION)
    return path


def config(*options: str) -> list[str]:
    """Return the words that `packer config` prints."""
    return output(*COMMAND, "config", *options).split()


@pytest.mark.parametrize("options", [("--libs",), ("--libs", "--static")], ids=lambda o: o[-1])
def test_program_is_built_with_the_options(options, source, tmp_path) -> None:
    """With libdso.so or libdso.a; it runs where it is."""
    program = tmp_path / "program"
    output("cc", source, *config("--cflags", *options), "-o", program)
    assert output(program) == PRINTED
    needs_shared = "libdso.so.0" in output("readelf", "-d", program)
    assert needs_shared == ("--static" not in options)


def test_without_options_the_folders_are_printed() -> None:
    """Each exists."""
    lines = dict(line.split(maxsplit=1) for line in output(*COMMAND, "config").splitlines())
    assert lines.pop("version") == runtime.__version__
    assert lines["includedir"] == str(HOME / "include")
    assert [lines[name] for name in lines] == config(*(f"--{name}" for name in lines))
    assert all(Path(folder).is_dir() for folder in lines.values())


def test_static_needs_libs(packer) -> None:
    """Alone it would print nothing."""
    assert "--static needs --libs" in refused(packer("config", "--static"), 2)


def test_pkg_config_finds_the_library(source, tmp_path) -> None:
    """The file is relocatable: its folders are relative to it."""
    needs.program("pkg-config")
    shutil.copytree(HOME / "lib", tmp_path / "moved/lib")
    shutil.copytree(HOME / "include", tmp_path / "moved/include")
    (folder,) = config("--pkgconfigdir")
    for where in (folder, str(tmp_path / "moved/lib/pkgconfig")):
        asked = ["pkg-config", "--cflags", "--libs"]
        flags = output(*asked, "dso >= 0.1", PKG_CONFIG_PATH=where).split()
        program = tmp_path / "program"
        output("cc", source, *flags, "-o", program)
        assert output(program, LD_LIBRARY_PATH=str(Path(where).parent)) == PRINTED
    version = output("pkg-config", "--modversion", "dso", PKG_CONFIG_PATH=folder)
    assert version == PRINTED


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A CMake project, built."""
    needs.program("cmake")
    folder = tmp_path_factory.mktemp("project")
    (folder / "CMakeLists.txt").write_text(CMAKE)
    (folder / "main.c").write_text(VERSION)
    (folder / "add.c").write_text(ADD)
    (folder / "packer.toml").write_text(PROJECT)
    (cmake_folder,) = config("--cmakedir")
    program = Path(sys.executable).with_name("packer")
    options = [f"-Ddso_DIR={cmake_folder}", f"-DDSO_PACKER={program}"]
    output("cmake", "-S", folder, "-B", folder / "build", *options)
    output("cmake", "--build", folder / "build")
    return folder


@pytest.mark.parametrize("program", ["app", "alone"])
def test_cmake_builds_programs(program, built) -> None:
    """With dso::dso and dso::static."""
    assert output(built / "build" / program) == PRINTED


@pytest.mark.parametrize("name", ["model", "described"])
def test_cmake_packs_a_library(name, built) -> None:
    """From sources, or as packer.toml describes it."""
    assert runtime.load(built / f"build/{name}.so")["add"](40, 2) == 42


def test_cmake_packs_a_library_again_if_a_source_changed(built) -> None:
    """And not otherwise."""
    library = built / "build/described.so"
    output("cmake", "--build", built / "build")
    before = library.stat().st_mtime_ns
    os.utime(built / "add.c")
    output("cmake", "--build", built / "build")
    assert library.stat().st_mtime_ns > before


def test_cmake_refuses_a_newer_version(built, tmp_path) -> None:
    """The version file compares."""
    text = CMAKE.replace("find_package(dso 0.1", "find_package(dso 99")
    (tmp_path / "CMakeLists.txt").write_text(text)
    command = ["cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-Ddso_DIR={HOME}/lib/cmake/dso"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode != 0
    assert f"version: {runtime.__version__}" in ran.stderr
