"""__packer_left_out: a look-up says why the export left a function out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import packer
import runtime

from ...support.compile import INCLUDE
from ...support.dso_driver import ARCHIVE
from ...support.libdso import SANITIZE, compile_program, run_program

SOURCE = """
#include <stdlib.h>
int add(int a) { return a + 1; }
__int128 *alloc(int n) { static __int128 all[2]; return n ? all : 0; }
"""
HINT = (
    "; alloc: not exported: __int128 *alloc(int n): result: a pointer to __int128, "
    "expected 'void *'; declare 'void *(int n)'"
)
PROGRAM = """
#include <stdio.h>
#include "dso.h"
int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    dso_module *m = argv[i][0] == '@' ? dso_system_library(argv[i] + 1) : dso_load(argv[i], NULL);
    if (m == NULL) return puts(dso_last_error()), 1;
    dso_function *f = dso_module_function(m, "alloc");
    puts(f == NULL ? dso_last_error() : "found");
    dso_module_release(m);
  }
  return 0;
}
"""
FIRST = "packer-left-out 1\\n"
LINE = "function alloc int *alloc(int n): reason\\n"


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """The compiled program, under ASan and UBSan."""
    return compile_program(PROGRAM, tmp_path_factory.mktemp("program") / "program", *SANITIZE)


def source() -> packer.CSourceModule:
    """A function that is exported, and one that cannot be."""
    return packer.CSourceModule(SOURCE, functions="auto")


def hints(program: Path, path: Path) -> tuple[str, str]:
    """Return the end of the error of a look-up, in Python and in C."""
    with pytest.raises(runtime.FunctionNotFoundError) as caught:
        runtime.load(path)["alloc"]
    texts = str(caught.value), run_program(program, path).rstrip("\n")
    first, second = (text.split("'alloc' in its tree", 1)[1] for text in texts)
    return first, second


def test_look_up_says_the_type_the_reason_and_what_to_do(program, tmp_path) -> None:
    """In Python and in C by the same words; functions that were exported work."""
    path = packer.export_library(source(), tmp_path / "a.so")
    assert hints(program, path) == (HINT, HINT)
    assert runtime.load(path)["add"](1) == 2


def test_library_that_is_imported_says_it_too(tmp_path) -> None:
    """The look-up in the tree of another library."""
    inner = runtime.load(packer.export_library(source(), tmp_path / "inner.so"))
    root = runtime.load(packer.export_library(packer.CSourceModule("int x;"), tmp_path / "r.so"))
    root.import_module(inner)
    with pytest.raises(runtime.FunctionNotFoundError, match="; alloc: not exported: __int128 "):
        root["alloc"]


def test_system_library_says_it(tmp_path) -> None:
    """A model in the program, with a prefix."""
    made = tmp_path / "net.o"
    packer.export_library(source(), made, system_lib=True, c_symbol_prefix="net1_")
    header = '#define DSO_SYSTEM_LIB_IMPLEMENTATION\n#include "dso_packer_system_lib.h"\n'
    (tmp_path / "linked.c").write_text(header + PROGRAM)
    linked = tmp_path / "linked"
    command = ["cc", f"-I{INCLUDE}", tmp_path / "linked.c", made, ARCHIVE, "-o", linked]
    subprocess.run([*command, "-pthread", "-ldl", "-lm"], check=True)
    assert run_program(linked, "@net1_").rstrip("\n").endswith(HINT)


def test_a_name_is_compared_as_a_whole(tmp_path) -> None:
    """Not its beginning, nor a name with a part of the type."""
    module = runtime.load(packer.export_library(source(), tmp_path / "a.so"))
    for name in ("all", "alloc2", "alloc int", "", "alloc\n", "allo\u00e7", "function"):
        with pytest.raises(runtime.FunctionNotFoundError) as caught:
            module[name]
        assert "not exported" not in str(caught.value)


MALFORMED = {
    "without a NUL": ("[sizeof TEXT - 1]", FIRST + LINE),
    "cut": ("[]", FIRST + LINE.removesuffix("\\n")),
    "with another NUL": ("[]", FIRST + "\\0" + LINE),
    "without a name": ("[]", FIRST + "function alloc\\n"),
    "of another version": ("[]", "packer-left-out 2\\n" + LINE),
    "not UTF-8": ("[]", FIRST + LINE + "function b \\377\\n"),
    "with an escape": ("[]", FIRST + "function alloc \\033[31m\\n"),
    "of 65537 bytes": ("[65537]", FIRST + LINE),
    "empty": ("[]", ""),
    "cut in a key": ("[]", FIRST + "func"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_record_that_is_malformed_counts_as_none(program, compile_library, case) -> None:
    """The library loads, and the look-up says what it says without a record."""
    size, text = MALFORMED[case]
    code = f'#define TEXT "{text}"\nconst char __packer_left_out{size} = TEXT;'
    assert hints(program, compile_library(code)) == ("", "")


def test_a_huge_record_is_not_read(program, compile_library) -> None:
    """Its lines are well formed, but of more than 64 KiB."""
    lines = "".join(f'"function f{i} int f{i}(int a): {"x" * 80}\\n"\n' for i in range(800))
    code = f'const char __packer_left_out[] = "{FIRST}" "{LINE}" {lines};'
    assert hints(program, compile_library(code)) == ("", "")


@pytest.mark.parametrize("code", ["int __packer_left_out = 1;", "void __packer_left_out(void) {}"])
def test_another_kind_of_symbol_counts_as_none(program, compile_library, code) -> None:
    """Data that can be written, and code."""
    first, second = hints(program, compile_library(code))
    assert "not exported" not in first + second
    assert "LibraryLoadError" not in first + second


def test_a_record_without_an_export_is_read(program, compile_library) -> None:
    """The case of the tests above, well formed."""
    expected = "; alloc: not exported: int *alloc(int n): reason"
    code = f'const char __packer_left_out[] = "{FIRST}{LINE}more 3\\n";'
    assert hints(program, compile_library(code)) == (expected, expected)
