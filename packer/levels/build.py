"""LevelBuild: the compiled files of host code become one object for each level, and a dispatcher.

In the object of a level each function is hidden, under a name that only this level uses, so calls
within a level are direct. COMDAT groups are dissolved: otherwise a linker would keep the templates
and inline functions of one level for all. Variables keep their names. The lowest level that has one
defines it, and the other levels refer to it. Function pointers in initial values refer to
the dispatcher's functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..elf import structures as elf
from ..elf.object_edit import EditedObject, objects_of
from .dispatcher import Dispatched, dispatcher
from .lowest_only import no_machine_code, reason_of
from .variables import (
    Variable,
    align_variables,
    difference,
    places_of,
    shared_data,
    variable_at,
    variables_of,
)

if TYPE_CHECKING:
    from ..elf.structures import SymbolEntry
    from .table import Level

# (output, objects, archives): merges objects, and all members of archives.
Merge = Callable[[Path, Sequence[Path], Sequence[Path]], None]


class LevelInput(NamedTuple):
    """The compiled code of one host module."""

    name: str  # what messages call it
    files: tuple[Path, ...]  # its objects, or archives, one for each level


class LevelBuild:
    """The objects of the levels of one export: at least two levels, lowest first.

    `inputs` is the code of host modules; functions of `others`, further objects of the link,
    replace weak ones. ``merge(output, objects, archives)`` makes one object. `objects` has the
    object of each level; it is empty if no input can be of several levels. `dispatcher` is C
    source, to be linked before them. `lowest` has the inputs of which only the file of the lowest
    level is linked, each with the reason.
    """

    def __init__(
        self,
        levels: Sequence[Level],
        inputs: Sequence[LevelInput],
        others: Sequence[Path],
        merge: Merge,
        folder: Path,
    ) -> None:
        self._levels = levels
        reasons = {one: _reason(one) for one in inputs}
        self.lowest = {one: reason for one, reason in reasons.items() if reason}
        self.objects: list[Path] = []
        self.dispatcher: Path | None = None
        built = [one for one in inputs if not reasons[one]]
        if not built:
            return
        fixed = [*(one.files[0] for one in self.lowest), *others]
        self._outside = _Outside([found for path in fixed for found in objects_of(path)])
        for index in range(len(levels)):
            self.objects.append(folder / f"level{index}.o")
            files = [one.files[index] for one in built]
            archives = [path for path in files if path.suffix == ".a"]
            merge(self.objects[-1], [path for path in files if path not in archives], archives)
        self.dispatcher = folder / "levels.c"
        self.dispatcher.write_text(dispatcher(levels, self._edit()), encoding="utf-8")

    def _edit(self) -> list[Dispatched]:
        """Edit the objects, and return the functions of the dispatcher."""
        known: set[str] = set()  # variables of lower levels
        wanted: set[str] = set()
        defined: list[dict[str, tuple[SymbolEntry, bool]]] = []
        pairs = zip(self._levels, self.objects, strict=True)
        objects = [EditedObject(path, f"the code of {level.name}") for level, path in pairs]
        align_variables(objects)
        for level, path, found in zip(self._levels, self.objects, objects, strict=True):
            functions = {
                name: (symbol, found.is_in_group(symbol))
                for _, name, symbol in found.globals()
                if symbol.st_shndx != elf.SHN_UNDEF and found.is_code(symbol)
            }
            is_lowest = not defined
            if is_lowest:
                wanted = _dispatch_initial_values(found, functions)
            known |= _share_variables(found, known)
            _hide_functions(found, level.prefix, self._outside.strong)
            found.dissolve_groups(keeps_data=is_lowest)
            found.write(path)
            defined.append(functions)
        return list(self._dispatched(defined, wanted | self._outside.undefined))

    def _dispatched(
        self, defined: Sequence[dict[str, tuple[SymbolEntry, bool]]], wanted: set[str]
    ) -> Iterator[Dispatched]:
        """Yield the functions of the lowest level that other code may call.

        C++ templates and inline functions are yielded only if other code does call them.
        """
        for name, (symbol, is_in_group) in defined[0].items():
            is_weak = symbol.st_info >> 4 != elf.STB_GLOBAL
            if is_in_group and name.startswith("_Z") and name not in wanted:
                continue
            if is_weak and name in self._outside.strong:
                continue
            targets, best = [], ""
            for level, functions in zip(self._levels, defined, strict=True):
                best = f"{level.prefix}{name}" if name in functions else best
                targets.append(best)
            is_hidden = symbol.st_other & 3 in (1, elf.STV_HIDDEN)
            yield Dispatched(name, tuple(targets), is_weak, is_hidden)


class _Outside:
    """The names of objects that are not of levels: strong definitions, and undefined symbols."""

    def __init__(self, objects: Sequence[EditedObject]) -> None:
        self.strong: set[str] = set()
        self.undefined: set[str] = set()
        for found in objects:
            for _, name, symbol in found.globals():
                if symbol.st_shndx == elf.SHN_UNDEF:
                    self.undefined.add(name)
                elif symbol.st_info >> 4 == elf.STB_GLOBAL:
                    self.strong.add(name)


def _reason(one: LevelInput) -> str:
    """Return why an input is linked at the lowest level only; empty if it is not."""
    lowest: dict[str, Variable] = {}
    for path in one.files:
        objects = list(objects_of(path))
        if not objects:
            raise no_machine_code(one.name)
        variables: dict[str, Variable] = {}
        for item in objects:
            if reason := reason_of(item, one.name):
                return reason
            variables = variables_of(item) | variables
        lowest = lowest or variables
        if reason := difference(lowest, variables):
            return reason
    return ""


def _share_variables(found: EditedObject, known: set[str]) -> set[str]:
    """Let a level use the variables that lower levels define; return the others."""
    own = set()
    for index, name, symbol in list(shared_data(found)):
        if name in known:
            info = elf.symbol_info(elf.STB_GLOBAL, symbol.st_info & 15)
            found.symbols[index] = symbol._replace(
                st_shndx=elf.SHN_UNDEF, st_info=info, st_value=0, st_size=0
            )
        else:
            own.add(name)
    return own


def _hide_functions(found: EditedObject, prefix: str, replaced: set[str]) -> None:
    """Rename and hide the functions of a level; weak ones that others replace become undefined."""
    for index, name, symbol in found.globals():
        if symbol.st_shndx == elf.SHN_UNDEF or not found.is_code(symbol):
            continue
        kind = symbol.st_info & 15
        info = elf.symbol_info(elf.STB_GLOBAL, kind)
        if symbol.st_info >> 4 == elf.STB_WEAK and name in replaced:
            found.symbols[index] = symbol._replace(st_shndx=0, st_info=info, st_value=0, st_size=0)
            continue
        found.names[index] = f"{prefix}{name}"
        other = symbol.st_other & ~3 | elf.STV_HIDDEN
        found.symbols[index] = symbol._replace(st_info=info, st_other=other)


def _dispatch_initial_values(
    found: EditedObject, functions: dict[str, tuple[SymbolEntry, bool]]
) -> set[str]:
    """Let the initial values of shared variables name functions of the dispatcher; return these."""
    places, added = places_of(found), dict[str, int]()
    numbers = {i: n for i, n, s in found.globals() if n in functions and s.st_shndx}
    for relocation in found.relocations():
        name = numbers.get(relocation.symbol)
        if name is None or variable_at(places, relocation) is None:
            continue
        if name not in added:
            added[name] = found.add_undefined(name)
        found.retarget(relocation, added[name])
    return set(added)
