"""An object is used again exactly if compiling would make the same one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from packer.toolchain.build import building
from packer.toolchain.compilation import Compilation, compile_sources
from packer.toolchain.compiler import compilers
from runtime.error import ToolchainError

from ...support import needs
from ..compilers import output_of, program, write

pytestmark = pytest.mark.usefixtures("no_compiler_variables")
CODE = '#include <stdint.h>\n#include "size.h"\nint64_t f(void) { return SIZE; }\n'
Compiled = tuple[bool, bytes]
Compile = Callable[..., Compiled]


@pytest.fixture(autouse=True)
def objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cache."""
    monkeypatch.setenv("PACKER_CACHE", str(tmp_path / "objects"))
    return tmp_path / "objects"


def settle() -> None:
    """Wait until files that were just written are older than a compilation that starts now."""
    time.sleep(0.03)


@pytest.fixture
def headers(tmp_path: Path) -> Path:
    """A folder with a header that `CODE` includes."""
    folder = tmp_path / "headers"
    folder.mkdir()
    write(folder / "size.h", "#define SIZE 3\n")
    settle()
    return folder


@pytest.fixture
def compiled(tmp_path: Path, headers: Path) -> Compile:
    """``compiled(code)``: whether the object was in the cache, and its bytes."""

    def compiled(
        code: str = CODE,
        options: Sequence[str] = (),
        *,
        cc: str | None = None,
        include: Sequence[Path] = (headers,),
        private: str = "private",
        start: Path = tmp_path,
        language: str = "c",
        show: Callable[[str], None] | None = None,
    ) -> Compiled:
        folder = tmp_path / private
        folder.mkdir(exist_ok=True)
        source = write(folder / f"lib0.{language}", code)
        found = []
        job = Compilation(source, folder / "lib0.o", language, tuple(options), tuple(include))
        with building(start, show=show, counted=lambda _done, _all, cached: found.append(cached)):
            (made,) = compile_sources([job], cwd=folder, find=compilers(cc))
        assert sorted(path.name for path in folder.iterdir()) == sorted([source.name, made.name])
        return bool(found[-1]), made.read_bytes()

    return compiled


def test_second_compilation_runs_no_program(compiled: Compile, headers: Path) -> None:
    """Neither the compiler nor the preprocessor; the object is the same."""
    started = []
    sys.addaudithook(lambda event, _: started.append(event) if event == "subprocess.Popen" else 0)
    is_cached, made = compiled()
    assert not is_cached
    assert started
    started.clear()
    assert compiled() == (True, made)
    assert not started


def test_object_is_the_one_without_the_cache(compiled: Compile, monkeypatch) -> None:
    """The list of headers that the cache asks for leaves no trace in the object."""
    for options in ([], ["-g"], ["-flto"], ["-O3", "-g3", "-ggdb"]):
        first, second = compiled(options=options), compiled(options=options)
        assert [first[0], second[0]] == [False, True]
        with monkeypatch.context() as patch:
            patch.setenv("PACKER_CACHE", "off")
            off = compiled(options=options)
        assert off == (False, first[1]) == (False, second[1])


def test_each_input_counts(compiled: Compile, headers: Path) -> None:
    """The text, an option, a header; the former inputs find the former object."""
    compiled()
    assert not compiled(CODE + "\n")[0]
    assert not compiled(options=["-O3"])[0]
    assert not compiled(options=["-DSIZE_=1"])[0]
    assert not compiled(options=["-std=gnu11"])[0]
    write(headers / "size.h", "#define SIZE 4\n")
    settle()
    assert not compiled()[0]
    assert compiled()[0]
    write(headers / "size.h", "#define SIZE 3\n")
    assert compiled()[0]
    (headers / "size.h").unlink()
    with pytest.raises(ToolchainError, match=r"size\.h"):
        compiled()


def test_header_that_is_found_first_counts(compiled: Compile, headers: Path, tmp_path) -> None:
    """A new file in an earlier folder, even one that was missing, replaces the header."""
    early = tmp_path / "early"
    include = (early, headers)
    first = compiled(include=include)
    assert compiled(include=include)[0]
    early.mkdir()
    assert compiled(include=include)[0]
    write(early / "size.h", "#define SIZE 5\n")
    settle()
    is_cached, made = compiled(include=include)
    assert not is_cached
    assert made != first[1]
    (early / "size.h").unlink()
    assert compiled(include=include) == (True, first[1])


def test_question_for_a_header_counts(compiled: Compile, headers: Path) -> None:
    """``__has_include`` depends on a file that was not read."""
    code = "#if __has_include(<more.h>)\nint f;\n#else\nlong f;\n#endif\n"
    first = compiled(code)
    assert compiled(code) == (True, first[1])
    write(headers / "more.h", "")
    settle()
    is_cached, made = compiled(code)
    assert not is_cached
    assert made != first[1]


def test_name_that_a_macro_makes_counts(compiled: Compile, headers: Path, tmp_path) -> None:
    """So does a header whose name is in no text."""
    code = "#define NAME(x) <x.h>\n#include NAME(size)\nint f = SIZE;\n"
    early = tmp_path / "early"
    early.mkdir()
    include = (early, headers)
    first = compiled(code, include=include)
    assert compiled(code, include=include)[0]
    write(early / "size.h", "#define SIZE 5\n")
    settle()
    assert compiled(code, include=include)[1] != first[1]


def test_header_before_the_source_counts(compiled: Compile, headers: Path, tmp_path) -> None:
    """``-include`` reads one, relative to the folder in which compilers start."""
    options = ["-include", "always.h"]
    write(tmp_path / "always.h", "#define ALWAYS 1\n")
    settle()
    code = "int f = ALWAYS;\n"
    compiled(code, options)
    assert compiled(code, options)[0]
    write(tmp_path / "always.h", "#define ALWAYS 2\n")
    assert not compiled(code, options)[0]


def test_precompiled_header_counts(compiled: Compile, headers: Path) -> None:
    """GCC reads ``size.h.gch`` instead of ``size.h``."""
    compiled()
    assert compiled()[0]
    write(headers / "size.h.gch", "not one, so it is skipped")
    settle()
    assert not compiled()[0]


def test_variables_of_the_compiler_count(compiled: Compile, headers, monkeypatch, tmp_path) -> None:
    """Folders of headers, and the date."""
    first = compiled()
    for name in ("CPATH", "C_INCLUDE_PATH"):
        with monkeypatch.context() as patch:
            patch.setenv(name, str(tmp_path / "nothing"))
            assert not compiled()[0]
            assert compiled()[0]
    code = "const char *f(void) { return __DATE__; }\n"
    compiled(code)
    assert compiled(code)[0]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    is_cached, made = compiled(code)
    assert not is_cached
    assert b"Nov 14 2023" in made
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert compiled() == (True, first[1])


def test_variable_for_a_second_output_switches_it_off(
    compiled: Compile, monkeypatch, tmp_path
) -> None:
    """The compiler writes a file that no object contains."""
    monkeypatch.setenv("DEPENDENCIES_OUTPUT", str(tmp_path / "made.d"))
    for _ in range(2):
        assert not compiled()[0]
        (tmp_path / "made.d").unlink()


def copy_of_gcc(folder: Path) -> Path:
    """A compiler of which other processes have no copy."""
    folder.mkdir()
    return Path(shutil.copy2(os.path.realpath(shutil.which("gcc") or ""), folder / "gcc"))


def test_compiler_counts(compiled: Compile, monkeypatch, tmp_path) -> None:
    """Another release at the same path makes other objects."""
    parts = Path(output_of("gcc", "-print-prog-name=cc1").strip()).parents[2]
    monkeypatch.setenv("GCC_EXEC_PREFIX", f"{parts}/")  # a copied driver searches its own folder
    gcc = copy_of_gcc(tmp_path / "bin")
    compiled(cc=str(gcc))
    assert compiled(cc=str(gcc))[0]
    os.utime(gcc, (1, 1))
    assert not compiled(cc=str(gcc))[0]
    assert compiled(cc=str(gcc))[0]


def test_assembler_counts(compiled: Compile, monkeypatch, tmp_path) -> None:
    """It is a separate program, which PATH names."""
    folder = tmp_path / "bin"
    folder.mkdir()
    path = Path(shutil.copy2(os.path.realpath(shutil.which("as") or ""), folder / "as"))
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    compiled()
    assert compiled()[0]
    os.utime(path, (1, 1))
    assert not compiled()[0]


def test_processor_of_this_machine_counts(compiled: Compile, monkeypatch, tmp_path) -> None:
    """``-march=native`` means what the compiler makes of it today."""
    options = ["-march=native"]
    if subprocess.run(
        ["gcc", *options, "-E", "-x", "c", "/dev/null"], capture_output=True
    ).returncode:
        needs.system("a native processor", "gcc knows none for this machine")
    compiled(options=options)
    assert compiled(options=options)[0]
    assert not compiled(options=["-mtune=native"])[0]


@pytest.mark.parametrize(
    "options",
    [
        ["@options"],
        ["-fplugin=nothing.so"],
        ["-fprofile-use=nothing"],
        ["-save-temps"],
        ["-gsplit-dwarf"],
        ["-Wa,-adhln"],
        ["-Wp,-DA"],
        ["-specs=nothing"],
        ["-fdump-tree-all"],
        ["-frecord-gcc-switches"],
        ["-MD"],
        ["-wrapper", "env"],
        ["-I-"],
        ["-I=include"],
    ],
    ids=" ".join,
)
def test_options_with_other_files_are_not_understood(options: list[str]) -> None:
    """They may read a file that is on no list, or write a second one."""
    from packer.toolchain.cache.options import read_options

    assert read_options(["-O3", *options, "-g"]) is None


def test_usual_options_are_understood() -> None:
    """The options of a release, of a debug build, of CPU levels, and of linkers."""
    from packer.toolchain.cache.options import read_options

    words = "-O3 -g -g3 -Wall -Wextra -Werror=shadow -std=c++20 -DA=1 -D B -UNAME -Iinclude -I x"
    words += (
        " -isystem/usr/x -iquote y -include z.h -march=x86-64-v4 -msse4.1 -mcpu=neoverse-n1+sve"
    )
    words += (
        " -fopenmp -fno-exceptions -fvisibility=hidden -ffast-math -fsanitize=address,undefined"
    )
    words += " -flto=auto -ffile-prefix-map=/a=b -pthread -pipe -w -ansi -lm -L/lib -Wl,-z,now"
    words += " --sysroot=/x --target=aarch64-linux-gnu -nostdinc -static-libgcc"
    found = read_options(words.split())
    assert found is not None
    assert found.forced == ("z.h",)
    assert found.folders == ("include", "x", "/usr/x", "y")
    assert "--sysroot=/x" in found.searching


def test_other_programs_are_not_understood(compiled: Compile, tmp_path) -> None:
    """A script, ccache or another compiler may do anything."""
    script = program(tmp_path / "gcc", 'exec /usr/bin/gcc "$@"\n')
    commands = [script]
    if shutil.which("ccache"):
        commands.append("ccache gcc")
    for command in commands:
        assert not compiled(cc=command)[0]
        assert not compiled(cc=command)[0]


@pytest.mark.parametrize(
    "directive",
    [
        r'"\n.incbin \"data.bin\"\n"',
        r'"\n.INCBIN \"data.bin\"\n"',
        r'"\n.IncBin \"data.bin\"\n"',
        r'"\n.inc" "bin \"data.bin\"\n"',
        '"\\n.inc" /* and */\n  "bin \\"data.bin\\"\\n"',
        r'"\n." "incbin \"data.bin\"\n"',
        r'"\n.in" "cbin \"data.bin\"\n"',
        r'"\n\x2e\x69ncbin \"data.bin\"\n"',
        r'"\n.\151ncbin \"data.bin\"\n"',
        r'"\n" TEXT(.inc) "bin \"data.bin\"\n"',
        r'"\n.macro m a\n.i\\a \"data.bin\"\n.endm\nm ncbin\n"',
        '"\\n.inc\\\nbin \\"data.bin\\"\\n"',
        r'"\n.include \"data.bin\"\n"',
        r'"\n.INC" "LUDE \"data.bin\"\n"',
    ],
)
def test_file_that_the_assembler_reads_is_not_understood(
    compiled: Compile, tmp_path, directive
) -> None:
    """``.incbin`` names it in the text of the program, in any spelling."""
    write(tmp_path / "data.bin", "\n")
    code = f'#define TEXT(x) #x\n__asm__(".data" {directive});\n'
    assert not compiled(code)[0]
    assert not compiled(code)[0]


def test_other_assembler_is_cached(compiled: Compile) -> None:
    """So are names and words that only look like it."""
    code = """
    struct ring { int i, inc; };
    static const char *const text = "Done." "the file.inc" "\\x1b[0m";
    int add(struct ring *r) { __asm__ volatile("nop\\n\\t.p2align 4" ::: "memory");
      return r->i + r->inc + (text != 0); }
    """
    assert not compiled(code)[0]
    assert compiled(code)[0]


def test_header_that_changes_during_the_compilation(compiled: Compile, headers, tmp_path) -> None:
    """An object of which no one knows what it was made of is not kept."""
    write(headers / "size.h", "#define SIZE 6\n")  # younger than the start of the compilation
    write(tmp_path / "future.h", "")
    changed = time.time() + 3
    first = compiled()
    assert time.time() < changed
    settle()
    assert compiled()[1] == first[1]


def test_folders_do_not_count_unless_they_are_in_the_object(compiled: Compile, tmp_path) -> None:
    """Debug information, and other things that may name them, are compiled in each folder."""
    (tmp_path / "other").mkdir()
    elsewhere = {"start": tmp_path / "other", "private": "another"}
    first = compiled()
    assert compiled(**elsewhere) == (True, first[1])
    compiled(options=["-g"])
    assert not compiled(options=["-g"], **elsewhere)[0]
    code = "const char *f(void) { return __FILE__; }\n"
    first = compiled(code)
    assert compiled(code, **elsewhere) == (True, first[1])


def test_warnings_are_shown_again(compiled: Compile) -> None:
    """With the name that the source has for the user."""
    shown: list[str] = []
    code = "int f(void) { int unused; return 0; }\n"
    for private in ("private", "another"):
        compiled(code, ["-Wall"], show=shown.append, private=private)
    assert len(shown) == 2
    assert "lib0.c:1:" in shown[0]
    assert "unused" in shown[0]
    assert shown[0] == shown[1]


def test_error_is_not_kept(compiled: Compile) -> None:
    """The compiler is run again."""
    for _ in range(2):
        with pytest.raises(ToolchainError, match=r"compiling lib0\.c"):
            compiled("int f(void) { return missing; }\n")


def test_cxx(compiled: Compile) -> None:
    """With its library: hundreds of headers."""
    code = "#include <string>\n#include <vector>\nstd::vector<std::string> f();\n"
    first = compiled(code, language="cc")
    assert compiled(code, language="cc") == (True, first[1])


@pytest.mark.parametrize("cc", ["clang", "aarch64-linux-gnu-gcc"])
def test_other_compilers(cc: str, compiled: Compile) -> None:
    """Clang, and a GCC for another machine; one does not get the other's objects."""
    needs.program(cc)
    compiled()
    first = compiled(cc=cc)
    assert not first[0]
    assert compiled(cc=cc) == (True, first[1])


def test_native_processor_of_clang(compiled: Compile) -> None:
    """As with GCC."""
    needs.program("clang")
    first = compiled(options=["-march=native"], cc="clang")
    assert compiled(options=["-march=native"], cc="clang") == (True, first[1])


def test_several_sources_are_found_one_by_one(tmp_path: Path) -> None:
    """One that changed is compiled, the others are not; the count says so."""
    counted: list[tuple[int, int, int]] = []

    (folder := tmp_path / "private").mkdir()

    def make(texts: Sequence[str]) -> list[str]:
        jobs = []
        for index, text in enumerate(texts):
            source = write(folder / f"lib{index}.c", text)
            jobs.append(Compilation(source, source.with_suffix(".o"), "c"))
        counted.clear()
        with building(tmp_path, counted=lambda *row: counted.append(row)):
            return [output_of("nm", path) for path in compile_sources(jobs, cwd=folder)]

    make(["int a;", "int b;", "int c;"])
    assert counted == [(0, 3, 0), (1, 3, 0), (2, 3, 0), (3, 3, 0)]
    made = make(["int a;", "int d;", "int c;"])
    assert counted == [(2, 3, 2), (3, 3, 2)]
    assert [name in text for name, text in zip([" a", " d", " c"], made, strict=True)] == [True] * 3
    with pytest.raises(ToolchainError, match=r"compiling lib1\.c"):
        make(["int a;", "wrong", "int c;"])
