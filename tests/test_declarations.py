"""Each row of docs/declarations.md: exported, called, and compared with cffi."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime

from .data.declarations import CDEF, ROWS, SOURCE, Row
from .support import needs
from .support.compile import INCLUDE


def declared(row: Row) -> dict[str, Any]:
    """The declaration of a row's function, by its name."""
    given: dict[str, Any] = {"declaration": row.type, **row.options}
    return {given.pop("name", row.name): given}


def load(folder: Path, source: str, *rows: Row) -> runtime.Module:
    """Export the functions of rows, and load them."""
    functions = {name: given for row in rows for name, given in declared(row).items()}
    host = packer.CSourceModule(source, functions=functions)
    return runtime.load(packer.export_library(host, folder / "rows.so"))


def evaluate(text: str, names: dict[str, Any]) -> Any:
    """Run statements, and return the value of the last one, an expression."""
    *statements, last = text.split("; ")
    exec("\n".join(statements), names)
    return eval(last, names)


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same functions by cffi, compiled by its own means."""
    cffi = needs.module("cffi", "test")
    folder = tmp_path_factory.mktemp("oracle")
    maker = cffi.FFI()
    maker.cdef(CDEF)
    maker.set_source("declared", SOURCE, include_dirs=[str(INCLUDE)], extra_compile_args=["-w"])
    maker.compile(tmpdir=str(folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        import declared  # type: ignore[import-not-found]
    return declared


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> runtime.Module:
    """The functions of all rows that every compiler takes, in one library."""
    rows = [row for row in ROWS if not row.compiler]
    return load(tmp_path_factory.mktemp("rows"), SOURCE, *rows)


def load_alone(row: Row, folder: Path) -> runtime.Module:
    """A library of one row, whose type the compiler of this machine may lack."""
    (folder / "type.c").write_text(row.compiler)
    command = ["gcc", "-fsyntax-only", folder / "type.c"]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        needs.system(row.compiler, "its compiler lacks the type")
    return load(folder, f"{row.prototype} {{ {row.body} }}", row)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row(row: Row, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The function returns, or raises, what the row says, and cffi's returns the same."""
    alone = load_alone(row, tmp_path) if row.compiler else None
    module = alone or request.getfixturevalue("library")
    names = {"np": np, **{name: module[name] for name in module.function_names()}}
    if row.result.startswith("raises "):
        kind, _, text = row.result.removeprefix("raises ").partition(": ")
        with pytest.raises(Exception, match=re.escape(text)) as caught:
            evaluate(row.python, names)
        assert caught.type.__name__ == kind
        return
    result = evaluate(row.python, names)
    assert result == eval(row.result, {"np": np})
    if row.cffi:
        made = request.getfixturevalue("oracle")
        assert result == evaluate(row.cffi, {**names, "ffi": made.ffi, "lib": made.lib})


@pytest.mark.parametrize("row", [row for row in ROWS if row.refused], ids=lambda row: row.name)
def test_what_is_refused_says_so(row: Row) -> None:
    """The prototype alone is refused, with the reason that the page gives."""
    with pytest.raises(runtime.ExportError, match=row.refused):
        packer.CSourceModule(SOURCE, functions={row.name: row.type})


def test_a_source_declares_the_rows_itself() -> None:
    """functions="auto" reads every prototype, and leaves out the refused ones."""
    host = packer.CSourceModule(SOURCE, functions="auto")
    rows = [row for row in ROWS if row.body and not row.compiler]
    assert set(host.left_out) == {row.name for row in rows if row.refused}
    assert {row.name for row in rows} <= {*host.left_out, *(d.name for d in host.functions)}


def test_the_page_has_sixty_rows_or_more() -> None:
    """docs/declarations.md is made of these rows (tests/test_docs.py)."""
    assert len({row.name for row in ROWS}) == len(ROWS) >= 60
