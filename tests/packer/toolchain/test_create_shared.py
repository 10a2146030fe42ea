"""create_shared: flags, sources, static libraries, errors of the linker."""

from __future__ import annotations

import ctypes

import pytest

from packer.toolchain.create import create_shared
from packer.toolchain.cross_linker import cross_compiler
from runtime.error import ExportError, ToolchainError

from ..compilers import compile_c, compile_source, output_of, program, write

pytestmark = pytest.mark.usefixtures("no_compiler_variables")


def test_shared_library_has_the_default_flags(tmp_path, add_c):
    """Symbolic, relro, bound at once, no executable stack, no library that is not needed."""
    library = tmp_path / "add.so"
    create_shared(str(library), [str(compile_c(add_c))])
    assert ctypes.CDLL(str(library)).add(40, 2) == 42
    dynamic = output_of("readelf", "-dW", library)
    assert "SYMBOLIC" in dynamic
    assert "NOW" in dynamic
    assert "libm." not in dynamic
    assert "libstdc++" not in dynamic
    segments = output_of("readelf", "-lW", library)
    assert "GNU_RELRO" in segments
    assert [line for line in segments.splitlines() if "GNU_STACK" in line and " RW " in line]


def test_own_gamma_is_called(tmp_path):
    """A function named as one of libm's is the library's own."""
    source = write(
        tmp_path / "g.c",
        "double gamma(double x) { return x + 1; }\ndouble f(double x) { return gamma(x); }\n",
    )
    create_shared(tmp_path / "g.so", source)
    library = ctypes.CDLL(str(tmp_path / "g.so"))
    library.f.restype, library.f.argtypes = ctypes.c_double, [ctypes.c_double]
    assert library.f(41.0) == 42.0


def test_needed_libm_is_linked(tmp_path):
    """-lm is there, at the end, for who needs it."""
    source = write(tmp_path / "e.c", "#include <math.h>\ndouble f(double x) { return erf(x); }\n")
    create_shared(tmp_path / "e.so", [source], cc="gcc")
    assert "libm.so" in output_of("readelf", "-dW", tmp_path / "e.so")


def test_sources_are_compiled_in_place(tmp_path, add_c, monkeypatch):
    """Sources and objects mix; C++ uses its driver, and so its library; no file remains."""
    source = write(
        tmp_path / "s.cpp",
        '#include <string>\nextern "C" int add(int, int);\n'
        'extern "C" int f(int n) { return add(std::string(n, SIGN).size(), 1); }\n',
    )
    monkeypatch.setenv("CC", "gcc")
    create_shared(tmp_path / "s.so", [source, compile_c(add_c)], ["-DSIGN=65"])
    assert ctypes.CDLL(str(tmp_path / "s.so")).f(41) == 42
    assert "libstdc++" in output_of("readelf", "-dW", tmp_path / "s.so")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "add.c", "private", "s.cpp", "s.so",
    ]  # fmt: skip


def test_static_library_with_cxx_inside(tmp_path):
    """An archive of C++ objects links without an option for C++."""
    source = write(tmp_path / "s.cc", '#include <new>\nextern "C" int *f() { return new int; }\n')
    made = compile_source(source, tmp_path / "s.o", language="cc", cwd=tmp_path)
    output_of("ar", "rc", tmp_path / "libs.a", made)
    archive = tmp_path / "libs.a"
    options = ["-Wl,--whole-archive", str(archive), "-Wl,--no-whole-archive"]
    create_shared(tmp_path / "s.so", [], options)
    assert "libstdc++" in output_of("readelf", "-dW", tmp_path / "s.so")


@pytest.mark.parametrize("name", ["a b.o", "-Wl,-z.o", "@file.o", "-o.o"])
def test_hostile_object_names(tmp_path, monkeypatch, add_c, name):
    """Objects are passed by absolute path, so none is taken for an option."""
    monkeypatch.chdir(tmp_path)
    compile_c(add_c).rename(tmp_path / name)
    create_shared("-out @.so", name)
    assert " T add" in output_of("nm", "-D", tmp_path / "-out @.so")


def test_options_are_not_changed(tmp_path, add_c):
    """The caller's lists are as before."""
    objects, options = [str(add_c)], ["-O1"]
    create_shared(tmp_path / "a.so", objects, options=options)
    assert (objects, options) == ([str(add_c)], ["-O1"])


def test_undefined_reference_is_the_line_shown(tmp_path):
    """Of a linker's many lines the one with the cause is shown."""
    source = write(tmp_path / "u.c", "int foo(void);\nint f(void) { return foo(); }\n")
    with pytest.raises(
        ToolchainError,
        match=r"g(cc|\+\+) exited with 1 linking u\.so: .*undefined reference to .foo",
    ):
        create_shared(tmp_path / "u.so", [compile_c(source)], ["-Wl,-z,defs"])
    assert not (tmp_path / "u.so").exists()


def test_missing_folder_of_the_library(tmp_path, add_c):
    """A library in a missing folder is refused before any compile."""
    with pytest.raises(ExportError, match=r"no/a\.so: cannot write: No such file or directory"):
        create_shared(tmp_path / "no" / "a.so", add_c, cc="no-such-cc")


def test_create_shared_states_its_output():
    """The attributes are TVM's."""
    assert create_shared.output_format == "so"
    assert create_shared.object_format == "o"
    assert create_shared.get_target_triple() == output_of("gcc", "-dumpmachine").strip()


def test_compiler_that_does_not_know_its_target(tmp_path):
    """Where -dumpmachine is unknown, or nonsense, there is no triple."""
    for name, script in (("one", "exit 1\n"), ("two", "echo 'what is this?'\n")):
        fcompile = cross_compiler(program(tmp_path / name, script))
        assert fcompile.get_target_triple() is None


@pytest.mark.parametrize("variable", ["CC", "CXX"])
@pytest.mark.parametrize("suffix", ["so", "o", "a", "tar"])
def test_variable_that_names_no_compiler_is_an_error(tmp_path, monkeypatch, variable, suffix):
    """C alone needs no C++ compiler, yet one that is named and fails is not passed over."""
    import packer

    monkeypatch.setenv(variable, "false -m64")
    host = packer.CSourceModule("int one(void) { return 1; }", functions={"one": "int(void)"})
    message = f"^{variable}='false -m64': exited with 1 .*name another one, or unset {variable}$"
    with pytest.raises(ToolchainError, match=message):
        packer.export_library(host, tmp_path / f"one.{suffix}")
    assert list(tmp_path.iterdir()) == []


def test_variable_is_checked_though_nothing_is_compiled(tmp_path, monkeypatch):
    """A tree without host code needs no compiler, but a wrong variable is still an error."""
    import packer
    import runtime

    monkeypatch.setenv("CXX", "false")
    kernels = runtime.DeviceModule("opencl", "kernel void f() {}", "cl", ())
    with pytest.raises(ToolchainError, match="^CXX='false': exited with 1"):
        packer.export_library(kernels, tmp_path / "kernels.so")
