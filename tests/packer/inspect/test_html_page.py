"""The page of a library as a file: hostile text, the same bytes again, where it is written."""

from __future__ import annotations

import json
import os
import re
import runpy
import stat
from xml.etree import ElementTree

import pytest

from packer.cli import main
from packer.files.text import visible
from packer.inspect.page import write_report
from runtime.error import ExportError, LibraryLoadError

from ...support.paths import DOCS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain \u00e9\u4e2d", "plain \u00e9\u4e2d"),
        ("a\u202eb\u2066", "a\\u202eb\\u2066"),
        ("\x1b[31m\0", "\\x1b[31m\\x00"),
        ("\ud800\U000e0041", "\\ud800\\U000e0041"),
        ("two\n\tlines\r", "two\n\tlines\\r"),
        ("x" * 5000, "x" * 4096 + "... (5,000 characters)"),
    ],
)
def test_text_is_shown_not_obeyed(text, expected) -> None:
    """Control, bidi and lone surrogate characters are spelled out; a long text is cut."""
    assert visible(text) == expected


def test_page_is_one_file_that_data_cannot_end(page_path) -> None:
    """The only markup is ours: two scripts, the first of which is the data."""
    text = page_path.read_text(encoding="ascii")
    assert text.count("<script") == text.count("</script") == 2
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert block is not None
    assert "<" not in block[1]
    assert json.loads(block[1])["name"] == "model.so"
    assert not re.search(r"(?:src|href)\s*=\s*[\"'](?!#)", text.replace(block[1], ""))


def test_page_is_the_same_again(hostile_library, page_path, tmp_path) -> None:
    """One library, one page: it can be compared and cached. A report serves as well as a path."""
    report = write_report(hostile_library, tmp_path / "a.html")
    assert report == write_report(report, tmp_path / "b.html")
    first, second = (tmp_path / "a.html").read_bytes(), (tmp_path / "b.html").read_bytes()
    assert first == second == page_path.read_bytes()


def test_page_is_not_a_program(page_path) -> None:
    """The file has the mode of a text file."""
    assert stat.S_IMODE(page_path.stat().st_mode) & 0o111 == 0


def test_command_writes_the_page(hostile_library, page_path, tmp_path, capsys) -> None:
    """``packer inspect --html`` writes it, says so on stderr, and prints the same as without."""
    assert main(["inspect", str(hostile_library), "--html", str(tmp_path / "page.html")]) == 0
    with_page, said = capsys.readouterr()
    assert said.startswith(f"{tmp_path}/page.html: page written, ")
    assert (tmp_path / "page.html").read_bytes() == page_path.read_bytes()
    assert main(["inspect", str(hostile_library)]) == 0
    assert with_page == capsys.readouterr().out


@pytest.mark.parametrize("name", ["model.so", "link.html"])
def test_page_never_replaces_the_library(name, hostile_library) -> None:
    """By its own name or a link to it, the library is refused as an output."""
    link = hostile_library.with_name("link.html")
    link.unlink(missing_ok=True)
    link.symlink_to(hostile_library)
    before = hostile_library.read_bytes()
    with pytest.raises(ExportError, match="is also an input; choose a different output"):
        write_report(hostile_library, hostile_library.with_name(name))
    assert hostile_library.read_bytes() == before


def test_page_that_cannot_be_written_is_reported(hostile_library, tmp_path) -> None:
    """A folder that is a file is an ExportError, a missing library a LibraryLoadError."""
    with pytest.raises(ExportError, match="page.html"):
        write_report(hostile_library, hostile_library / "page.html")
    with pytest.raises(LibraryLoadError):
        write_report(tmp_path / "none.so", tmp_path / "page.html")
    assert os.listdir(tmp_path) == []


def test_figure_of_the_docs_is_the_output_of_its_script() -> None:
    """The committed picture is that of the golden blob, and well-formed."""
    drawn = runpy.run_path(str(DOCS / "make_figures.py"))["storage_figure"]()
    assert drawn == (DOCS / "storage.svg").read_text(encoding="utf-8")
    words = list(ElementTree.fromstring(drawn).itertext())
    assert words.count("cuda") == 2 * 3
    assert "import_tree_child_indices" in words
