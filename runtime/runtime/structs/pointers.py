"""Arrays of pointers, for parameters such as ``T **``: lists, and handles of pointers."""

from __future__ import annotations

from array import array

from .._core import Handle, c_type_of
from ..error import shown
from .layout import Layouts, Refused
from .packing import Packing, pointee_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._core import Function


def packed_pointers(
    function: Function, layouts: Layouts, name: str, code: str, value: Any
) -> tuple[memoryview, tuple[Any, ...], Any]:
    """Return the addresses of the items, as `packed` does; a NULL follows them.

    A list gets handles in place of the items whose pointers the function changed.
    """
    inner = code.partition("[")[0][1:]
    if isinstance(value, Handle):
        return _in_place(inner, value, code[0] == "*"), (value,), None
    if not isinstance(value, list | tuple):
        text = f"expected a list of arrays or handles, a handle or None, found {shown(value)}"
        raise Refused(TypeError, text)
    packing = Packing(function, layouts)
    before = [packing.address(inner, item, f"{name}[{i}]") for i, item in enumerate(value)]
    data = array("Q", [*before, 0])

    def finish() -> None:
        packing.finish()
        for i, (old, new) in enumerate(zip(before, data, strict=False)):
            if old == new:
                continue
            if isinstance(value, tuple):
                text = f"{function.name}: {name!r}: item {i} was changed by the function"
                raise TypeError(f"{text}, expected a list, whose items are updated; pass a list")
            value[i] = packing.pointer(inner, new)

    return memoryview(data)[: len(before)], tuple(packing.kept), finish


def _in_place(inner: str, value: Handle, is_written: bool) -> memoryview:
    """View pointers in C memory; refuse others than the parameter's."""
    type_ = c_type_of(value)
    item = type_.target if type_.code[-1:] == "]" and type_.target is not None else type_
    name = pointee_name(inner)
    is_pointer = item.code[:1] in ("*", "&", "@") or item.code in ("str", "strs", "fn")
    if not is_pointer or (name and item.name not in (None, f"{name} *")):
        text = f"expected a handle of pointers to {name or 'void'}, found {value!r}"
        raise Refused(TypeError, f"{text}; make one with runtime.new(model, '{name or 'void'} *')")
    view = memoryview(value)  # type: ignore[arg-type]
    if view.readonly and is_written:
        raise Refused(TypeError, f"expected writable pointers, found const ones of {value!r}")
    return view.cast("B").cast("Q")
