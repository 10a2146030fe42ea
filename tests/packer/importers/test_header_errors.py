"""Headers: the errors of the compiler, and its warnings once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import packer
import runtime

from ...support import needs

# A header with an error, and the line that compilers name; gcc may name the next one at the end.
ERRORS = {
    "a struct is not closed": ("int add(int a);\nstruct s { int a;\nint sub(int a);\n", "23"),
    "a body is not closed": ("static inline int two(int a) { return 2;\nint add(int a);\n", "2"),
    "a parenthesis is not closed": ("int add(int a);\nint sub(int a;\n", "2"),
    "a type is misspelled": ("int add(int a);\nint sub(imt a);\n", "2"),
    "a first word is misspelled": ("unsinged int add(int a);\n", "1"),
    "a return is misspelled": ("static inline int two(int a) { retrun 2; }\n", "1"),
    "a semicolon is missing": ("int add(int a)\nint sub(int a);\n", "1"),
    "the last semicolon is missing": ("int add(int a);\nint sub(int a)\n", "23"),
    "the end of the line is missing too": ("int add(int a);\nint sub(int a)", "23"),
    "a comment is not closed": ("/* int add(int a);\nint sub(int a);\n", "1"),
    "an #if is not closed": ("int add(int a);\n#if 1\nint sub(int a);\n", "2"),
}
OURS = re.compile(r"#pragma|#line|\.packer-|packer_|<declaration|<function|declares no function")


def say(path: Path, output: Path) -> str:
    """Return what the failing export of a header says."""
    with pytest.raises(runtime.ToolchainError) as failed:
        packer.export_library(packer.from_header(path), output)
    return f"{failed.value}\n{failed.value.stderr}"


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize(("text", "lines"), ERRORS.values(), ids=list(ERRORS))
@pytest.mark.parametrize("suffix", ["so", "o"])
def test_a_syntax_error_is_that_of_the_header(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    compiler: str,
    text: str,
    lines: str,
    suffix: str,
) -> None:
    """The compiler names the line of the user; no text or path of packer is in its output."""
    monkeypatch.setenv("CC", needs.program(compiler))
    header = tmp_path / "x.h"
    header.write_text(text)
    said = say(header, tmp_path / f"x.{suffix}")
    assert re.search(rf"{re.escape(str(header))}:[{lines}](:\d+)?: error: ", said)
    assert not OURS.search(said)


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_a_syntax_error_of_cpp_is_that_of_the_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: str
) -> None:
    """Of several headers it is that of the one with the error."""
    monkeypatch.setenv("CXX", needs.program(compiler))
    (tmp_path / "x.hpp").write_text('extern "C" int add(int a);\n')
    (tmp_path / "y.hpp").write_text('extern "C" {\nint sub(int a);\n')
    module = packer.from_header([tmp_path / "x.hpp", tmp_path / "y.hpp"])
    with pytest.raises(runtime.ToolchainError) as failed:
        packer.export_library(module, tmp_path / "x.so")
    assert f"{tmp_path}/y.hpp:2:" in failed.value.stderr
    assert not OURS.search(failed.value.stderr)


def test_a_syntax_error_of_a_source_is_its_own(tmp_path: Path) -> None:
    """Declarations follow a source too."""
    (tmp_path / "x.c").write_text("int add(int a) { return a; }\nint sub(int a) { return a;\n")
    module = packer.CSourceModule(tmp_path / "x.c", functions={"add": "int(int a)"})
    with pytest.raises(runtime.ToolchainError) as failed:
        packer.export_library(module, tmp_path / "x.so")
    assert re.search(r"x\.c:[23](:\d+)?: error: expected ", failed.value.stderr)
    assert "#pragma" not in failed.value.stderr


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("absent", ["absent(int a)", "(absent)(int a)", "absent(va_list a)"])
def test_a_warning_of_a_header_comes_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    compiler: str,
    absent: str,
) -> None:
    """The header is compiled again without the functions that are left out."""
    monkeypatch.setenv("CC", needs.program(compiler))
    text = f"#warning old header\n#include <stdarg.h>\nint abs(int a);\nint {absent};\n"
    (tmp_path / "x.h").write_text(text)
    module = packer.from_header(tmp_path / "x.h")
    packer.export_library(module, tmp_path / "x.so")
    assert [*module.left_out] == ["absent"]
    assert len(re.findall("warning: (#warning )?old header", capfd.readouterr().err)) == 1
