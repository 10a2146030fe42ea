"""Headers: the functions of installed libraries, and of a small one."""

from __future__ import annotations

from pathlib import Path

import pytest

import packer
from runtime.error import ExportError

from ...support import needs
from ...support.read_source import compile_errors

INSTALLED = {
    "samplerate": ("libsamplerate0-dev", 20),
    "zlib": ("zlib1g-dev", 70),
    "sqlite3": ("libsqlite3-dev", 250),
}


@pytest.mark.parametrize("name", INSTALLED)
def test_an_installed_header_is_read(tmp_path: Path, name: str) -> None:
    """Most functions of each are exported, and the compiler confirms every one."""
    package, least = INSTALLED[name]
    needs.header(f"{name}.h", package)
    module = packer.from_header(f"/usr/include/{name}.h")
    assert len(module.functions) >= least
    assert all(module.left_out.values())
    assert compile_errors(module, tmp_path, "-Wall", "-Wextra") == ""


def test_a_header_with_changes(tmp_path: Path) -> None:
    """Headers beside it count, those of the system do not; changes replace, add and leave out."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own/part.h").write_text("#include <math.h>\nlong part(long a);\n")
    (tmp_path / "x.h").write_text(
        '#include "own/part.h"\n#define triple(x) (3 * (x))\nint stats(double *mean, int n);\n'
        "static inline int one(void) { return 1; }\nint gone(int a);\nint @;\nint odd(int, @);\n"
    )
    changes = {"stats": {"out": ["mean"]}, "triple": "long(long x)", "gone": False}
    (tmp_path / "x.h").write_text((tmp_path / "x.h").read_text().replace("int @;\n", ""))
    module = packer.from_header(tmp_path / "x.h", functions=changes)
    found = {d.name: d for d in module.functions}
    assert set(found) == {"part", "one", "stats", "triple"}
    assert found["stats"].out == ("mean",)
    assert found["triple"].symbol == "__packer_call_triple"
    assert list(module.left_out) == ["odd"]
    by_another_path = packer.from_header(tmp_path / "own/../x.h", functions=changes)
    assert by_another_path.functions == module.functions
    with pytest.raises(ExportError, match="function 'stats': out 'm': no such parameter"):
        packer.from_header(tmp_path / "x.h", functions={"stats": {"out": ["m"]}})


def test_only_some_functions_of_a_header(tmp_path: Path) -> None:
    """Those of `only` are read, and those of `functions`; no reasons are given for others."""
    (tmp_path / "x.h").write_text(
        "struct foo;\nint open(struct foo **made);\nint a(int);\nint b(int);\nint c(int, ...);\n"
    )
    path = tmp_path / "x.h"
    module = packer.from_header(path, only=["open", "a"], functions={"b": {"doc": "B."}})
    assert [(d.name, d.out, d.doc) for d in module.functions] == [
        ("open", ("made",), ""),
        ("a", (), ""),
        ("b", (), "B."),
    ]
    assert module.left_out == {}
    with pytest.raises(ExportError, match="function 'd': the source does not declare d"):
        packer.from_header(path, only=["d"])
    with pytest.raises(ExportError, match="function 'c': .* a variable number of arguments"):
        packer.from_header(path, only=["c"])
    with pytest.raises(ExportError, match="only: expected a list"):
        packer.from_header(path, only="a")


def test_a_wrong_declaration_of_a_call_is_a_compile_error(tmp_path: Path) -> None:
    """The compiler compares the call with the prototype of the header, and names the function."""
    (tmp_path / "x.h").write_text("int sum(const double *x, int n);\n")
    changes = {"sum": "int(const float *x, int n)"}
    errors = compile_errors(packer.from_header(tmp_path / "x.h", functions=changes), tmp_path)
    assert "<declaration of sum>" in errors
    with pytest.raises(ExportError, match="there is no such header"):
        packer.from_header(tmp_path / "nonesuch.h")
