"""The variables of a library's C code, read and written through functions of the library.

A variable ``count`` has the function ``_packer_get_count``, and ``_packer_set_count`` unless it is
const. Of an array the first returns the address; ``_packer_size_table`` returns the bytes of one
whose extent only the compiler knows.
"""

from __future__ import annotations

from _collections_abc import MutableMapping

from .constants import not_found
from .error import PackerError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, NoReturn

    from ._core import Handle
    from .module import Module

GET, SET, SIZE = "_packer_get_", "_packer_set_", "_packer_size_"
# The format of memoryview for each code of an item.
FORMATS = {
    "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I",
    "i64": "q", "u64": "Q", "bool": "?", "f16": "e", "f32": "f", "f64": "d",
}  # fmt: skip


class Globals(MutableMapping[str, "Any"]):
    """A view of the variables of a tree: ``globals["count"]``, ``globals.count``.

    `parts` are modules, each with the codes of its variables; of equal names the first is found.
    `left_out` has the reasons of variables that an export left out.
    Variables have no locks: C code that runs in another thread may change one at the same time.
    """

    _parts: list[tuple[Module, Mapping[str, str]]]
    _left_out: Mapping[str, str]

    def __init__(
        self, parts: Iterable[tuple[Module, Mapping[str, str]]], left_out: Mapping[str, str]
    ) -> None:
        self.__dict__.update(_parts=list(parts), _left_out=left_out)

    def __getitem__(self, name: str) -> Any:
        module, code = self._find(name)
        value = module.get_function(GET + name)()
        if code[0] in ":!":
            place = _place(module, name, code, value)
            return place if code[1] == "{" or code[-1] == "]" else place[0]
        return _array(module, name, code, value) if "[" in code else value

    def __setitem__(self, name: str, value: object) -> None:
        module, code = self._find(name)
        if code[0] == ":":
            from .structs.members import assign_variable

            place = _place(module, name, code, module.get_function(GET + name)())
            assign_variable(place, name, value)
            return
        if "[" in code:
            raise PackerError(f"{name}: an array, expected items: globals[{name!r}][0] = ...")
        set_value = module.find_function(SET + name)
        if set_value is None:
            raise PackerError(f"{name}: a const variable, expected one to write")
        set_value(value)

    def __delitem__(self, name: str) -> NoReturn:
        raise PackerError(f"{name}: a variable of C cannot be deleted")

    def _find(self, name: str) -> tuple[Module, str]:
        for module, codes in self._parts:
            if name in codes:
                return module, codes[name]
        raise not_found("variable", name, list(self), self._left_out)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # of Python's protocols
            raise AttributeError(name)
        return self[name]

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value

    def __contains__(self, name: object) -> bool:
        return any(name in codes for _, codes in self._parts)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for _, codes in self._parts for name in codes))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        return f"<Globals of {len(self)} variables>"


def _place(module: Module, name: str, code: str, address: int) -> Handle:
    """Return a handle of a variable in place."""
    from .structs.memory import handle_to

    size = module.get_function(SIZE + name)() if "[]" in code else 0
    return handle_to(module, code[1:], address, code[0] == "!", size)


def _array(module: Module, name: str, code: str, address: int) -> memoryview:
    """View an array in place; the view keeps the module alive."""
    import ctypes

    is_const = code[0] == "&"
    item, *texts = code.lstrip("&*").replace("]", "").split("[")
    extents = [int(text or 0) for text in texts]
    inner = _item_nbytes(item)
    for extent in extents[1:]:
        inner *= extent
    if not texts[0]:
        extents[0] = int(module.get_function(SIZE + name)()) // inner
    memory = (ctypes.c_char * (inner * extents[0])).from_address(address)
    memory.module = module  # type: ignore[attr-defined]
    view: memoryview = memoryview(memory).cast("B").cast(FORMATS[item], extents)  # type: ignore[call-overload]
    return view.toreadonly() if is_const else view


def _item_nbytes(item: str) -> int:
    return 1 if item == "bool" else int(item[1:]) // 8
