"""Texts of messages show values as Python's repr does."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.error import shown

from ...support.native import INCLUDE
from ...support.paths import NATIVE

DRIVER = """
#include <string.h>
#include "abi/text.h"
typedef void add(struct text *, const char *, size_t);
static add *const adds[] = {text_repr, text_repr_bytes, text_shown, text_shown_bytes};
size_t show(int which, const char *data, size_t nbytes, char *out, size_t room) {
  struct text text = {0};
  adds[which](&text, data, nbytes);
  size_t size = text.size;
  if (size < room) memcpy(out, text_of(&text), size);
  text_free(&text);
  return size;
}
"""


@pytest.fixture(scope="module")
def show(tmp_path_factory) -> Callable[[int, bytes], str]:
    """The four functions: repr of str and bytes, and both cut."""
    folder: Path = tmp_path_factory.mktemp("text")
    (folder / "driver.c").write_text(DRIVER)
    sources = [str(folder / "driver.c"), *map(str, (NATIVE / "abi").glob("*.c"))]
    include = [f"-I{path}" for path in INCLUDE]
    command = ["cc", "-std=c11", "-O1", "-fPIC", "-shared", *include, *sources]
    subprocess.run([*command, "-o", str(folder / "text.so")], check=True)
    library = ctypes.CDLL(str(folder / "text.so"))
    library.show.restype = ctypes.c_size_t

    def call(which: int, data: bytes) -> str:
        room = ctypes.create_string_buffer(10 * len(data) + 100)
        size = library.show(which, data, ctypes.c_size_t(len(data)), room, ctypes.c_size_t(10**6))
        return room.raw[:size].decode()

    return call


TEXTS = [
    "", "main", "it's", 'say "no"', "both ' and \"", "a\0b\x1f\x7f\n\t\r\\", "\x80\xa0\xad\xe9",
    "\N{SNOWMAN}" * 90, "\u2028\ufeff\u3000", "\N{GRINNING FACE}", "\U000e0001", "x" * 80, "y" * 81,
    "'" * 79, "\x01" * 40,
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_a_str_is_shown_as_by_python(show, text: str) -> None:
    """Quotes, escapes, characters that are not printable, and the cut."""
    assert show(0, text.encode()) == repr(text)
    assert show(2, text.encode()) == shown(text)


@pytest.mark.parametrize("data", [bytes(range(256)), b"'", b"\"'", b"", b"x" * 100])
def test_bytes_are_shown_as_by_python(show, data: bytes) -> None:
    """Every byte."""
    assert show(1, data) == repr(data)
    assert show(3, data) == shown(data)
