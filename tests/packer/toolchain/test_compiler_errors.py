"""The errors of a compiler that fails, dies or makes nothing."""

from __future__ import annotations

import signal

import pytest

from packer.toolchain.create import create_shared
from runtime.error import ToolchainError

from ..compilers import GCC, compile_c, program, write

pytestmark = pytest.mark.usefixtures("no_compiler_variables")


def test_error_names_file_and_first_error_line(tmp_path):
    """The message is one line; command, exit status and the whole text are attributes."""
    source = write(tmp_path / "bad.c", "int x = 1;\nint f(void) { return y; }\n")
    pattern = r"^gcc exited with 1 compiling bad\.c: .*bad\.c:2:\d+: error: .y. undeclared.*$"
    with pytest.raises(ToolchainError, match=pattern) as caught:
        compile_c(source)
    assert caught.value.returncode == 1
    assert caught.value.command[0] == GCC
    assert "In function" in caught.value.stderr


def test_colours_do_not_hide_the_error(tmp_path):
    """Flags that ask for colours give the same words."""
    source = write(tmp_path / "bad.c", "int f(void) { return y; }\n")
    with pytest.raises(ToolchainError, match=r"error: .y. undeclared") as caught:
        compile_c(source, cc="gcc -fdiagnostics-color=always")
    assert "\x1b" not in caught.value.stderr


def test_without_an_error_line_the_last_twenty_are_shown(tmp_path, add_c):
    """A compiler without a known error line is quoted from its end."""
    compiler = program(tmp_path / "cc", "for i in $(seq 30); do echo line $i; done; exit 3\n")
    with pytest.raises(ToolchainError) as caught:
        compile_c(add_c, cc=compiler)
    head, _, rest = caught.value.message.partition(": ")
    assert head == "cc exited with 3 compiling add.c"
    assert rest.split("\n") == [f"line {index}" for index in range(11, 31)]


def test_silent_compiler(tmp_path, add_c):
    """A compiler without output is reported as such."""
    with pytest.raises(ToolchainError, match=r"exited with 2 compiling add\.c: it printed nothing"):
        compile_c(add_c, cc=program(tmp_path / "cc", "exit 2\n"))


def test_the_linkers_epilogue_is_not_the_cause(tmp_path, add_c):
    """That "ld returned 1" is shown only with the lines before it."""
    script = "echo odd trouble; echo 'collect2: error: ld returned 1 exit status'; exit 1\n"
    with pytest.raises(ToolchainError, match=r"add\.c: odd trouble\ncollect2: error"):
        compile_c(add_c, cc=program(tmp_path / "cc", script))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGKILL, r"SIGKILL \(out of memory\?\)"),
        (signal.SIGSEGV, "SIGSEGV"),
        (signal.SIGRTMIN + 1, f"signal {signal.SIGRTMIN + 1}"),
    ],
)
def test_signal_is_named(tmp_path, add_c, number, words):
    """A compiler ended by a signal is reported with the signal's name."""
    compiler = program(tmp_path / "cc", f"echo dying; ulimit -c 0; kill -{int(number)} $$\n")
    with pytest.raises(ToolchainError, match=f"^cc ended by {words} compiling add.c: dying") as e:
        compile_c(add_c, cc=compiler)
    assert e.value.returncode == -number


def test_compiler_that_makes_nothing(tmp_path, add_c):
    """Exit status 0 without an output is an error."""
    with pytest.raises(ToolchainError, match=r"exited with 0 compiling add\.c, but wrote no"):
        compile_c(add_c, cc=program(tmp_path / "cc", "exit 0\n"))


def test_compiler_that_makes_an_empty_file(tmp_path, add_c):
    """Exit status 0 with an empty output is an error."""
    compiler = program(tmp_path / "cc", 'for last; do :; done; : > "$last"\n')
    with pytest.raises(ToolchainError, match=r"add\.c, but its output is empty"):
        compile_c(add_c, cc=compiler)


def test_stale_object_is_not_taken_for_a_new_one(tmp_path, add_c):
    """An object that existed before is not mistaken for the compiler's output."""
    compile_c(add_c)
    with pytest.raises(ToolchainError, match="wrote no output"):
        compile_c(add_c, cc=program(tmp_path / "cc", "exit 0\n"))


def test_stale_library_is_not_taken_for_a_new_one(tmp_path, add_c):
    """A library that existed before stays, and is not mistaken for the linker's output."""
    library = write(tmp_path / "old.so", "old")
    with pytest.raises(ToolchainError, match=r"linking old\.so, but wrote no output"):
        create_shared(library, compile_c(add_c), cc=program(tmp_path / "cc", "exit 0\n"))
    assert library.read_text() == "old"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"#!/no/such/interpreter\n", "No such file or directory"),
        (b"\x7fELF, not really", "Exec format error"),
    ],
)
def test_compiler_that_cannot_start(tmp_path, add_c, content, reason):
    """A file that passes for a program but is not one is reported with the system's reason."""
    (tmp_path / "cc").write_bytes(content)
    (tmp_path / "cc").chmod(0o755)
    with pytest.raises(ToolchainError, match=f"cc: cannot start: {reason}"):
        compile_c(add_c, cc=str(tmp_path / "cc"))


def test_nul_in_an_option(add_c):
    """An option that no command line can contain is refused."""
    with pytest.raises(ToolchainError, match="cannot start: embedded null byte"):
        compile_c(add_c, options=["-DX=\0"])
