"""packer inspect, diff and extract with the metadata of a library."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import packer
import runtime
from packer.inspect import inspect_library, open_library, render
from packer.inspect.diff import diff_libraries, list_differences
from packer.inspect.drawing import draw
from packer.inspect.extract import extract_library
from packer.inspect.meaning import meaning_of
from packer.inspect.page import write_report
from packer.project import read_project

from ...support.paths import DOCS
from .json_schema import faults

GIVEN = {
    "version": "1.0",
    "license": "MIT",
    "authors": ["A. \u017b", 'B "b"'],
    "": {"x y": 1e-7, "deep": [{"on": True}, [], {}, -3, "\x1b[0m\n"]},
}
SCHEMA = json.loads((DOCS / "inspect.schema.json").read_text())


def export(path: Path, metadata: dict[str, object] | None = None, soname=None) -> Path:
    """A library without code."""
    root = runtime.ConstLoaderModule({"w": b"1234"}, {})
    given = GIVEN if metadata is None else metadata
    output = packer.Output(metadata=given, soname=soname)
    return packer.export_library(root, path, output=output)


def test_report_has_it(tmp_path) -> None:
    """As data, as JSON by the schema, and as text without control characters."""
    report = inspect_library(export(tmp_path / "a.so"))
    assert report.metadata == GIVEN
    assert report.problems == ()
    again = json.loads(json.dumps(report.to_dict()))
    assert again["metadata"] == GIVEN
    assert list(faults(again, SCHEMA, SCHEMA)) == []
    text = render(report)
    assert '\nmetadata:\n  version: 1.0\n  license: MIT\n  authors: ["A. \u017b", "B ' in text
    assert "\x1b" not in text
    assert inspect_library(export(tmp_path / "b.so", {})).metadata == {}


def test_page_has_it(tmp_path) -> None:
    """The overview of ``--html``, and the region of its bytes."""
    write_report(export(tmp_path / "a.so"), tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    assert '"version": "1.0"' in page or '"version":"1.0"' in page
    assert "the version and license of the library" in page
    assert meaning_of("net1___packer_library").startswith("the metadata of the library")


def test_differences_are_listed_by_name(tmp_path) -> None:
    """Changed, removed and added values."""
    old = export(tmp_path / "a.so", {"version": "1", "gone": [1], "same": {"a": 1}})
    new = export(tmp_path / "b.so", {"version": "2", "same": {"a": 1}, "new": 0.5})
    differences = list(diff_libraries(old, new))
    found = {(d.item, d.kind, d.field): (d.a, d.b) for d in differences if d.group == "metadata"}
    assert found == {
        ("version", "changed", "value"): ("1", "2"),
        ("gone", "removed", ""): ({"value": [1]}, None),
        ("new", "added", ""): (None, {"value": 0.5}),
    }
    text = draw(list_differences(differences, "a", "b"))
    assert "metadata\n  ~ version: value 1 -> 2\n  - gone [1]\n  + new 0.5\n" in text


def test_extracted_project_packs_the_same_bytes(tmp_path) -> None:
    """packer.toml has every value, and the SONAME."""
    path = export(tmp_path / "a.so", soname="liba.so.1")
    extract_library(path, tmp_path / "out")
    project = read_project(tmp_path / "out" / "packer.toml")
    assert (project.metadata, project.soname) == (GIVEN, "liba.so.1")
    again = packer.export_library(
        project.root,
        tmp_path / "b.so",
        output=packer.Output(metadata=project.metadata, soname=project.soname),
    )
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("text", ["{", '{\\"schema\\":1,\\"metadata\\":{\\"version\\":1}}'])
def test_malformed_record_is_a_problem(compile_library, text) -> None:
    """The rest of the library is read."""
    report = inspect_library(compile_library(f'const char __packer_library[] = "{text}"; int f;'))
    assert report.metadata == {}
    (problem,) = report.problems
    assert problem.startswith("__packer_library at 0x0: ")
    assert report.symbols.dynamic.find("f") is not None


def test_model_in_a_system_library_is_described(tmp_path) -> None:
    """That of the one model; with two, none is the library's."""
    host = packer.CSourceModule("int f(void) { return 1; }", functions={"f": "int(void)"})
    output = packer.Output(metadata={"version": "1"})
    options = {"system_lib": True, "c_symbol_prefix": "net1_", "output": output}
    one = packer.export_library(host, tmp_path / "1.so", **options)
    assert open_library(one).report.metadata == {"version": "1"}
