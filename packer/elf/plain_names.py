"""Give packed C functions the plain names of the C functions that they call, in one object."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from runtime.error import ExportError

from ..dialect import PACKED_PREFIX, RAW_PREFIX
from ..files.text import shown_path
from . import structures as elf
from .object_edit import EditedObject, objects_of

_SAFE_CALL = "__tvm_ffi_"


def give_plain_names(path: Path, kept: Collection[str]) -> set[str]:
    """Rename and hide the C functions that packed ones replace, and hide all other C functions.

    The object at `path` has all host code and the glue, and is edited in place. The C functions
    `kept` stay visible. Return the names of the packed functions. Raises ExportError if the object
    does not define a function that a packed one calls by the same name.
    """
    found = EditedObject(path, "the host code")
    start = len(PACKED_PREFIX)
    packed = {name[start:] for name in found.names if name.startswith(PACKED_PREFIX)}
    for index, name, symbol in list(found.globals()):
        if name in packed and symbol.st_shndx == elf.SHN_UNDEF:
            text = f"legacy_calls: function {name!r} is defined by another library, which needs the"
            raise ExportError(
                f"{text} name too; export it under another name with symbol = {name!r}"
            )
        if name.startswith(PACKED_PREFIX):
            found.names[index] = name[start:]
        elif name in packed:
            found.names[index] = RAW_PREFIX + name
            _hide(found, index)
        elif found.is_code(symbol) and name not in kept and not name.startswith(_SAFE_CALL):
            _hide(found, index)
    found.write(path)
    return packed


def _hide(found: EditedObject, index: int) -> None:
    symbol = found.symbols[index]
    other = symbol.st_other & ~3 | elf.STV_HIDDEN
    found.symbols[index] = symbol._replace(st_other=other)


def refuse_callers(paths: Iterable[Path], packed: Collection[str]) -> None:
    """Refuse further objects and archives that call a C function by its plain name.

    Raises ExportError if one does; the message names it.
    """
    for path in (path for path in paths if path.suffix in (".o", ".a")):
        for one in objects_of(path):
            names = {n for _, n, symbol in one.globals() if symbol.st_shndx == elf.SHN_UNDEF}
            if called := sorted(names.intersection(packed)):
                text = f"legacy_calls: {shown_path(path)} calls {', '.join(called)}"
                raise ExportError(f"{text}, expected host code; make it a module, not an addon")
