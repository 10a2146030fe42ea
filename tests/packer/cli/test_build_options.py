"""Options that compilers have, the choice of constants and headers, on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

import runtime

from ...support.command_line import Packer, done, refused

SOURCE = """
#define A_ONE 1
#define B_TWO 2
int threads(void) {
  int n = 0;
#ifdef _OPENMP
#pragma omp parallel num_threads(2) reduction(+ : n)
#endif
  n += 1;
  return n;
}
int has_file(FILE *file) { return file != 0 && KIT; }
"""


def test_options_of_a_build_reach_compiler_and_linker(packer: Packer, tmp_path: Path) -> None:
    """-f, -m and -pthread for both, -include and -isystem for the compiler."""
    (tmp_path / "a.c").write_text(f"#include <kit.h>\n{SOURCE}")
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit/kit.h").write_text("#define KIT 1\n#define KIT_OTHER 2\n")
    choice = ["--constants", "A_*"]
    words = ["-fopenmp", "-pthread", "-mtune=generic", "-include", "stdio.h", "-isystem", "kit"]
    shown = done(packer("export", "a.so", "a.c", *words, *choice))
    assert ", 2 functions, 1 constant, " in shown
    # In another process, since libgomp's threads outlive a library that is closed.
    assert "threads() -> 2" in done(packer("load", "a.so", "threads"))
    assert dict(runtime.load(tmp_path / "a.so").constants) == {"A_ONE": 1}


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["-fopenmp"], 2, "argument -fopenmp: needs SOURCE"),
        (["--constants", "A_*"], 2, "argument --constants: needs SOURCE or --header"),
        (["--header-filter", "a/*"], 2, "argument --header-filter: needs --header or --pkg-config"),
        (["--pkg-config", "libnone-kit"], 1, "pkg-config: no package 'libnone-kit'"),
        (["a.c", "--constants", "!"], 1, "constants: an empty pattern"),
        (
            ["a.c", "-include", "stdio.h", "--function", "threads", "--constants", "A"],
            1,
            "are listed",
        ),
        (["a.c", "-fno-such-thing"], 1, "no-such-thing"),
    ],
)
def test_wrong_options_are_refused(
    packer: Packer, tmp_path: Path, words: list[str], code: int, text: str
) -> None:
    """In words, and an older output stays."""
    (tmp_path / "a.c").write_text(SOURCE)
    (tmp_path / "a.so").write_text("old")
    assert text in refused(packer("export", "a.so", *words), code)
    assert (tmp_path / "a.so").read_text() == "old"
