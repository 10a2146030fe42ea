"""Why an object is linked at the lowest level only, where its code exists once.

A constructor would run for each level. A thread-local would exist for each level. A shared variable
has one initial value, which may name functions that only one level has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.error import ExportError

from ..elf import structures as elf
from ..elf.object_edit import EditedObject
from .variables import places_of, variable_at

if TYPE_CHECKING:
    from ..elf.structures import SectionHeader, SymbolEntry
    from .variables import Places

_INIT_TYPES = (elf.SHT_INIT_ARRAY, elf.SHT_FINI_ARRAY, elf.SHT_PREINIT_ARRAY)
_INIT_NAMES = (".init_array", ".fini_array", ".preinit_array", ".ctors", ".dtors")
_LTO_NAMES = (".gnu.lto_", ".gnu.offload_lto_", ".llvm.lto")


def reason_of(found: EditedObject, name: str) -> str:
    """Return why an object cannot be one of several levels; empty if it can.

    Raises ExportError if it contains no machine code: the compiler was given ``-flto``.
    """
    if any(section.startswith(_LTO_NAMES) for section in found.section_names):
        raise no_machine_code(name)
    for section, title in zip(found.sections, found.section_names, strict=True):
        if section.sh_size and (section.sh_type in _INIT_TYPES or title.startswith(_INIT_NAMES)):
            return "it has constructors or destructors"
        if section.sh_flags & elf.SHF_TLS:
            return "it has thread-local variables"
    return _reason_of_data(found)


def no_machine_code(name: str) -> ExportError:
    """Return the error for an object that a linker would compile."""
    text = f"{name}: compiled with -flto, expected machine code for CPU levels; drop -flto"
    return ExportError(text, path=name)


def _reason_of_data(found: EditedObject) -> str:
    places = places_of(found)
    for relocation in found.relocations():
        target = found.symbols[relocation.symbol]
        if target.st_info >> 4 != elf.STB_LOCAL or (section := found.section_of(target)) is None:
            continue
        if _differs(section) and (name := variable_at(places, relocation)):
            what = "function" if section.sh_flags & elf.SHF_EXECINSTR else "variable"
            return f"its variable {name} refers to a static {what}"
        if name := _reached_as_local(found, target, section, places):
            return f"its code refers to the variable {name} without its name"
    return ""


def _differs(section: SectionHeader) -> bool:
    """Return True if what a section contains may differ from level to level."""
    return bool(section.sh_flags & (elf.SHF_EXECINSTR | elf.SHF_WRITE))


def _reached_as_local(
    found: EditedObject, target: SymbolEntry, section: SectionHeader, places: Places
) -> str:
    """Return the variable that fills the section of a local symbol, as -fdata-sections places it.

    Its other users reach it by name, and would have another copy.
    """
    whole = places.get(target.st_shndx, ()) if section.sh_flags & elf.SHF_WRITE else ()
    return next((n for start, end, n in whole if (start, end) == (0, section.sh_size)), "")
