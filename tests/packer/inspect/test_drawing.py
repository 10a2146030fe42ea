"""Lines for people: roles, widths, tables; nothing that steers a terminal."""

from __future__ import annotations

import os
import pty
import re
import struct
import subprocess
import sys
import termios
from fcntl import ioctl
from pathlib import Path

import pytest

from packer.inspect.drawing import draw, line, table

LONG = "one two three four five six seven"


def test_roles_are_colours_on_demand() -> None:
    """Plain text without; SGR sequences, each reset, with."""
    lines = [line(("bad", "bad"), " and ", ("good", "good"))]
    assert draw(lines) == "bad and good\n"
    assert draw(lines, colour=True) == "\x1b[31mbad\x1b[0m and \x1b[32mgood\x1b[0m\n"


@pytest.mark.parametrize("text", ["\x1b[2J", "\x9b31m", "\r", "\x07", "a\nb", "\u202e", "\x00"])
def test_control_characters_are_escaped(text) -> None:
    """In any role, coloured or not."""
    for role in ("", "name"):
        drawn = draw([line((text, role))], colour=True)
        assert all(c.isprintable() for c in re.sub(r"\x1b\[\d*m", "", drawn).rstrip("\n"))
        assert "\\" in drawn


def test_narrow_lines_are_cut_or_wrapped() -> None:
    """A line with an indent is wrapped; another one ends in an ellipsis."""
    assert draw([line(LONG)], width=20) == "one two three four …\n"
    wrapped = draw([line(LONG, hang=4)], width=20).splitlines()
    assert wrapped == ["one two three four", "    five six seven"]
    rows = draw([line("x" * 45, hang=2)], width=20).splitlines()
    assert rows == ["x" * 20, "  " + "x" * 18, "  " + "x" * 7]


@pytest.mark.parametrize("width", [20, 21, 33])
def test_no_line_is_wider_than_requested(width) -> None:
    """Wide letters count twice, combining marks not at all."""
    text = "語" * 30 + "e\u0301" * 30 + LONG
    for hang in (None, 4):
        for one in draw([line(text, hang=hang)], width=width).splitlines():
            assert len(one.replace("\u0301", "")) + one.count("語") <= width


def test_tables_are_aligned() -> None:
    """Numbers to the right; the last column is not filled up."""
    rows = [[("1", ""), ("name", "")], [("1,000", ""), ("n", "")]]
    assert draw(table(rows, right=(0,))) == "      1  name\n  1,000  n\n"
    assert table([]) == []


def on_terminal(columns: int, *command: str, **env: str) -> str:
    """Return the output of a command on a terminal of so many columns."""
    parent, child = pty.openpty()
    ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
    process = subprocess.Popen(command, stdout=child, env={**clean, "TERM": "xterm", **env})
    os.close(child)
    output = b""
    while chunk := _read(parent):
        output += chunk
    os.close(parent)
    assert process.wait() == 0
    return output.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # EIO: the other end is closed
        return b""


def test_terminal_gets_colour_and_its_width(compile_library) -> None:
    """Colour on a terminal, none with NO_COLOR; COLUMNS is obeyed; plain in a pipe."""
    path: Path = compile_library("int f(void) { return 1; }")
    command = (sys.executable, "-m", "packer", "inspect", str(path), "--symbols")
    shown = on_terminal(60, *command)
    assert "\x1b[1m" in shown
    plain = on_terminal(60, *command, NO_COLOR="1")
    assert "\x1b" not in plain
    assert max(map(len, plain.splitlines())) <= 60
    assert max(map(len, on_terminal(60, *command, NO_COLOR="1", COLUMNS="90").splitlines())) > 60
    assert "\x1b" not in on_terminal(60, *command, TERM="dumb")
    piped = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "\x1b" not in piped
    assert max(map(len, piped.splitlines())) > 60
