"""The constants and variables of a library in its stub, its C header and its report."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import packer
import runtime
from packer.declare.declaration import AUTO
from packer.inspect import render
from packer.inspect.diff import diff_libraries
from packer.packaging.c_header import header_text

from ...support.type_checker import errors_of

SOURCE = r"""
#define SIZE 3
#define BIG 0xffffffffffffffff
#define LOW (-2147483647 - 1)
#define HALF 0.5
#define NAME "a\"b"
#define MAGIC "\xff"
#define VERSION "1"
#define pass 7
enum color { RED = 1, GREEN };
int count = 5;
double table[2];
int f(int x) { return x; }
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """The library of the source."""
    return packer.export_library(packer.CSourceModule(SOURCE, functions=AUTO), tmp_path / "c.so")


def test_a_stub_has_the_type_of_each_constant(library: Path, tmp_path: Path) -> None:
    """By attribute and by item; a misspelled name and a wrong type are errors."""
    (tmp_path / "c.pyi").write_text(packer.stub_of(library))
    (tmp_path / "use.py").write_text(
        "from c import model\n"
        "a: int = model.constants.SIZE\n"
        'b: str = model.constants["NAME"]\n'
        'c: int = model.constants["pass"]\n'
        "d: bytes = model.constants.MAGIC\n"
        "e: int = model.constants.RED\n"
        "f: list[object] = list(model.constants.color)\n"
        "model.globals.count = 3\n"
        "g: memoryview = model.globals.table\n"
        "h: int = model.constants.NAME\n"
        "i: int = model.constants.SIZ\n"
        'model.globals.count = "x"\n'
    )
    errors = errors_of(tmp_path, "c.pyi", "use.py")
    assert {name: sorted(lines) for name, lines in errors.items()} == {"use.py": [10, 11, 12]}


@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_c_header_has_each_constant(library: Path, language: str, tmp_path: Path) -> None:
    """With its value and a type that holds it, for compilers of both languages."""
    (tmp_path / "kit.h").write_text(header_text(library, "kit"))
    (tmp_path / "use.c").write_text(
        '#include "kit.h"\n#include <assert.h>\n#include <string.h>\nint main(void) {\n'
        "  assert(KIT_SIZE == 3 && KIT_BIG == ~0ull && KIT_LOW + 1 == -2147483647);\n"
        '  assert(KIT_HALF == 0.5 && !strcmp(KIT_NAME, "a\\"b") && KIT_GREEN == 2);\n'
        '  assert(!strcmp(KIT_MAGIC, "\\xff") && !strcmp(KIT_VERSION, "1"));\n  return 0;\n}\n'
    )
    include = Path(runtime.__file__).parent / "include"
    library_folder = Path(runtime.__file__).parent / "lib"
    words = ["gcc", "-x", language, "-Wall", "-Wextra", "-Werror", f"-I{include}", "-c"]
    subprocess.run([*words, tmp_path / "use.c", "-o", tmp_path / "use.o"], check=True)
    needed = [library_folder / "libdso.a", "-lm", "-ldl", "-lpthread"]
    subprocess.run(["gcc", tmp_path / "use.o", *needed, "-o", tmp_path / "use"], check=True)
    subprocess.run([tmp_path / "use"], check=True)


def test_a_report_has_constants_and_variables(library: Path, tmp_path: Path) -> None:
    """As text and as JSON; a difference names the constant."""
    report = packer.inspect_library(library)
    assert (report.constants["SIZE"], report.constants["GREEN"]) == (3, 2)
    assert report.constants["MAGIC"] == "\\xff"
    assert report.globals == {"count": "i32", "table": "*f64[2]"}
    text = render(report)
    assert "SIZE = 3" in text and "globals: count, table" in text
    other = packer.CSourceModule(SOURCE.replace("SIZE 3", "SIZE 4"), functions=AUTO)
    found = diff_libraries(library, packer.export_library(other, tmp_path / "d.so"))
    assert [(d.item, d.a, d.b) for d in found if d.group == "constants"] == [("SIZE", 3, 4)]
