"""packer diff: the differences of two libraries, and the exit codes of diff(1)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import packer
import runtime
from packer.inspect.diff import Difference, diff_libraries
from runtime.error import LibraryLoadError


def export(path: Path, *, code: str = "", ptx: str = "// a", options=(), **functions: str) -> Path:
    """A library of these functions over two CUDA modules, the second of which has this text."""
    sources = [f"{d.replace('(', f' {n}(', 1)} {{ return 0; }}" for n, d in functions.items()]
    root = packer.CSourceModule("\n".join([*sources, code, "int one;"]), functions=functions)
    for text in ("// one", ptx):
        root.import_module(runtime.DeviceModule("cuda", text, "ptx", []))
    return packer.export_library(root, path, options=options)


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    """The first library of each comparison."""
    return export(tmp_path_factory.mktemp("diff") / "a.so", f="long(long x)", g="int(void)")


def diff(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    command = [sys.executable, "-m", "packer", "diff", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def found(library: Path, other: Path) -> dict[tuple[str, str, str], tuple[object, object]]:
    """(group, item, field or kind) -> both values."""
    return {
        (d.group, d.item, d.field or d.kind): (d.a, d.b) for d in diff_libraries(library, other)
    }


def test_same_bytes_are_not_a_difference(library, tmp_path) -> None:
    """An export is deterministic, so another one of the same tree has no difference."""
    other = export(tmp_path / "b.so", f="long(long x)", g="int(void)")
    assert diff_libraries(library, other) == []
    run = diff(library, other)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_functions_are_compared_by_name_and_signature(library, tmp_path) -> None:
    """One changed, one removed, one new; symbols follow."""
    differences = found(library, export(tmp_path / "b.so", f="int(int x)", h="int(void)"))
    assert differences["functions", "f", "signature"] == ("long f(long x)", "int f(int x)")
    assert differences["functions", "g", "removed"][0]["signature"] == "int g(void)"
    assert differences["functions", "h", "added"][1]["abi"] == "safe_call"
    assert ("dynamic symbols", "__tvm_ffi_h", "added") in differences


def test_payloads_are_compared_by_digest_and_place(library, tmp_path) -> None:
    """The second of two twins has changed; the first has not."""
    other = export(tmp_path / "b.so", ptx="// b", f="long(long x)", g="int(void)")
    differences = found(library, other)
    old, new = differences["modules", "library/cuda#2", "sha256"]
    assert len(old) == len(new) == 64
    assert [key[1] for key in differences if key[0] == "modules"] == ["library/cuda#2"]


def test_needed_libraries_and_code_are_compared(library, tmp_path) -> None:
    """A library that is linked, and a body that has changed."""
    other = export(
        tmp_path / "b.so",
        code="double lgamma(double); double later(double x) { return lgamma(x); }",
        options=["-lm", "-Wl,-soname,other.so"],
        f="long(long x)",
        g="int(void)",
    )
    differences = found(library, other)
    assert ("needed", "libm.so.6", "added") in differences
    assert ("library", "library", "code") in differences
    assert differences["library", "library", "soname"] == (None, "other.so")


def test_other_bytes_alone_are_a_difference(library, tmp_path) -> None:
    """Libraries with different bytes are never reported as equal."""
    other = tmp_path / "b.so"
    other.write_bytes(library.read_bytes() + b"x")
    nbytes = library.stat().st_size
    expected = Difference("file", "bytes", "changed", "nbytes", nbytes, nbytes + 1)
    assert diff_libraries(library, other)[-1] == expected


def test_exit_codes_are_those_of_diff(library, tmp_path) -> None:
    """1 and a list where they differ; 2 and a message where one cannot be compared."""
    other = export(tmp_path / "b.so", g="int(void)")
    run = diff(library, other)
    assert (run.returncode, run.stderr) == (1, "")
    lines = run.stdout.splitlines()
    assert lines[:2] == [f"--- {library}", f"+++ {other}"]
    assert "  - long f(long x)" in lines
    run = diff(library, tmp_path / "none.so")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("packer: ")
    assert diff(library).returncode == 2


def test_json_lists_all(library, tmp_path) -> None:
    """The same differences, as data."""
    other = export(tmp_path / "b.so", g="int(void)")
    run = diff(library, other, "--json")
    content = json.loads(run.stdout)
    assert (run.returncode, content["schema"], content["same"]) == (1, 1, False)
    expected = json.loads(json.dumps([d.to_dict() for d in diff_libraries(library, other)]))
    assert content["differences"] == expected
    assert json.loads(diff(library, library, "--json").stdout)["same"] is True


def test_stripped_library_differs_in_static_symbols_and_their_names(library, tmp_path) -> None:
    """A load sees no difference; constructors have lost their names."""
    stripped = tmp_path / "stripped.so"
    subprocess.run(["strip", "-o", stripped, library], check=True)
    groups = {d.group for d in diff_libraries(library, stripped)}
    assert groups == {"static symbols", "constructors", "file"}


def test_file_that_is_not_a_library_is_refused(library, tmp_path) -> None:
    """Either of both."""
    (tmp_path / "text").write_text("text")
    for pair in ((library, tmp_path / "text"), (tmp_path / "text", library)):
        with pytest.raises(LibraryLoadError):
            diff_libraries(*pair)
