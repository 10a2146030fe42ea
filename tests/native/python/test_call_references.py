"""References after every kind of call: none is left."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime
from runtime._core import Library, TensorBase

FLOAT32 = (2, 32, 1)


class _Refuses:
    """A producer that cannot be asked."""

    def __dlpack__(self, **_options: object) -> object:
        raise BufferError("not now")


def _raise(*_values: object) -> None:
    raise KeyError("from the callback")


# Each ends in its own place: before the call, in it, at its result.
OUTCOMES: dict[str, tuple[str, tuple[Any, ...], type[Exception] | None]] = {
    "int": ("add", (10**15, 10**16), None),
    "text": ("type_index", ("text" * 9,), None),
    "bytes": ("echo", (b"bytes" * 9,), None),
    "array": ("first", (np.ones(4, "f4"),), None),
    "strides": ("scale", (np.ones(8, "f4")[::2], 2.0), None),
    "buffer": ("ndim", (bytearray(16),), None),
    "tensor": ("first", (TensorBase(bytes(16), (4,), FLOAT32),), None),
    "heap result": ("object", (65, "a string on the heap", 1, 1), None),
    "many": ("sum", tuple(range(10**6, 10**6 + 40)), None),
    "unknown type": ("count", (np.ones(4, "f4"), "text" * 9, object()), TypeError),
    "unknown type of many": ("count", (bytearray(9), *"abc" * 9, object()), TypeError),
    "int too large": ("add", (bytearray(9), 2**70), OverflowError),
    "text with NUL": ("count", (bytearray(9), "a\0b"), ValueError),
    "text of surrogates": ("count", (bytearray(9), "\ud800"), ValueError),
    "read-only": ("scale", (memoryview(bytes(8)).cast("f"), 2.0), ValueError),
    "dlpack refused": ("count", (bytearray(9), _Refuses()), ValueError),
    "raised": ("fail", ("ValueError", "text" * 9), ValueError),
    "raised unknown": ("fail", ("NoSuchError", "text" * 9), RuntimeError),
    "silent": ("fail_silently", (bytearray(9),), RuntimeError),
    "result not text": ("not_utf8", (bytearray(9),), ValueError),
    "result unknown": ("object", (9999, "text", 1, 1), TypeError),
    "result NULL": ("of_type", (65,), ValueError),
}
CALLBACKS: dict[str, tuple[str, tuple[Any, ...], type[Exception] | None]] = {
    "answers": ("apply", (lambda value: value, "text" * 9), None),
    "raises": ("apply", (_raise, bytearray(9)), KeyError),
    "result unknown": ("apply", (lambda: object(),), TypeError),
    "result too large": ("apply", (lambda: 2**70,), OverflowError),
    "argument unknown": ("apply", (_raise, object()), TypeError),
    "in a thread": ("apply_in_thread", (lambda number: number, 3), None),
    "raises in a thread": ("apply_in_thread", (_raise, 3), RuntimeError),
}


def _leaves_nothing(path: Path, name: str, arguments: tuple[Any, ...], error: Any) -> None:
    """Call often: all reference counts, and the number of blocks, stay the same."""
    library, owner = Library(str(path)), object()
    function = library.function(name, owner)
    assert function is not None

    def rounds(count: int) -> None:
        for _ in range(count):
            try:
                function(*arguments)
            except Exception as caught:
                assert error is not None and isinstance(caught, error), caught
            else:
                assert error is None

    rounds(20)
    watched = [*arguments, owner, library, function]
    before = [sys.getrefcount(each) for each in watched]
    # The interpreter's caches grow now and then; a leak grows each time.
    assert any(_new_blocks(lambda: rounds(300)) < 100 for _ in range(4))
    assert [sys.getrefcount(each) for each in watched] == before


def _new_blocks(run: Callable[[], None]) -> int:
    gc.collect()
    blocks = sys.getallocatedblocks()
    run()
    gc.collect()
    return sys.getallocatedblocks() - blocks


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_call_leaves_no_reference(outcome: str, probe_file: Path) -> None:
    """Arguments, function, owner and library, after success and after each kind of failure."""
    _leaves_nothing(probe_file, *OUTCOMES[outcome])


@pytest.mark.parametrize("outcome", CALLBACKS)
def test_callback_leaves_no_reference(outcome: str, functions_file: Path) -> None:
    """References are the same when C code calls Python."""
    _leaves_nothing(functions_file, *CALLBACKS[outcome])


def test_wrong_call_of_the_library_leaves_no_reference(probe_file: Path) -> None:
    """Failing look-ups release the references that they took."""
    library, owner, name = Library(str(probe_file)), object(), "no such function"
    before = [sys.getrefcount(each) for each in (library, owner, name)]
    for _ in range(50):
        assert library.function(name, owner) is None
        assert library.data(name) is None
        with pytest.raises(TypeError):
            library.function(owner, name)  # type: ignore[arg-type]
        with pytest.raises(runtime.LibraryLoadError):
            library.data("__tvm_ffi_add")
    assert [sys.getrefcount(each) for each in (library, owner, name)] == before
