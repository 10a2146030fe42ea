"""Libraries for other machines and C libraries, made by the real tools and run by a C program."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import packer
import runtime
from packer.target import find_target
from packer.toolchain.cross_search import find_cross_compiler

from ...support import needs
from ...support.compile import INCLUDE
from ...support.paths import C_SOURCES

HOST = C_SOURCES / "open_library.c"
DATA = bytes(range(256)) * 20
DOUBLE = "double(double a, int64_t b)"

C = """
#include <math.h>
#include <stdint.h>
double half(double x);
double f(double a, int64_t b) { return half(2 * (a + (double)b)) + erf(0 * a); }
"""
IR = "define double @half(double %x) {\n  %y = fmul double %x, 0.5\n  ret double %y\n}\n"


class Way(NamedTuple):
    """A target, its compiler, and the runner of its programs: one row of docs/cross.md."""

    target: str
    toolchain: str
    runner: tuple[str, ...]
    host: tuple[str, ...]  # compiles the C program that opens the library


_QEMU_ARM = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")
_QEMU_RISCV = ("qemu-riscv64", "-L", "/usr/riscv64-linux-gnu")
_ARM, _RISCV = ("aarch64-linux-gnu-gcc",), ("riscv64-linux-gnu-gcc",)
WAYS = [
    Way("x86_64-linux-gnu", "own", (), ("gcc",)),
    Way("x86_64-linux-gnu", "clang", (), ("gcc",)),
    Way("x86_64-linux-gnu.2.17", "zig", (), ("gcc",)),
    Way("x86_64-linux-musl", "zig", (), ("musl-gcc",)),
    *(Way("aarch64-linux-gnu", tool, _QEMU_ARM, _ARM) for tool in ("gcc", "clang", "zig")),
    *(Way("riscv64-linux-gnu", tool, _QEMU_RISCV, _RISCV) for tool in ("gcc", "clang", "zig")),
]


@pytest.fixture(params=WAYS, ids=lambda way: f"{way.target}, {way.toolchain}")
def way(request, monkeypatch) -> Way:
    """A toolchain that is here, named in CC where it is not the one that is found first."""
    found: Way = request.param
    programs = [found.host[0], *found.runner[:1]]
    programs += ["clang", "ld.lld"] if found.toolchain == "clang" else []
    for program in programs:
        needs.program(program)
    for variable in ("CC", "CXX"):
        monkeypatch.delenv(variable, raising=False)
    if found.toolchain == "clang":
        monkeypatch.setenv("CC", "clang")
    if found.toolchain == "zig":
        monkeypatch.setenv("CC", f"{needs.zig()} cc")
    return found


@pytest.fixture
def project(tmp_path) -> Path:
    """A folder with C, LLVM IR and a device module, and the packer.toml that makes them a tree."""
    (tmp_path / "f.c").write_text(C)
    (tmp_path / "half.ll").write_text(IR)
    (tmp_path / "k.ptx").write_bytes(DATA)
    (tmp_path / "packer.toml").write_text(
        '[library]\noutput = "lib.so"\n'
        '[module.host]\nkind = "c"\nsources = ["f.c"]\nimports = ["half", "kernels"]\n'
        f'[module.host.functions]\nf = "{DOUBLE}"\n'
        '[module.half]\nkind = "llvm"\nsources = ["half.ll"]\n'
        '[module.kernels]\nkind = "cuda"\nsources = ["k.ptx"]\n'
    )
    return tmp_path


def export(project: Path, *options: str) -> Path:
    """Run the real `packer export` in a project."""
    command = [sys.executable, "-m", "packer", "export", *options]
    run = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return project / "lib.so"


def run_host(library: Path, way: Way) -> tuple[bytes, str]:
    """Open a library by a C program of its target: the blob it shows, and its output."""
    host, blob = library.with_name("host"), library.with_name("blob")
    options = ["-std=c11", "-D_DEFAULT_SOURCE", f"-I{INCLUDE}"]
    subprocess.run([*way.host, *options, HOST, "-o", host, "-ldl"], check=True)
    run = subprocess.run([*way.runner, host, library, blob], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return blob.read_bytes(), run.stdout


def test_c_program_of_the_target_calls_and_reads_the_blob(way, project) -> None:
    """Each row of the table: dlopen, ``__tvm_ffi_f`` (C that calls LLVM's code), the blob."""
    library = export(project, "--target", way.target)
    blob, printed = run_host(library, way)
    assert printed.split()[0] == "42"
    assert DATA in blob
    assert len(blob) == 8 + int.from_bytes(blob[:8], "little")


@pytest.fixture
def riscv() -> Way:
    """A cross GCC and an emulator."""
    for program in ("riscv64-linux-gnu-gcc", "qemu-riscv64"):
        needs.program(program)
    return Way("riscv64-linux-gnu", "gcc", _QEMU_RISCV, _RISCV)


@pytest.mark.parametrize(
    ("embed", "nbytes"), [("llvm", 0), ("llvm", 2 << 20), ("c", 0)], ids=["llvm", "large", "c"]
)
def test_other_embedders_cross_too(embed, nbytes, project, riscv) -> None:
    """LLVM's objects and the compiler's have one floating-point ABI, with payloads of any size."""
    way = riscv
    (project / "k.ptx").write_bytes(DATA + bytes(nbytes))
    blob, printed = run_host(export(project, "--target", way.target, "--embed", embed), way)
    assert printed.split()[0] == "42"
    assert DATA in blob


def test_library_for_an_older_glibc_needs_no_newer_symbol(project) -> None:
    """Zig's -target x86_64-linux-gnu.2.17; the library loads here."""
    needs.zig()
    library = export(project, "--target", "x86_64-linux-gnu.2.17")
    listed = subprocess.run(["readelf", "-VW", library], capture_output=True, text=True, check=True)
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", listed.stdout)}
    assert versions
    assert max(versions) <= (2, 17)
    assert runtime.load(library)["f"](40.0, 2) == 42.0


def test_project_file_states_the_target(project) -> None:
    """``target`` in [library] is used; --target on the command line wins."""
    needs.program("aarch64-linux-gnu-gcc")
    text = (project / "packer.toml").read_text()
    (project / "packer.toml").write_text(
        text.replace("[library]\n", '[library]\ntarget = "aarch64-linux-gnu"\n')
    )
    assert export(project).read_bytes()[18] == 183
    assert export(project, "--target", "x86_64-linux-gnu").read_bytes()[18] == 62


@pytest.mark.parametrize(
    ("target", "machine", "flags", "page"),
    [("x86_64", 62, 0, 4096), ("aarch64", 183, 0, 65536), ("riscv64", 243, 5, 4096)],
)
def test_library_without_host_code_needs_no_compiler(
    target, machine, flags, page, tmp_path, monkeypatch
) -> None:
    """The ELF writer knows each machine: e_flags with RISC-V's double-float ABI, its pages."""
    monkeypatch.setenv("PATH", "/nonexistent")
    for variable in ("CC", "CXX"):
        monkeypatch.delenv(variable, raising=False)
    root = runtime.DeviceModule("cuda", DATA, "ptx", [])
    path = packer.export_library(
        root, tmp_path / "lib.so", build=packer.Build(target=f"{target}-linux-musl")
    )
    data = path.read_bytes()
    assert int.from_bytes(data[18:20], "little") == machine
    assert int.from_bytes(data[48:52], "little") == flags
    assert page < len(data) < 2 * page + len(DATA)


def test_library_without_host_code_is_opened_on_riscv(tmp_path, riscv) -> None:
    """The library runs with the target's C library."""
    root = runtime.DeviceModule("cuda", DATA, "ptx", [])
    packer.export_library(root, tmp_path / "lib.so", build=packer.Build(target=riscv.target))
    blob, printed = run_host(tmp_path / "lib.so", riscv)
    assert printed.split()[0] == "none"
    assert DATA in blob


def test_cross_compiler_is_an_fcompile(tmp_path, riscv) -> None:
    """As in TVM, a compiler with separate options and files states the target of all modules."""
    (tmp_path / "more.c").write_text("double more(void) { return MORE; }\n")
    fcompile = packer.cross_compiler(
        "riscv64-linux-gnu-gcc", options=["-DMORE=2"], add_files=[tmp_path / "more.c"]
    )
    source = "#include <stdint.h>\ndouble more(void), half(double);\n"
    source += "double f(double a, int64_t b) { return half(2 * (a + b)) + MORE - more(); }\n"
    root = packer.CSourceModule(source, functions={"f": DOUBLE})
    root.import_module(packer.LLVMModule(IR))
    root.import_module(runtime.DeviceModule("cuda", DATA, "ptx", []))
    packer.export_library(root, tmp_path / "lib.so", fcompile=fcompile)
    blob, printed = run_host(tmp_path / "lib.so", riscv)
    assert printed.split()[0] == "42"
    assert DATA in blob


# Finding compilers


@pytest.fixture
def nothing_here(monkeypatch) -> None:
    """No compiler on PATH, none named, and no zig."""
    monkeypatch.setenv("PATH", "/nonexistent")
    for variable in ("CC", "CXX"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setitem(sys.modules, "ziglang", None)


@pytest.mark.parametrize(
    ("target", "language", "advice"),
    [
        ("aarch64-linux-gnu", "c", "apt-get install gcc-aarch64-linux-gnu, or PyPI: pip install z"),
        ("riscv64-linux-gnu", "cc", r"apt-get install g\+\+-riscv64-linux-gnu, or PyPI"),
        ("aarch64-linux-musl", "link", "aarch64-linux-musl-gcc, zig; PyPI: pip install ziglang"),
        ("x86_64-linux-gnu.2.17", "c", "selectable glibc; PyPI: pip install ziglang"),
    ],
)
def test_missing_toolchain_names_the_package(target, language, advice, nothing_here) -> None:
    """The error names the searched compilers, and the package to install."""
    with pytest.raises(packer.ToolchainError, match=f"for target {target!r}: .*{advice}"):
        find_cross_compiler(find_target(target), language)


def program(path: Path, says: str) -> str:
    """A compiler that only reports its target."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {says}\n")
    path.chmod(0o755)
    return str(path)


def test_cross_gcc_is_found_by_its_name(tmp_path, nothing_here, monkeypatch) -> None:
    """Any spelling of the triple; a C++ driver links where there is one."""
    gcc = program(tmp_path / "bin" / "aarch64-linux-gnu-gcc", "aarch64-linux-gnu")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    target = find_target("aarch64-unknown-linux-gnu")
    assert find_cross_compiler(target, "c") == find_cross_compiler(target, "link") == (gcc,)
    gxx = program(tmp_path / "bin" / "aarch64-linux-gnu-g++", "aarch64-linux-gnu")
    assert find_cross_compiler(target, "link") == find_cross_compiler(target, "cc") == (gxx,)


def test_clang_without_a_c_library_is_not_taken(tmp_path, nothing_here, monkeypatch) -> None:
    """The compiler is asked whether it finds the headers."""
    for name in ("ld.lld", "clang"):
        program(tmp_path / "bin" / name, "; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    with pytest.raises(packer.ToolchainError, match="clang with lld and a C library"):
        find_cross_compiler(find_target("aarch64-linux-gnu"), "c")
    program(tmp_path / "bin" / "clang", "; exit 0")
    found = find_cross_compiler(find_target("aarch64-linux-gnu"), "c")
    assert found == (f"{tmp_path}/bin/clang", "--target=aarch64-linux-gnu")


def test_compiler_that_cc_names_for_another_target_is_an_error(
    tmp_path, nothing_here, monkeypatch
) -> None:
    """A named compiler is never replaced by another; the message names both."""
    cc = program(tmp_path / "bin" / "my-cc", "x86_64-linux-gnu")
    monkeypatch.setenv("CC", cc)
    text = f"CC names {cc}, which compiles for 'x86_64-linux-gnu', expected 'riscv64-linux-gnu'"
    with pytest.raises(packer.ToolchainError, match=text):
        find_cross_compiler(find_target("riscv64-linux-gnu"), "c")
    assert find_cross_compiler(find_target("x86_64-linux-gnu"), "c") == (cc,)
    with pytest.raises(packer.ToolchainError, match=r"expected 'x86_64-linux-gnu\.2\.17'"):
        find_cross_compiler(find_target("x86_64-linux-gnu.2.17"), "c")


def test_target_that_cc_itself_names_is_kept(tmp_path, nothing_here, monkeypatch) -> None:
    """The target must be the same; zig and clang receive it once."""
    clang = program(tmp_path / "bin" / "clang", "what?")
    monkeypatch.setenv("CC", f"{clang} --target=aarch64-unknown-linux-gnu")
    found = find_cross_compiler(find_target("aarch64-linux-gnu"), "c")
    assert found == (clang, "--target=aarch64-unknown-linux-gnu")
    with pytest.raises(packer.ToolchainError, match="compiles for 'aarch64-unknown-linux-gnu'"):
        find_cross_compiler(find_target("riscv64-linux-gnu"), "c")
    zig_cc = program(tmp_path / "bin" / "zig", "what?")
    monkeypatch.setenv("CC", f"{zig_cc} cc -target x86_64-linux-gnu.2.17")
    found = find_cross_compiler(find_target("x86_64-linux-gnu.2.17"), "c")
    assert found == (zig_cc, "cc", "-target", "x86_64-linux-gnu.2.17")


def test_cxx_must_be_named_where_cc_is(tmp_path, nothing_here, monkeypatch) -> None:
    """Code of two toolchains is refused."""
    monkeypatch.setenv("CC", program(tmp_path / "bin" / "cc", "riscv64-linux-gnu"))
    with pytest.raises(packer.ToolchainError, match="CXX is not set, but CC is"):
        find_cross_compiler(find_target("riscv64-linux-gnu"), "cc")


def test_fcompile_for_another_target_is_an_error(tmp_path) -> None:
    """Two given targets must agree."""
    fcompile = packer.cross_compiler("gcc", get_target_triple=lambda: "aarch64-linux-gnu")
    root = packer.CSourceModule("int f(void) { return 0; }", functions={"f": "int(void)"})
    text = "target 'riscv64-linux-gnu', but the target of fcompile is 'aarch64-linux-gnu'"
    with pytest.raises(packer.ExportError, match=text):
        packer.export_library(
            root,
            tmp_path / "lib.so",
            fcompile=fcompile,
            build=packer.Build(target="riscv64-linux-gnu"),
        )


def test_cxx_code_brings_its_library(tmp_path) -> None:
    """C++ in a static library, linked by the cross driver for C++, or by zig with libc++."""
    needs.program("aarch64-linux-gnu-g++")
    source = "#include <string>\nextern \"C\" int f(int n) { return std::string(n, 'a').size(); }\n"
    root = packer.CSourceModule(source, fmt="cc", functions={"f": "int(int n)"})
    path = packer.export_library(
        root, tmp_path / "lib.so", build=packer.Build(target="aarch64-linux-gnu")
    )
    listed = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True)
    assert "libstdc++" in listed.stdout


def test_zig_leaves_its_cxx_library_out_of_c(tmp_path, monkeypatch) -> None:
    """Building it takes a minute; C++ names in an input ask for it."""
    from packer.toolchain.cross_search import without_cxx_library

    (tmp_path / "c.o").write_bytes(b"\0add\0")
    (tmp_path / "cxx.o").write_bytes(b"\0_ZNSt6stringC1Ev\0")
    (tmp_path / "empty.o").touch()
    linker = ("/x/zig", "c++", "-target", "aarch64-linux-gnu")
    plain = ("/x/zig", "cc", "-target", "aarch64-linux-gnu")
    assert without_cxx_library(linker, [tmp_path / "c.o", tmp_path / "empty.o"]) == plain
    assert without_cxx_library(linker, [tmp_path / "c.o", tmp_path / "cxx.o"]) == linker
    assert without_cxx_library(("/x/g++",), [tmp_path / "c.o"]) == ("/x/g++",)
    clang = ("/x/clang++", "--target=riscv64-linux-gnu")
    assert without_cxx_library(clang, [tmp_path / "c.o"]) == ("/x/clang", *clang[1:])


# Marks of protected code


def features(path: Path) -> str:
    """The property that readelf finds in a library's notes."""
    run = subprocess.run(["readelf", "-nW", path], capture_output=True, text=True, check=True)
    assert run.stderr == ""
    return "".join(re.findall(r"feature: (.*)", run.stdout))


PROTECTED = [
    *(("x86_64-linux-gnu", "-fcf-protection=full", ld, "IBT, SHSTK") for ld in ("bfd", "lld")),
    ("x86_64-linux-gnu", "-fcf-protection=full", "mold", "IBT, SHSTK"),
    ("x86_64-linux-gnu", "-fcf-protection=full", "gold", "IBT, SHSTK"),
    ("aarch64-linux-gnu", "-mbranch-protection=standard", "bfd", "BTI, PAC"),
]


@pytest.mark.parametrize("embed", ["segment", "llvm", "c"])
@pytest.mark.parametrize(("target", "option", "linker", "marks"), PROTECTED)
def test_marks_of_the_inputs_are_kept(target, option, linker, marks, embed, tmp_path) -> None:
    """The objects that packer adds have the marks, so a library has them if the user's code has."""
    if target.startswith("aarch64"):
        needs.program("aarch64-linux-gnu-gcc")
    needs.linker(linker)
    # The C library's start files have no marks in every distribution.
    options = ["-nostartfiles", f"-fuse-ld={linker}"]
    for own, expected in ((option, marks), ("-O1", "")):
        root = packer.CSourceModule(
            "long f(long a) { return a; }", functions={"f": "long(long a)"}, options=[own]
        )
        root.import_module(runtime.DeviceModule("cuda", DATA, "ptx", []))
        path = packer.export_library(
            root,
            tmp_path / "lib.so",
            options=options,
            build=packer.Build(target=target, embed=embed),
        )
        assert features(path) == expected


def test_environment_that_is_not_a_date_is_refused(tmp_path, monkeypatch) -> None:
    """SOURCE_DATE_EPOCH is a number of seconds."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    root = packer.CSourceModule("int f(void) { return 0; }", functions={"f": "int(void)"})
    with pytest.raises(packer.ExportError, match="SOURCE_DATE_EPOCH='yesterday', expected seconds"):
        packer.export_library(root, tmp_path / "lib.so")
