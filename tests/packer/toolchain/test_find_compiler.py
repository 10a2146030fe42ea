"""Which compiler is found: argument, variable, path."""

from __future__ import annotations

import shutil

import pytest

from packer.toolchain.compiler import find_compiler
from runtime.error import ToolchainError

from ..compilers import program

pytestmark = pytest.mark.usefixtures("no_compiler_variables")


def test_finds_gcc_on_path():
    """Without a choice of the user the compilers are those on PATH, by absolute path."""
    assert find_compiler("c") == (shutil.which("gcc"),)
    assert find_compiler("cc") == (shutil.which("g++"),)
    assert find_compiler("link") == (shutil.which("g++"),)


def test_argument_comes_before_variable_before_path(tmp_path, monkeypatch):
    """The argument wins, then the variable, then PATH."""
    monkeypatch.setenv("CC", program(tmp_path / "mine", ""))
    assert find_compiler("c") == (str(tmp_path / "mine"),)
    assert find_compiler("c", "gcc") == (shutil.which("gcc"),)


def test_variable_may_hold_options(monkeypatch):
    """CXX="g++ -DX='a b'" is split as a shell would."""
    monkeypatch.setenv("CXX", "g++ -DX='a b' -m64")
    assert find_compiler("cc") == (shutil.which("g++"), "-DX=a b", "-m64")


def test_path_with_spaces_is_one_word(tmp_path):
    """A compiler in a folder with spaces needs no quoting."""
    compiler = program(tmp_path / "my cc", "")
    assert find_compiler("c", compiler) == (compiler,)


def test_relative_compiler_is_made_absolute(tmp_path, monkeypatch):
    """The compiler starts in another folder, so a relative path is resolved here."""
    program(tmp_path / "mycc", "")
    monkeypatch.chdir(tmp_path)
    assert find_compiler("c", "./mycc -O3") == (str(tmp_path / "mycc"), "-O3")


def test_empty_variable_is_as_unset(monkeypatch):
    """CC= names no compiler."""
    monkeypatch.setenv("CC", " ")
    assert find_compiler("c") == (shutil.which("gcc"),)


@pytest.mark.parametrize("variable", ["CC", "CXX"])
def test_link_follows_the_users_compiler(tmp_path, monkeypatch, variable):
    """Either variable decides who links, so that its -m32 or --sysroot is there too."""
    monkeypatch.setenv(variable, program(tmp_path / "mine", "") + " -m32")
    assert find_compiler("link") == (str(tmp_path / "mine"), "-m32")


@pytest.mark.parametrize(
    ("language", "variable"), [("c", "CC"), ("cc", "CXX"), ("cu", "NVCC"), ("link", "CXX")]
)
def test_variable_that_names_nothing_is_an_error(monkeypatch, language, variable):
    """A wrong variable is an error."""
    monkeypatch.setenv(variable, "no-such-cc -O3")
    with pytest.raises(ToolchainError, match=f"{variable}='no-such-cc -O3': .* 'no-such-cc'"):
        find_compiler(language)


def test_argument_that_names_nothing_is_an_error():
    """A wrong argument is an error, too."""
    with pytest.raises(ToolchainError, match="cc='no-such-cc': there is no program"):
        find_compiler("c", "no-such-cc")


def test_unbalanced_quote_in_variable_is_an_error(monkeypatch):
    """A value that a shell cannot read is refused with the reason."""
    monkeypatch.setenv("CC", "gcc '-DX")
    with pytest.raises(ToolchainError, match=r"CC=.*no closing quotation"):
        find_compiler("c")


@pytest.mark.parametrize(
    ("language", "tried", "advice"),
    [
        ("c", "gcc, clang, cc", "name one in CC"),
        ("cc", r"g\+\+, clang\+\+, c\+\+", "name one in CXX"),
        ("cu", "nvcc", "install the CUDA toolkit"),
        ("link", r"g\+\+, gcc, clang\+\+, clang, c\+\+, cc", "CXX or CC"),
    ],
)
def test_empty_path_lists_the_tried_compilers(monkeypatch, language, tried, advice):
    """Without any compiler the message has the searched names and the fix."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sys.path", [])  # an installed package has nvcc
    with pytest.raises(ToolchainError, match=f"none of {tried} is on PATH; .*{advice}") as caught:
        find_compiler(language)
    assert caught.value.command == ()
