"""The installed libdso.a and libdso.so: their symbols, their size, and programs that link them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import runtime

from ...support import needs

HOME = Path(runtime.__file__).parent
INCLUDE, LIB = HOME / "include", HOME / "lib"
ARCHIVE, SHARED = LIB / "libdso.a", LIB / "libdso.so"
LIBRARIES = ["-pthread", "-ldl", "-lm"]
VERSION = '#include "dso.h"\n#include <stdio.h>\nint main(void) { return puts(dso_version()) < 0; }'
SYSTEM = r"lib(c|m|dl|pthread|gcc_s)\.so\.\d+|ld-(linux|musl)-.*|libc\.musl-.*|libc\.so"
# Names of TVM and of Python: libdso neither exports nor needs them.
FOREIGN = re.compile(r"_*TVM\w*|__tvm\w*|_?Py[A-Z_]\w*|dso_\w*")
# Of dso_packer_system_lib.h: a weak reference to the models that are linked into the program.
WEAK = {"dso_system_lib_symbols"}


def output(*command: str | Path) -> str:
    """Return what a command prints; it must succeed."""
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def symbols(path: Path, *options: str) -> set[str]:
    """Return the names that nm lists."""
    lines = output("nm", "-P", *options, path).splitlines()
    return {line.split()[0].split("@")[0] for line in lines if not line.endswith(":")}


def declared() -> set[str]:
    """Return the functions of dso.h."""
    text = (INCLUDE / "dso.h").read_text()
    return set(re.findall(r"^DSO_API [^;]*?\b(dso_\w+)\(", text, re.MULTILINE))


def link(folder: Path, *arguments: str | Path, compiler: str = "cc") -> Path:
    """Link a program that prints libdso's version."""
    source, program = folder / "version.c", folder / "version"
    source.write_text(VERSION)
    output(compiler, f"-I{INCLUDE}", source, "-o", program, *arguments, *LIBRARIES)
    return program


def test_archive_defines_the_functions_of_the_header_and_nothing_else() -> None:
    """All other names are local."""
    assert symbols(ARCHIVE, "-g", "--defined-only") == declared()


def test_shared_library_exports_the_functions_of_the_header() -> None:
    """Nothing of TVM, although the core has functions of these names."""
    assert symbols(SHARED, "-D", "--defined-only") == declared()


@pytest.mark.parametrize("path", [ARCHIVE, SHARED], ids=lambda path: path.suffix)
def test_undefined_symbols_are_of_the_c_library(path) -> None:
    """The archive links with libc alone (below), and names nothing of Python or of TVM."""
    options = ["-D"] if path == SHARED else []
    undefined = symbols(path, "-u", *options)
    assert "malloc" in undefined or "aligned_alloc" in undefined
    assert not [name for name in undefined - WEAK if FOREIGN.fullmatch(name)]


def test_shared_library_has_a_soname_and_needs_the_c_library() -> None:
    """The file of the soname is beside the file that the linker looks for."""
    dynamic = output("readelf", "-dW", SHARED)
    assert re.findall(r"\(SONAME\).*\[(.*)\]", dynamic) == ["libdso.so.0"]
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    assert needed and all(re.fullmatch(SYSTEM, name) for name in needed)
    assert (LIB / "libdso.so.0").read_bytes() == SHARED.read_bytes()


def test_archive_takes_at_most_420_kb() -> None:
    """Code and data, with the drivers of all devices."""
    text, data = map(int, output("size", "-t", ARCHIVE).splitlines()[-1].split()[:2])
    assert 100_000 < text + data <= 420_000


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_program_that_links_the_archive_exports_nothing_of_it(compiler, tmp_path) -> None:
    """Even with -rdynamic and the whole archive."""
    needs.program(compiler)
    whole = ["-Wl,--whole-archive", ARCHIVE, "-Wl,--no-whole-archive", "-rdynamic"]
    program = link(tmp_path, *whole, compiler=compiler)
    assert output(program) == f"{runtime.__version__}\n"
    names = symbols(program, "-D")
    assert "main" in names
    assert not [name for name in names - WEAK if FOREIGN.fullmatch(name)]


def test_program_links_the_shared_library(tmp_path) -> None:
    """The linker finds libdso.so, and the loader libdso.so.0."""
    program = link(tmp_path, f"-L{LIB}", "-ldso", f"-Wl,-rpath,{LIB}")
    assert output(program) == f"{runtime.__version__}\n"


def test_static_program_links_the_archive(tmp_path) -> None:
    """It links without further libraries; its `dso_load` depends on the C library."""
    program = link(tmp_path, ARCHIVE, "-static", "-Wl,--no-warnings")
    assert output(program) == f"{runtime.__version__}\n"


def test_two_copies_share_no_symbol(tmp_path) -> None:
    """A program and its library have one each, and neither uses the other's."""
    source = tmp_path / "plugin.c"
    source.write_text('#include "dso.h"\nconst void *plugin(void) { return dso_version; }\n')
    plugin = tmp_path / "libplugin.so"
    options = ["-shared", "-fPIC", "-Wl,-z,defs", f"-I{INCLUDE}"]
    output("cc", *options, source, ARCHIVE, "-o", plugin, *LIBRARIES)
    assert symbols(plugin, "-D", "--defined-only") == {"plugin"}
    main = tmp_path / "main.c"
    main.write_text(
        '#include "dso.h"\nconst void *plugin(void);\n'
        "int main(void) { return plugin() == (const void *)dso_version; }\n"
    )
    program = tmp_path / "main"
    options = ["-rdynamic", f"-I{INCLUDE}", f"-Wl,-rpath,{tmp_path}"]
    output("cc", *options, main, plugin, ARCHIVE, "-o", program, *LIBRARIES)
    output(program)
