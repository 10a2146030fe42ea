"""The same input gives the same bytes: the real export, twice, in surroundings that differ."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ...support import needs

# Each asks for something of its surroundings: folders, the time, names drawn by chance.
SOURCES = {
    "host.c": """\
#include <assert.h>
#include <stdint.h>
#include "parts/where.h"
int64_t f(int64_t a) { assert(a); return a; }
const char *g(int64_t a) { return a ? where() : __DATE__ " " __TIME__ " " __FILE__ __TIMESTAMP__; }
""",
    "parts/where.h": "static const char *where(void) { return __FILE__; }\n",
    "more.cc": """\
#include <cstdint>
namespace { struct Part { int64_t a; int64_t twice() const { return 2 * a; } }; }
extern "C" int64_t h(int64_t a) { static Part part{1}; return part.twice() + a; }
""",
    "third.ll": "define i64 @third(i64 %a) {\n  %b = udiv i64 %a, 3\n  ret i64 %b\n}\n",
    "kernel.ptx": ".target sm_80\n" * 40,
}
PROJECT = """\
[library]
output = "lib.so"
options = {options}
[module.host]
kind = "c"
sources = ["host.c"]
options = {own}
imports = ["third", "kernels"{imports}]
functions = {{ f = "int64_t(int64_t)", g = "const char *(int64_t)" }}
[module.third]
kind = "llvm"
sources = ["third.ll"]
functions = {{ third = "int64_t(int64_t)" }}
[module.kernels]
kind = "cuda"
sources = ["kernel.ptx"]
"""
CXX = """\
[module.more]
kind = "cc"
sources = ["more.cc"]
options = {own}
functions = {{ h = "int64_t(int64_t)" }}
"""


def make_project(folder: Path, options: list[str], own: list[str], *, with_cxx: bool) -> Path:
    """Write the project into a folder, with separate times."""
    if with_cxx:
        needs.program("g++")
    for name, text in SOURCES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        os.utime(folder / name, (len(str(folder)) * 10**7,) * 2)
    imports = ', "more"' if with_cxx else ""
    text = PROJECT.format(options=options, own=own, imports=imports)
    text += CXX.format(own=own) if with_cxx else ""
    (folder / "packer.toml").write_text(text)
    return folder


def other_user() -> list[str]:
    """A command prefix that runs as another user, where the system lets anyone do that."""
    prefix = ["unshare", "--user", "--map-user=1234", "--map-group=1234"]
    is_possible = (
        shutil.which("unshare")
        and not subprocess.run([*prefix, "true"], capture_output=True).returncode
    )
    return prefix if is_possible else []


def surroundings(tmp_path: Path) -> list[dict[str, Any]]:
    """Two: folder, locale, time zone, umask, user, temporary folder, hash seed.

    The folder's name has all allowed characters except "=", which ends it for clang.
    """
    cache = os.environ.get("ZIG_GLOBAL_CACHE_DIR", str(Path.home() / ".cache" / "zig"))
    made = []
    for index, (name, locale, zone, mask) in enumerate(
        [
            ("a", "C", "UTC", 0o022),
            ("another/folder, longer + ü", "tr_TR.UTF-8", "Asia/Tokyo", 0o077),
        ]
    ):
        folder = tmp_path / name
        home = tmp_path / f"home{index}"
        home.mkdir()
        variables = {
            "LC_ALL": locale,
            "LANG": locale,
            "LANGUAGE": locale[:2],
            "TZ": zone,
            "HOME": str(home),
            "TMPDIR": str(home),
            "USER": f"user{index}",
            "PYTHONHASHSEED": str(index + 1),
            "ZIG_GLOBAL_CACHE_DIR": cache,
        }
        made.append({"folder": folder, "variables": variables, "umask": mask})
    return made


def export_twice(
    tmp_path: Path,
    *arguments: str,
    options: list[str] | None = None,
    own: list[str] | None = None,
    with_cxx: bool = True,
    output: str = "lib.so",
    variables: dict[str, str] | None = None,
) -> list[bytes]:
    """Run `packer export` in both surroundings at once."""
    running = []
    for index, where in enumerate(surroundings(tmp_path)):
        folder = make_project(
            where["folder"], options or [], ["-g", *(own or [])], with_cxx=with_cxx
        )
        environment = {**os.environ, **where["variables"], **(variables or {})}
        command = [sys.executable, "-m", "packer", "export", output, *arguments]
        process = subprocess.Popen(
            [*(other_user() if index else []), *command],
            cwd=folder,
            env=environment,
            umask=where["umask"],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        running.append((process, folder / output))
    for process, _ in running:
        _, errors = process.communicate()
        assert process.returncode == 0, errors.decode()
    return [path.read_bytes() for _, path in running]


def check_same(libraries: list[bytes], tmp_path: Path) -> bytes:
    """Assert that both are alike and name none of their folders."""
    one, other = libraries
    assert one == other
    assert os.fsencode(tmp_path) not in one
    assert b".packer-" not in one
    return one


@pytest.mark.parametrize("embed", ["segment", "llvm", "c"])
def test_every_embedder(embed, tmp_path) -> None:
    """With debug information, __FILE__ in source and header, and dates."""
    library = check_same(export_twice(tmp_path, "--embed", embed), tmp_path)
    assert b"./parts/where.h" in library
    assert b"Jan  1 1970 00:00:00" in library


@pytest.mark.parametrize("linker", ["gold", "lld", "mold"])
def test_every_linker(linker, tmp_path) -> None:
    """GNU ld is above."""
    needs.linker(linker)
    check_same(export_twice(tmp_path, options=[f"-fuse-ld={linker}"]), tmp_path)


def test_link_time_optimisation(tmp_path) -> None:
    """GCC draws names by chance, unless it gets a seed."""
    check_same(export_twice(tmp_path, options=["-flto", "-g"], own=["-flto"]), tmp_path)


@pytest.mark.parametrize("target", ["x86_64-linux-gnu", "riscv64-linux-gnu"])
def test_clang(target, tmp_path) -> None:
    """For this machine, and for another with lld."""
    needs.program("clang", "ld.lld", f"{target}-gcc")  # the last brings the C library
    libraries = export_twice(
        tmp_path, "--target", target, with_cxx=False, variables={"CC": "clang", "CXX": "clang++"}
    )
    assert b"Jan  1 1970 00:00:00" in check_same(libraries, tmp_path)


@pytest.mark.parametrize("target", ["x86_64-linux-gnu.2.17", "aarch64-linux-gnu"])
def test_zig(target, tmp_path) -> None:
    """The bytes do not depend on the processor."""
    libraries = export_twice(
        tmp_path,
        "--target",
        target,
        with_cxx=False,
        variables={"CC": f"{needs.zig()} cc", "CXX": ""},
    )
    check_same(libraries, tmp_path)


@pytest.mark.parametrize("output", ["lib.o", "lib.a", "lib.tar"])
def test_outputs_that_are_not_linked(output, tmp_path) -> None:
    """Objects, archives and tars contain no time, user or mode."""
    check_same(export_twice(tmp_path, "--embed", "llvm", output=output), tmp_path)


def test_library_without_host_code(tmp_path) -> None:
    """Only packer writes this output."""
    libraries = []
    for where in surroundings(tmp_path):
        where["folder"].mkdir(parents=True)
        (where["folder"] / "packer.toml").write_text(
            '[library]\noutput = "lib.so"\n[module.k]\nkind = "cuda"\nsources = ["k.ptx"]\n'
        )
        (where["folder"] / "k.ptx").write_text(SOURCES["kernel.ptx"])
        command = [sys.executable, "-m", "packer", "export"]
        environment = {**os.environ, **where["variables"]}
        subprocess.run(command, cwd=where["folder"], env=environment, check=True)
        libraries.append((where["folder"] / "lib.so").read_bytes())
    check_same(libraries, tmp_path)


def test_the_date_is_the_requested_one(tmp_path) -> None:
    """SOURCE_DATE_EPOCH, in compilers that know it and in others."""
    for compiler in ("gcc", "clang"):
        needs.program(compiler)
        folder = tmp_path / compiler
        folder.mkdir()
        variables = {"SOURCE_DATE_EPOCH": "1700000000", "CC": compiler, "CXX": ""}
        libraries = export_twice(folder, variables=variables, with_cxx=False)
        assert b"Nov 14 2023 22:13:20" in check_same(libraries, tmp_path)


def test_saved_files_and_commands_can_be_seen(tmp_path) -> None:
    """``--save-temps`` keeps every file; -v names each that is written, and every command."""
    folder = make_project(tmp_path, [], [], with_cxx=True)
    (folder / "kept").mkdir()
    command = [sys.executable, "-m", "packer", "export", "-v", "--save-temps", "kept"]
    run = subprocess.run(
        [*command, "--embed", "c"], cwd=folder, capture_output=True, text=True, check=True
    )
    (kept,) = (folder / "kept").iterdir()
    names = sorted(path.name for path in kept.iterdir())
    sources = ["devc.c", "glue.cc", "lib0.c", "lib1.o", "lib2.cc"]
    assert names == sorted([*sources, "devc.o", "glue.o", "lib0.o", "lib2.o"])
    *lines, note = run.stderr.splitlines()
    assert note.startswith("packer: note: packer.toml: [module.kernels] sources: kernel.ptx: ")
    for name in sources:
        assert f"  write {kept / name}" in lines
    for name in ("devc.o", "glue.o", "lib0.o", "lib2.o"):
        assert any(f"/{kept.name}/{name}" in line.partition(" -o ")[2] for line in lines)
    assert any(" -shared " in line for line in lines)
    assert lines[-1] == f"  rename {lines[-1].split()[1]} {folder}/lib.so"
