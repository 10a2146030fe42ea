"""Parts of a library outlive it; callbacks, cycles and destructors end as they should."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime
from runtime._core import Library, TensorBase

from ...support.mapped import is_mapped


def _metadata(library: Library) -> memoryview:
    view = library.data("__packer_fn_add")
    assert view is not None
    return view


PARTS: dict[str, Callable[[Library], Any]] = {
    "function": lambda library: library.function("add", None),
    "view": _metadata,
    "slice": lambda library: _metadata(library)[3:9],
    "array": lambda library: np.frombuffer(_metadata(library), "u1")[::2],
    "tensor": lambda library: TensorBase(_metadata(library)[:4], (4,), (1, 8, 1)),
}


@pytest.mark.parametrize("part", PARTS)
def test_part_outlives_its_library(part: str, probe_file: Path) -> None:
    """A part of a library keeps it open, and releases it."""
    kept = PARTS[part](Library(str(probe_file)))
    gc.collect()
    assert is_mapped(probe_file)
    assert kept(40, 2) == 42 if part == "function" else bytes(memoryview(kept)[:2])
    del kept
    assert not is_mapped(probe_file)


def test_weak_reference_to_a_root_ends_with_it(probe_file: Path) -> None:
    """A module is weakly referenced by `load` alone; a look-up's cache holds no cycle for long."""
    module = runtime.load(probe_file)
    gone = weakref.ref(module)
    assert module["add"](40, 2) == 42
    assert runtime.load(probe_file) is module
    del module
    gc.collect()
    assert gone() is None
    assert not is_mapped(probe_file)


def test_cycle_through_a_callback_is_collected(functions_file: Path) -> None:
    """A callable that holds the function it is passed to does not keep the library for ever."""
    functions: list[Any] = []
    functions += [Library(str(functions_file)).function("apply", functions)]
    assert functions[0](lambda: len(functions)) == 1
    functions.clear()
    gc.collect()
    assert not is_mapped(functions_file)


def test_callback_drops_everything_that_it_can(functions_file: Path) -> None:
    """The code that is returned to is still there; after the call it is not."""
    held: dict[str, Any] = {"library": Library(str(functions_file))}
    held["apply"] = held["library"].function("apply", held["library"])

    def forget() -> bool:
        held.clear()
        gc.collect()
        return is_mapped(functions_file)

    assert held.pop("apply")(forget) is True
    assert not is_mapped(functions_file)


def test_failing_callback_drops_everything_that_it_can(functions_file: Path) -> None:
    """The error's message and traceback need no freed object."""
    held: dict[str, Any] = {"library": Library(str(functions_file))}
    held["apply"] = held["library"].function("apply", held["library"])

    def forget() -> object:
        held.clear()
        gc.collect()
        return object()

    with pytest.raises(TypeError, match="found"):
        held.pop("apply")(forget)
    assert not is_mapped(functions_file)


def test_argument_that_unloads_when_it_is_released(functions_file: Path) -> None:
    """A producer's own code runs after the call, and may drop the library's last name."""
    held: dict[str, Any] = {"library": Library(str(functions_file))}
    held["type_index"] = held["library"].function("type_index", held["library"])

    class Drops:
        def __init__(self) -> None:
            self.data = np.ones(4, "f4")

        def __dlpack__(self, **options: Any) -> Any:
            held.clear()
            return self.data.__dlpack__(**options)

    assert held.pop("type_index")(Drops()) == 7
    assert not is_mapped(functions_file)


def test_destructor_that_raises_an_error_is_nobodys(
    compile_library: Callable[..., Path], tmp_path: Path
) -> None:
    """An error that a library's destructor leaves in the slot is not the next call's error."""
    raises = """
#include "dso_packer.h"
void (*__TVMFFIErrorSetRaisedFromCStr)(const char *, const char *);
__attribute__((destructor)) static void leave(void) { dso_raise("KeyError", "too late"); }
DSO_EXPORT int __tvm_ffi_fail(void *h, const dso_any *a, int32_t n, dso_any *r) {
  (void)h, (void)a, (void)n, (void)r;
  return -1;
}
"""
    other = Library(str(compile_library(raises + "int other;"))).function("fail", None)
    path = tmp_path / "raises.so"
    path.write_bytes(compile_library(raises).read_bytes())
    library = Library(str(path))
    try:
        raise LookupError("pending")
    except LookupError:
        del library
    assert not is_mapped(path)
    assert other is not None
    with pytest.raises(RuntimeError, match="returned -1 without raising"):
        other()
