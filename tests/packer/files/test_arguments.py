"""A single word in place of a list of words is refused: it would be taken letter by letter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import packer

CALLS = {
    "export_library options": ("options", lambda word, out: export(out, options=word)),
    "export_library addons": ("addons", lambda word, out: export(out, addons=word)),
    "link_library inputs": ("inputs", lambda word, out: packer.link_library(word, out)),
    "link_library options": (
        "options",
        lambda word, out: packer.link_library([], out, options=word),
    ),
    "create_shared options": ("options", lambda word, out: packer.create_shared(out, [], word)),
    "create_object options": ("options", lambda word, out: packer.create_object(out, [], word)),
    "create_archive options": ("options", lambda word, out: packer.create_archive(out, [], word)),
    "tar options": ("options", lambda word, out: packer.tar(out, [], word)),
    "cross_compiler options": ("options", lambda word, _: packer.cross_compiler("gcc", word)),
    "cross_compiler add_files": (
        "add_files",
        lambda word, _: packer.cross_compiler("gcc", add_files=word),
    ),
    "call of a cross_compiler": (
        "options",
        lambda word, out: packer.cross_compiler("gcc")(out, [], word),
    ),
    "CSourceModule options": (
        "options",
        lambda word, _: packer.CSourceModule("int f(void);", options=word),
    ),
}


def export(output: Path, **given) -> None:
    """Export the least there is."""
    packer.export_library(packer.CSourceModule("int one = 1;"), output, **given)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("word", ["-lfoo", b"-lfoo", Path("-lfoo")])
def test_one_word_is_not_a_list(call, word, tmp_path) -> None:
    """The message names the argument, and shows the list that was meant."""
    name, function = CALLS[call]
    text = f"{name}: expected a list of str, found {word!r}; write ['-lfoo']"
    with pytest.raises(packer.ExportError, match=f"^{re.escape(text)}$"):
        function(word, tmp_path / "lib.so")
    assert list(tmp_path.iterdir()) == []


def test_number_is_not_a_list(tmp_path) -> None:
    """An object that is not iterable is refused in the same words."""
    with pytest.raises(packer.ExportError, match="^options: expected a list of str, found 3$"):
        export(tmp_path / "lib.so", options=3)


@pytest.mark.parametrize("make", [packer.create_shared, packer.create_object, packer.tar])
def test_objects_may_be_one_path(make, tmp_path) -> None:
    """A str or path is one object, as in TVM; bytes are not a path here."""
    source = tmp_path / "one.c"
    source.write_text("int one = 1;")
    make(tmp_path / "made", str(source))
    assert (tmp_path / "made").stat().st_size > 0
    with pytest.raises(packer.ExportError, match="^objects: expected a list of str, found b'one"):
        make(tmp_path / "made", b"one.c")


def test_any_list_will_do(tmp_path) -> None:
    """A generator is taken once."""
    (tmp_path / "more.c").write_text("int more = 2;")
    packer.create_object(tmp_path / "more.o", tmp_path / "more.c")
    export(
        tmp_path / "lib.so",
        options=(word for word in ["-Wl,-soname,own"]),
        addons=(path for path in [tmp_path / "more.o"]),
    )
    data = (tmp_path / "lib.so").read_bytes()
    assert b"own\0" in data
    assert b"more\0" in data
