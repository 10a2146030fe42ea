"""Handles: opaque pointers that a library returned."""

from __future__ import annotations

import copy
import gc
import pickle
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import runtime
from runtime._core import Library

from ...support.paths import C_SOURCES
from .dlpack_producers import Probe

SOURCE = "declared.c"


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The texts of the errors that sys.unraisablehook gets."""
    found: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda event: found.append(str(event.exc_value)))
    yield found
    found.clear()


def test_handle_shows_kind_and_address(probe: Probe) -> None:
    """The kind is the name of the struct, the address is the pointer."""
    counter = probe("counter_new")(3)
    assert isinstance(counter, runtime.Handle)
    assert (counter.kind, counter.closed) == ("counter", False)
    assert repr(counter) == f"<Handle counter at {counter.address:#x}>"
    assert probe("counter_next")(counter) == 3


def test_handle_is_released_with_its_last_reference(probe: Probe, is_closed) -> None:
    """The function that `free` names is called once."""
    counter = probe("counter_new")(3)
    assert not is_closed()
    del counter
    assert is_closed()


def test_handle_in_a_cycle_is_released_by_the_collector(probe: Probe, is_closed) -> None:
    """The garbage collector may drop the last reference."""
    cycle = [probe("counter_new")(3)]
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert is_closed()


def test_use_after_close_is_an_error(probe: Probe, is_closed) -> None:
    """close() releases it once; the message names the function, the argument and the kind."""
    counter = probe("counter_new")(3)
    counter.close()
    counter.close()
    assert counter.closed and is_closed()
    expected = (
        "^counter_next: argument 1 'c': expected an open handle, found a handle 'counter' that"
    )
    with pytest.raises(ValueError, match=expected):
        probe("counter_next")(counter)
    assert repr(counter).endswith(", closed>")


def test_explicit_call_of_the_release_closes(probe: Probe, is_closed) -> None:
    """The program may call the function itself."""
    counter = probe("counter_new")(3)
    probe("counter_free")(counter)
    assert counter.closed and is_closed()
    with pytest.raises(ValueError, match="expected an open handle"):
        probe("counter_free")(counter)


def test_refused_argument_leaves_the_handle_open(probe: Probe, is_closed) -> None:
    """The release was not called, so the handle still owns the object."""
    counter = probe("counter_new")(3)
    with pytest.raises(TypeError, match="counter_free: argument 2"):
        probe("counter_free")(counter, object())
    with pytest.raises(ValueError, match="counter_free: argument 2: expected an open handle"):
        probe("counter_free")(counter, counter)
    assert not counter.closed
    del counter
    assert is_closed()


def test_handle_is_a_context_manager(probe: Probe, is_closed) -> None:
    """The end of the block closes it, also after an exception."""
    with pytest.raises(KeyError), probe("counter_new")(3) as counter:
        raise KeyError
    assert counter.closed and is_closed()


def test_kinds_are_not_confused(probe: Probe) -> None:
    """A handle is passed only as its own kind."""
    expected = "expected a handle 'other', found a handle 'counter'; declared as int other_use"
    with pytest.raises(TypeError, match=expected):
        probe("other_use")(probe("counter_new")(3))


def test_handle_without_a_kind_is_accepted(probe: Probe) -> None:
    """Like C's void *, in both directions."""
    pointer = probe("any_pointer")()
    assert (pointer.kind, repr(pointer)) == (None, f"<Handle at {pointer.address:#x}>")
    assert probe("counter_next")(pointer) == probe("counter_next")(pointer) - 1
    counter = probe("counter_new")(3)
    assert probe("address")(counter) == counter.address


def test_handle_of_another_library_is_refused(compile_library, tmp_path: Path) -> None:
    """Two copies of a library have different structs."""
    file = compile_library((C_SOURCES / SOURCE).read_text())
    one, two = (runtime.load(shutil.copy(file, tmp_path / f"{name}.so")) for name in "ab")
    with pytest.raises(ValueError, match="expected a handle of this library, found a handle"):
        two["counter_next"](one["counter_new"](3))


def test_null_is_none(probe: Probe) -> None:
    """In both directions."""
    assert probe("counter_new")(-1) is None
    assert probe("counter_next")(None) == -1


def test_equality_is_that_of_address_and_kind(probe: Probe) -> None:
    """Handles are hashable; other comparisons are not defined."""
    pointer, same, counter = probe("any_pointer")(), probe("any_pointer")(), probe("counter_new")(1)
    assert pointer == same and hash(pointer) == hash(same)
    assert pointer != counter and pointer != pointer.address
    with pytest.raises(TypeError, match="'<' not supported"):
        _ = pointer < same


@pytest.mark.parametrize("operation", [copy.copy, pickle.dumps])
def test_handle_is_not_copied(probe: Probe, operation: Callable[[Any], Any]) -> None:
    """A copy would release the object twice."""
    with pytest.raises(TypeError, match=r"cannot pickle 'runtime\.Handle' object"):
        operation(probe("counter_new")(3))
    with pytest.raises(TypeError, match="cannot create"):
        runtime.Handle()


def test_handle_in_a_mapping_is_released_without_the_collector(probe: Probe, is_closed) -> None:
    """A call leaves no cycles."""
    gc.disable()
    try:
        record = {"x": 1.0, "counter": probe("counter_new")(3)}
        probe("update")(record)
        del record
        assert is_closed()
    finally:
        gc.enable()


def test_handle_keeps_the_library_open(library_of_handles: Path) -> None:
    """The module and its functions may be dropped before the handle."""
    counter = runtime.load(library_of_handles)["counter_new"](3)
    gc.collect()
    assert str(library_of_handles) in Path("/proc/self/maps").read_text()
    counter.close()
    del counter
    gc.collect()
    assert str(library_of_handles) not in Path("/proc/self/maps").read_text()


@pytest.fixture
def library_of_handles(compile_library, tmp_path: Path) -> Path:
    """A copy for one test."""
    file = compile_library((C_SOURCES / SOURCE).read_text())
    return Path(shutil.copy(file, tmp_path / "handles.so"))


def test_error_of_a_release_is_raised_by_close(probe: Probe, unraisable: list[Any]) -> None:
    """With the last reference it can only be reported."""
    counter = probe("counter_new")(13)
    with pytest.raises(ValueError, match="counter 13 cannot be released"):
        counter.close()
    counter = probe("counter_new")(13)
    del counter
    assert unraisable == ["counter 13 cannot be released"]


def test_pending_exception_survives_a_failing_release(probe: Probe, unraisable: list[Any]) -> None:
    """A handle may die while an exception is on its way."""

    def fail() -> None:
        probe("counter_next")(probe("counter_new")(13), 1 / 0)

    with pytest.raises(ZeroDivisionError):
        fail()
    assert unraisable == ["counter 13 cannot be released"]


def test_handle_is_not_closed_during_a_call(probe: Probe) -> None:
    """A callback or another thread cannot free what a call is using."""
    counter = probe("counter_new")(5)
    with pytest.raises(ValueError, match="in use by a call; close it after the call"):
        probe("call_with")(counter, lambda _: counter.close())
    with pytest.raises(ValueError, match="found a handle 'counter' in use; release it after"):
        probe("call_with")(counter, lambda _: probe("counter_free")(counter))
    errors: list[BaseException] = []

    def close() -> None:
        try:
            counter.close()
        except ValueError as error:
            errors.append(error)

    def close_in_thread(_: object) -> int:
        thread = threading.Thread(target=close)
        thread.start()
        thread.join()
        return 0

    probe("call_with")(counter, close_in_thread)
    assert len(errors) == 1 and not counter.closed
    counter.close()


def test_callback_gets_a_handle_without_kind(probe: Probe) -> None:
    """It is borrowed: its end releases nothing."""
    counter = probe("counter_new")(5)
    seen: list[Any] = []

    def record(pointer: runtime.Handle) -> int:
        seen.append((pointer.kind, pointer.address))
        return probe("counter_next")(pointer)

    assert probe("call_with")(counter, record) == 5
    assert seen == [(None, counter.address)] and probe("counter_next")(counter) == 6


def test_release_that_the_library_lacks_is_named(probe: Probe) -> None:
    """An export checks this; a library of another tool may not."""
    expected = "no_release: free, expected a function of the library, found 'missing'; export it"
    with pytest.raises(ValueError, match=expected):
        probe("no_release")()


def test_handle_is_passed_to_a_function_without_metadata(library: Library, probe: Probe) -> None:
    """Only its state is checked."""
    counter = probe("counter_new")(3)
    tuple_of = runtime.get_global_func("ffi.Array")
    (again,) = tuple_of(counter)
    assert again == again and again.address == counter.address and again.kind is None


@pytest.mark.parametrize("where", ["builtins.kept", "kept"])
def test_handle_at_interpreter_exit(library_of_handles: Path, where: str) -> None:
    """A handle that is alive at the end is released or left; nothing crashes."""
    code = (
        f"import builtins, runtime\nmodule = runtime.load({str(library_of_handles)!r})\n"
        f"{where} = [module['counter_new'](3), module['counter_new'](13)]\n"
        f"{where}.append({where})\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0
    assert ran.stderr == "" or "counter 13 cannot be released" in ran.stderr
