"""Undefined symbols: without a provider they are refused, and no good library is replaced."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

import runtime

from ...support import needs
from ...support.command_line import done, refused
from ...support.paths import C_SOURCES

ZLIB = "int deflate(void *, int); int squeeze(int x) { return deflate((void *)0, x); }\n"
NEEDS_ZLIB = "undefined symbols: deflate (needed by squeeze in z.c), expected a library of the link"
PYTHON_H = f"-I{sysconfig.get_paths()['include']}"
LINKERS = ["bfd", "gold", "lld", "mold"]


@pytest.fixture
def write(tmp_path):
    """``write(name, text)``: a file in the folder of the commands."""

    def write_file(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write_file


def noted(run: subprocess.CompletedProcess[str]) -> str:
    """Return the notes of a successful run."""
    assert run.returncode == 0, run.stderr
    assert all(line.startswith("packer: note: ") for line in run.stderr.splitlines())
    return run.stderr


def loads(path: Path) -> subprocess.CompletedProcess[str]:
    """Open a library in a new process, by the system's loader alone."""
    code = f"import ctypes; ctypes.CDLL({os.fspath(path)!r})"
    return subprocess.run(["python3", "-c", code], capture_output=True, text=True, check=False)


def test_a_forgotten_library_is_refused_and_named(packer, write, tmp_path) -> None:
    """The good old output stays; the option that the message names is all that is missing."""
    needs.header("zlib.h", "zlib1g-dev")
    write("z.c", "int squeeze(int x) { return x; }\n")
    done(packer("export", "z.so", "z.c"))
    before = (tmp_path / "z.so").read_bytes()
    write("z.c", ZLIB)
    message = refused(packer("export", "z.so", "z.c"))
    assert f"z.so: {NEEDS_ZLIB}" in message
    assert "; add -lz, which defines deflate; add --allow-undefined=deflate if " in message
    assert (tmp_path / "z.so").read_bytes() == before
    done(packer("export", "z.so", "z.c", "-lz"))
    assert runtime.load(tmp_path / "z.so")["squeeze"](1) == -2  # Z_STREAM_ERROR


@pytest.mark.parametrize("linker", LINKERS)
def test_each_linker_gives_the_same_refusal(packer, write, linker) -> None:
    """The function is read from the object, not from the words of a linker."""
    needs.linker(linker)
    write("z.c", ZLIB.replace("deflate", "missing"))
    message = refused(packer("export", "z.so", "z.c", f"--option=-fuse-ld={linker}"))
    assert "undefined symbols: missing (needed by squeeze in z.c), expected" in message


@pytest.mark.parametrize(
    ("code", "symbol", "place"),
    [
        ("extern int lost; int get(void) { return lost; }", "lost", "get in a.c"),
        ("int lost(void); static int in(void) { return lost(); } int (*p)(void) = in;", "lost", ""),
        ("int lost(void); int (*table[])(void) = {lost}; int f(void) {return 1;}", "lost", "table"),
        ("extern __thread int lost; int get(void) { return lost; }", "lost", "get in a.c"),
    ],
    ids=["variable", "static function", "table", "thread-local"],
)
def test_functions_and_variables_of_each_kind_are_refused(packer, write, code, symbol, place):
    """A table that holds the address needs it as a function does."""
    write("a.c", code)
    message = refused(packer("export", "a.so", "a.c"))
    assert f"undefined symbols: {symbol} (needed by {place}" in message


def test_link_time_optimisation_names_the_file(packer, write) -> None:
    """Such objects have no relocations."""
    write("z.c", ZLIB.replace("deflate", "missing"))
    message = refused(packer("export", "z.so", "z.c", "--option=-flto"))
    assert "undefined symbols: missing (needed by" in message


def test_misspelled_names_get_near_names(packer, write) -> None:
    """Symbols of the user's own code, and of the libraries of the link."""
    code = "int my_sum(int a) { return a; } int my_smu(int); int prinft(const char *, ...);"
    write("a.c", f'{code} int f(int a) {{ return my_smu(a) + prinft("%d", a); }}')
    message = refused(packer("export", "a.so", "a.c"))
    assert "; near names of my_smu: 'my_sum'; near names of prinft: 'printf'" in message


def test_a_c_name_that_cpp_defines_gets_the_advice(packer, write) -> None:
    """The linker sees another name."""
    write("a.c", "int twice(int); int f(int a) { return twice(a); }")
    write("b.cc", "int twice(int a) { return 2 * a; }")
    message = refused(packer("export", "a.so", "a.c", "b.cc", "--function", "f"))
    assert (
        'twice is defined with C++ linkage in b.cc: put extern "C" before its definition' in message
    )


def test_objects_archives_and_tars_are_searched_too(packer, write, tmp_path) -> None:
    """`packer link` makes the same check as an export."""
    write("z.c", ZLIB.replace("deflate", "missing"))
    subprocess.run(["cc", "-fPIC", "-c", "z.c", "-o", "z.o"], cwd=tmp_path, check=True)
    subprocess.run(["ar", "rcs", "z.a", "z.o"], cwd=tmp_path, check=True)
    for name in ("z.o", "z.a"):
        message = refused(packer("export", "z.so", name, "--function", "squeeze=int(int)"))
        assert f"missing (needed by squeeze in {name})" in message
    (tmp_path / "z.a").rename(tmp_path / "libown.a")
    write("a.c", "int squeeze(int); int f(int a) { return squeeze(a); }")
    message = refused(packer("export", "a.so", "a.c", "-L.", "-lown"))
    assert "missing (needed by squeeze in libown.a)" in message
    done(packer("export", "z.tar", "z.c"))
    assert "missing (needed by squeeze" in refused(packer("link", "z.tar", "-o", "z.so"))
    assert "must provide missing" in noted(
        packer("link", "z.tar", "-o", "z.so", "--allow-undefined=miss*")
    )


def test_allowed_symbols_are_listed_and_others_refused(packer, write, tmp_path) -> None:
    """Alone the option allows all; it never takes the next argument as its pattern."""
    write("a.c", "int cu_a(void); int other(void); int f(void) { return cu_a() + other(); }")
    message = refused(packer("export", "a.so", "a.c", "--allow-undefined=cu_*"))
    assert "undefined symbols: other (needed by f in a.c)" in message
    for words in (["--allow-undefined"], ["--allow-undefined=cu_*", "--allow-undefined=other"]):
        note = "packer: note: the process that loads it must provide cu_a, other, as "
        said = noted(packer("export", *words, "a.so", "a.c"))
        assert said == f"{note}--allow-undefined says\n"
    assert "undefined symbol" in loads(tmp_path / "a.so").stderr


def test_packer_toml_has_the_patterns(packer, write) -> None:
    """As `allow_undefined` beside the options of the link."""
    write("a.c", "int host_call(void); int f(void) { return host_call(); }")
    module = '[module.a]\nkind = "c"\nsources = ["a.c"]\nfunctions = "auto"\n'
    write("packer.toml", f'[library]\noutput = "a.so"\nallow_undefined = ["host_*"]\n{module}')
    assert "must provide host_call, as --allow-undefined says" in noted(packer("export"))
    write("packer.toml", f'[library]\noutput = "a.so"\n{module}')
    assert "host_call (needed by f in a.c)" in refused(packer("export"))


def test_weak_symbols_are_nobody_s_duty(packer, write, tmp_path) -> None:
    """The loader leaves them NULL."""
    write("a.c", "__attribute__((weak)) int maybe(void); int f(void) { return maybe != 0; }")
    done(packer("export", "a.so", "a.c"))
    assert runtime.load(tmp_path / "a.so")["f"]() == 0


def test_libraries_of_needed_libraries_define_symbols(packer, write, tmp_path) -> None:
    """As ld.so searches: in all libraries that the library loads, directly or not."""
    deep, near = write("deep.c", "int deep(void) { return 7; }"), write("near.c", "int near;")
    shared = ["cc", "-shared", "-fPIC", "-Wl,-rpath,$ORIGIN", "-Wl,--no-as-needed", "-L."]
    subprocess.run([*shared, deep, "-o", "libdeep.so"], cwd=tmp_path, check=True)
    subprocess.run([*shared, near, "-o", "libnear.so", "-ldeep"], cwd=tmp_path, check=True)
    write("a.c", "int deep(void); extern int near; int f(void) { return deep() + near; }")
    words = ["-L.", "-lnear", "--option=-Wl,-rpath,$ORIGIN"]
    done(packer("export", "a.so", "a.c", *words))
    assert runtime.load(tmp_path / "a.so")["f"]() == 7


def test_a_library_that_no_loader_finds_is_noted(packer, write, tmp_path) -> None:
    """With the option that helps; a load of the first library fails, one of the next does not."""
    (tmp_path / "lib").mkdir()
    library = write("far.c", "int far(void) { return 5; }")
    command = ["cc", "-shared", "-fPIC", library, "-o", "lib/libfar.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    write("a.c", "int far(void); int f(void) { return far(); }")
    said = noted(packer("export", "a.so", "a.c", "-Llib", "-lfar"))
    place = tmp_path / "lib"
    assert f"note: needed library libfar.so: no loader searches {place}; " in said
    assert f"add --option=-Wl,-rpath,{place}; or put it beside the library, and add " in said
    assert "libfar.so" in loads(tmp_path / "a.so").stderr
    words = ["-Llib", "-lfar", f"--option=-Wl,-rpath,{place}"]
    done(packer("export", "a.so", "a.c", *words))
    assert runtime.load(tmp_path / "a.so")["f"]() == 5


def test_python_s_c_api_is_what_the_process_provides(packer, write, tmp_path) -> None:
    """A C extension calls it, as what Cython writes does; Python loads the library."""
    needs.header(f"{sysconfig.get_paths()['include']}/Python.h", "python3-dev")
    write(
        "ext.c",
        "#include <Python.h>\nlong answer(void) { PyObject *o = PyLong_FromLong(42);"
        " long n = PyLong_AsLong(o); Py_DECREF(o); return n; }\n",
    )
    run = packer("export", "ext.so", "ext.c", PYTHON_H, "--function", "answer=long(void)")
    note = "note: the process that loads it must provide symbols of Python: PyLong_AsLong, "
    assert note in noted(run)
    assert runtime.load(tmp_path / "ext.so")["answer"]() == 42


def test_functions_of_tvm_are_what_the_process_provides(packer, tmp_path) -> None:
    """Symbols of an object with TVM's names; runtime.load binds the ones that the core has."""
    source = C_SOURCES / "undefined.c"
    include = f"-I{Path(runtime.__file__).parent / 'include'}"
    for words, end in (((), "; runtime.load does\n"), (("-DMORE",), "\n")):
        compiler = ["cc", "-fPIC", "-c", include, *words, str(source), "-o", "t.o"]
        subprocess.run(compiler, cwd=tmp_path, check=True)
        said = noted(packer("export", "t.so", "t.o"))
        note = "packer: note: the process that loads it must provide symbols of TVM: TVMFFIEnvMod"
        assert said.startswith(note)
        assert said.splitlines(keepends=True)[0].endswith(end)
    assert "does" not in said


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("option", ["--coverage", "-fsanitize=address", "-fsanitize=undefined"])
def test_run_times_of_sanitizers_and_gcov_are_not_refused(
    packer, write, tmp_path, compiler, option
) -> None:
    """With the option at the link or not: the program or LD_PRELOAD has them."""
    needs.program(compiler)
    write("a.c", "int f(int *p, int i) { return p[i] + i; }")
    subprocess.run([compiler, "-fPIC", "-c", option, "a.c", "-o", "a.o"], cwd=tmp_path, check=True)
    environment = {**os.environ, "CC": compiler, "CXX": ""}
    function = ["--function", "f=int(int *p, int i)"]
    said = noted(packer("export", "a.so", "a.o", *function, env=environment))
    assert "must provide symbols of a sanitizer or profiler: " in said
    words = [*function, f"--option={option}"]
    noted(packer("export", "a.so", "a.o", *words, env=environment))


@pytest.mark.parametrize("machine", ["aarch64", "riscv64"])
def test_the_c_library_of_another_machine_is_read(packer, write, tmp_path, machine) -> None:
    """It is that of the cross compiler."""
    needs.program(f"{machine}-linux-gnu-gcc")
    write("a.c", '#include <stdio.h>\nint f(int x) { return printf("%d", x); }')
    target = f"--target={machine}-linux-gnu"
    done(packer("export", "a.so", "a.c", target, "--option=-nostdlib"))
    write("a.c", "int lost(void); int f(int x) { return lost() + x; }")
    assert "lost (needed by f in a.c)" in refused(packer("export", "a.so", "a.c", target))


def test_musl_has_no_versions(packer, write, monkeypatch) -> None:
    """Its library is the loader."""
    needs.program("musl-gcc")
    monkeypatch.setenv("CC", "musl-gcc")
    monkeypatch.delenv("CXX", raising=False)
    write("a.c", '#include <stdio.h>\nint f(int x) { return printf("%d", x); }')
    done(packer("export", "a.so", "a.c"))
    write("a.c", "int lost(void); int f(int x) { return lost() + x; }")
    assert "lost (needed by f in a.c)" in refused(packer("export", "a.so", "a.c"))


def test_what_cannot_be_known_is_noted(packer, write, tmp_path) -> None:
    """A needed library that is gone after the link may define the symbol."""
    library = write("gone.c", "int gone(void) { return 1; }")
    shared = ["cc", "-shared", "-fPIC"]
    command = [*shared, library, "-Wl,-soname,libgone.so.9", "-o", "libgone.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    write("a.c", "int gone(void); int lost(void); int f(void) { return gone() + lost(); }")
    said = noted(packer("export", "a.so", "a.c", "-L.", "-lgone"))
    assert "note: needed library libgone.so.9: not found; install it before a load" in said
    where = "libgone.so.9, of the target, cannot be read here"
    assert f"note: cannot tell whether a library defines gone, lost: {where}" in said
