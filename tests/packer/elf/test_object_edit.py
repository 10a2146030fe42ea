"""EditedObject: symbols of an object are changed, and read back by binutils."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from packer.elf import structures as elf
from packer.elf.object_edit import EditedObject
from runtime.error import ExportError

from ...support import needs

SOURCE = "extern int other(int);\nint own(int x) { return other(x) + 1; }\nint data = 3;\n"


@pytest.fixture(params=["gcc", "clang"])
def made(request, tmp_path) -> Path:
    """An object; clang stores the names of sections and symbols in one table."""
    (tmp_path / "a.c").write_text(SOURCE)
    command = [needs.program(request.param), "-fPIC", "-O1", "-c", "a.c", "-o", "a.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    return tmp_path / "a.o"


def names(path: Path) -> dict[str, str]:
    """Return the kind of each global symbol, as nm shows it."""
    text = subprocess.check_output(["nm", "-g", path], text=True)
    return {line.split()[-1]: line.split()[-2] for line in text.splitlines()}


def test_unchanged_object_stays_valid(made) -> None:
    """Its sections keep their names, and its symbols too."""
    before = (
        names(made),
        subprocess.check_output(["readelf", "-SW", made], text=True).count(".text"),
    )
    EditedObject(made, "a.o").write(made)
    after = names(made), subprocess.check_output(["readelf", "-SW", made], text=True).count(".text")
    assert before == after
    assert before[0] == {"own": "T", "data": "D", "other": "U"}


def test_renamed_and_added_symbols(made) -> None:
    """A relocation may refer to a new symbol."""
    found = EditedObject(made, "a.o")
    numbers = {name: index for index, name, _ in found.globals()}
    found.names[numbers["own"]] = "mine"
    new = found.add_undefined("replaced")
    for relocation in found.relocations():
        if relocation.symbol == numbers["other"]:
            found.retarget(relocation, new)
    found.write(made)
    assert names(made) == {"mine": "T", "data": "D", "other": "U", "replaced": "U"}
    shown = subprocess.check_output(["objdump", "-dr", made], text=True)
    assert ("replaced" in shown, "other" in shown) == (True, False)


def test_damaged_relocation_is_refused(made) -> None:
    """It refers to a symbol that does not exist."""
    found = EditedObject(made, "a.o")
    relocation = next(found.relocations())
    found.retarget(relocation, 1000)
    found.write(made)
    with pytest.raises(ExportError, match=r"a\.o: a relocation at 0x\w+ of symbol 1000, expected"):
        list(EditedObject(made, "a.o").relocations())


def test_file_of_another_kind_is_refused(tmp_path) -> None:
    """The error names it."""
    (tmp_path / "a.o").write_text("text")
    with pytest.raises(ExportError, match="a.o: begins with b'text', expected a relocatable ELF"):
        EditedObject(tmp_path / "a.o", "a.o")


def test_kinds_of_symbols(made) -> None:
    """Code and variables, in no group."""
    found = EditedObject(made, "a.o")
    kinds = {
        name: (found.is_code(symbol), found.is_in_group(symbol))
        for _, name, symbol in found.globals()
        if symbol.st_shndx != elf.SHN_UNDEF
    }
    assert kinds == {"own": (True, False), "data": (False, False)}
