"""The source distributions and wheels: each is whole, small enough, and installs by itself."""

from __future__ import annotations

import json
import subprocess
import sysconfig
import tarfile
import zipfile
from itertools import combinations
from pathlib import Path

from runtime.abi import __version__

from .support import distributions as dist
from .support.native import INCLUDE
from .support.paths import NATIVE, ROOT

EXTRAS = ["numpy", "cuda", "zig", "onnx", "torch", "sign", "sbom", "numba", "trees"]
DEMO = (
    "import json, packer, runtime\n"
    "add = packer.CSourceModule('long add(long a, long b) { return a + b; }',"
    " functions={'add': 'long(long a, long b)'})\n"
    "add.import_module(runtime.MetadataModule())\n"
    "print(json.dumps([runtime.load(packer.export_library(add, 'add.so'))['add'](40, 2),"
    " runtime.__file__]))"
)
# Of a library that DEMO made, in an environment with dso-runtime only.
ALONE = (
    "import sys, runtime\n"
    "print(runtime.load('add.so')['add'](40, 2), runtime.__version__)\n"
    "print([name for name in ('packer', 'llvmlite', 'numpy', 'elftools') if name in sys.modules])"
)


def files_of(wheel: Path) -> dict[str, int]:
    """List the files that a wheel installs, with their sizes."""
    with zipfile.ZipFile(wheel) as archive:
        return {info.filename: info.file_size for info in archive.infolist()}


def test_wheel_of_runtime_has_core_headers_libdso_and_types(wheels) -> None:
    """The files that a user needs beside the Python files are inside."""
    names = files_of(wheels["dso-runtime"]).keys()
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
    } <= names
    assert [n for n in names if n.startswith("runtime/_core.") and n.endswith(".so")]


def test_wheel_of_packer_has_templates_types_and_no_machine_code(wheels) -> None:
    """It is the same for every Python and machine."""
    names = files_of(wheels["dso-packer"]).keys()
    templates = {"packer/templates/glue.h", "packer/templates/glue_array.h"}
    operators = {"packer/operators/conv2d.c", "packer/operators/dso_operators.h"}
    assert {"packer/__init__.pyi", "packer/py.typed"} | templates | operators <= names
    assert wheels["dso-packer"].name == f"dso_packer-{__version__}-py3-none-any.whl"


def test_no_file_belongs_to_two_distributions(wheels) -> None:
    """Otherwise an uninstall of one would take it from the other."""
    for one, other in combinations(wheels.values(), 2):
        assert not files_of(one).keys() & files_of(other).keys()
    tops = {name: {f.split("/")[0] for f in files_of(path)} for name, path in wheels.items()}
    assert tops["dso-runtime"] == {"runtime", f"dso_runtime-{__version__}.dist-info"}
    assert tops["dso-packer"] == {"packer", f"dso_packer-{__version__}.dist-info"}


def test_every_module_of_the_source_is_in_a_wheel(wheels) -> None:
    """A folder that the search for packages missed would fail at the first import."""
    shipped = {name for path in wheels.values() for name in files_of(path)}
    importers = (ROOT / "importers").glob("*/dso_packer_*")
    for folder in (ROOT / "runtime/runtime", ROOT / "packer", *importers):
        sources = {p.relative_to(folder.parent).as_posix() for p in folder.rglob("*.py*")}
        assert {s for s in sources if s.endswith((".py", ".pyi"))} <= shipped


def test_runtime_takes_less_than_2_mb(wheels) -> None:
    """The wheel; and installed, without libdso, which a program in C uses."""
    assert 100_000 < wheels["dso-runtime"].stat().st_size < 2_000_000
    files = files_of(wheels["dso-runtime"])
    libdso = {name for name in files if name.startswith("runtime/lib/")}
    assert 100_000 < sum(files[name] for name in files.keys() - libdso) < 2_000_000
    assert 100_000 < sum(files[name] for name in libdso) < 2_000_000


def test_wheels_state_one_version_and_no_path(wheels) -> None:
    """They may be copied to another machine; of runtime an extra alone needs another package."""
    runtime, packer, *importers = (dist.metadata(wheels[name]) for name in dist.PROJECTS)
    assert runtime["Version"] == packer["Version"] == __version__
    for importer in importers:
        assert importer["Version"] == __version__
        assert importer.get_all("Requires-Dist")[0] == f"dso-packer=={__version__}"
    assert runtime.get_all("Requires-Dist") == ['sigstore<5,>=4.5; extra == "sigstore"']
    required = packer.get_all("Requires-Dist")
    assert f"dso-runtime=={__version__}" in required
    for kind, name in (
        ("numba", "numba"),
        ("onnx", "onnx"),
        ("torch", "onnx[torch]"),
        ("trees", "trees"),
    ):
        assert f'dso-packer-{name}=={__version__}; extra == "{kind}"' in required
    assert any(line.startswith("llvmlite") for line in required)
    assert not [line for line in required if "@" in line]
    assert packer.get_all("Provides-Extra") == EXTRAS


def test_sdist_of_runtime_is_small_and_has_no_links(sdists) -> None:
    """The licence of the project is a link, which the archive replaces by the file."""
    with tarfile.open(sdists["dso-runtime"]) as archive:
        members = archive.getmembers()
    top = f"dso_runtime-{__version__}"
    names = {member.name for member in members}
    assert {
        f"{top}/runtime/abi.py",
        f"{top}/native/scan/crc32.c",
        f"{top}/LICENSE",
    } <= names
    assert not [member.name for member in members if member.issym() or member.islnk()]
    assert not [name for name in names if name.startswith((f"{top}/packer", f"{top}/tests"))]


def test_wheels_run_from_anywhere(wheels, build_environment, tmp_path) -> None:
    """Installed from a folder of wheels, the packages export and load; the command is there."""
    command = ("install", "--force-reinstall", "--no-deps", *wheels.values())
    dist.pip(build_environment, *command, cwd=tmp_path)
    python = build_environment / "bin/python"
    result, home = json.loads(dist.run(python, "-c", DEMO, cwd=tmp_path))
    assert result == 42
    assert Path(home).is_relative_to(build_environment)
    version = dist.run(build_environment / "bin/packer", "--version", cwd=tmp_path)
    assert version.startswith(f"packer {__version__}")


def test_runtime_loads_without_any_other_package(wheels, build_environment, tmp_path) -> None:
    """A library is made in one environment, and runs where nothing but dso-runtime is."""
    command = ("install", "--force-reinstall", "--no-deps", *wheels.values())
    dist.pip(build_environment, *command, cwd=tmp_path)
    dist.run(build_environment / "bin/python", "-c", DEMO, cwd=tmp_path)
    bare = dist.make_bare_environment(tmp_path / "bare")
    find = ("--find-links", wheels["dso-runtime"].parent)
    dist.pip(bare, "install", *find, "dso-runtime", cwd=tmp_path)
    listed = json.loads(dist.pip(bare, "list", "--format=json", cwd=tmp_path))
    assert [entry["name"] for entry in listed] == ["dso-runtime"]
    said = dist.run(bare / "bin/python", "-c", ALONE, cwd=tmp_path)
    assert said == f"42 {__version__}\n[]\n"


def test_free_threaded_python_is_refused_at_build_time(build_environment) -> None:
    """The core relies on the GIL, and a build elsewhere reports that."""
    code = (
        "import runpy, sysconfig\n"
        "sysconfig.get_config_vars()['Py_GIL_DISABLED'] = 1\n"
        "runpy.run_path('setup.py')"
    )
    ran = subprocess.run(
        [build_environment / "bin/python", "-c", code],
        cwd=ROOT / "runtime",
        capture_output=True,
        text=True,
        check=False,
    )
    expected = "dso-runtime: found a free-threaded build of CPython, expected one with the GIL"
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
