"""Sources are compiled in any number, by any name, for any language."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from packer.toolchain.compilation import Compilation, compile_sources
from packer.toolchain.create import create_shared
from runtime.error import ToolchainError

from ...support import needs
from ..compilers import compile_c, compile_source, output_of, write

pytestmark = pytest.mark.usefixtures("no_compiler_variables")


def test_compiles_position_independent_object(add_c):
    """The defaults are -O2 -fPIC; readelf sees a relocatable object with the function."""
    made = compile_c(add_c)
    assert "REL (Relocatable file)" in output_of("readelf", "-h", made)
    assert " T add" in output_of("nm", made)


def test_language_wins_over_suffix(tmp_path):
    """A C++ source is one whatever its file is called."""
    source = write(tmp_path / "kernel.c", "template <class T> T f(T x);\nint g() { return 1; }\n")
    cwd = tmp_path
    made = compile_source(source, tmp_path / "made.o", language="cc", cwd=cwd)
    assert "_Z1gv" in output_of("nm", made)
    source = write(tmp_path / "kernel.cc", "int class(void) { return 1; }\n")
    made = compile_source(source, tmp_path / "made.o", language="c", cwd=cwd, cc="g++")
    assert " T class" in output_of("nm", made)


def test_options_and_include_reach_the_compiler(tmp_path):
    """Headers are found in include folders, and options come after the defaults."""
    write(tmp_path / "include dir.h", "")
    folder = tmp_path / "a folder"
    folder.mkdir()
    write(folder / "size.h", "#define SIZE 3\n")
    source = write(tmp_path / "a.c", '#include "size.h"\nint f(void) { return SIZE + MORE; }\n')
    assert compile_c(source, include=[folder], options=["-DMORE=1"]).is_file()


@pytest.mark.parametrize("name", ["a b.c", "-o.c", "@file.c", "-Wl,-z.c", "$(x).c", "ü\n'.c"])
def test_hostile_source_names(tmp_path, monkeypatch, name):
    """Names with spaces, a leading dash or at, commas, newlines are only names."""
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("int f(void) { return 1; }\n")
    private = tmp_path / "-private @ dir"
    private.mkdir()
    made = compile_source(Path(name), private / "@made.o", language="c", cwd=private)
    assert " T f" in output_of("nm", made)


def test_non_utf8_source_name(tmp_path):
    """A name that is not text is accepted."""
    source = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.c"))
    assert compile_c(write(source, "int f(void) { return 1; }\n")).is_file()


def test_object_does_not_depend_on_the_private_folder(tmp_path):
    """With -g and __FILE__ the same source in two folders gives the same bytes."""
    made = []
    for name in ("one", "another"):
        (tmp_path / name).mkdir()
        source = write(tmp_path / name / "f.c", "const char *f(void) { return __FILE__; }\n")
        output = source.with_suffix(".o")
        compile_source(source, output, language="c", options=["-g"], cwd=source.parent)
        made.append(output.read_bytes())
    assert made[0] == made[1]


def test_several_sources_keep_their_order(tmp_path):
    """Objects are in the order of their sources, whichever finishes first."""
    jobs = []
    for index in range(6):
        source = write(tmp_path / f"s{index}.c", f"int f{index}(void) {{ return {index}; }}\n")
        jobs.append(Compilation(source, tmp_path / f"o{index}.o", "c"))
    made = compile_sources(jobs, cwd=tmp_path)
    assert made == [job.output for job in jobs]
    assert all(f" T f{index}" in output_of("nm", path) for index, path in enumerate(made))


def test_first_bad_source_is_the_one_named(tmp_path):
    """Of several sources that do not compile the first in order is reported, every time."""
    jobs = []
    for index, text in enumerate(["int a;", "one", "two", "three"]):
        source = write(tmp_path / f"s{index}.c", text)
        jobs.append(Compilation(source, tmp_path / f"o{index}.o", "c"))
    with pytest.raises(ToolchainError, match=r"compiling s1\.c"):
        compile_sources(jobs, cwd=tmp_path)


def test_cuda_source_links_with_nvcc(tmp_path, monkeypatch):
    """A .cu source is compiled and linked by nvcc, which brings the CUDA runtime."""
    nvcc = Path(needs.cuda_tool("nvcc"))
    monkeypatch.setenv("PATH", f"{nvcc.parent}:{os.environ['PATH']}")
    source = write(
        tmp_path / "k.cu",
        "__global__ void k(float *p) { *p = 1; }\n"
        'extern "C" void launch(float *p) { k<<<1, 1>>>(p); }\n',
    )
    create_shared(tmp_path / "k.so", str(source))
    assert " T launch" in output_of("nm", "-D", tmp_path / "k.so")
    assert "SYMBOLIC" in output_of("readelf", "-dW", tmp_path / "k.so")
