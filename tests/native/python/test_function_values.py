"""Functions as results and kept functions: who keeps whom."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runtime._core import Function, Library

from ...support.paths import C_SOURCES
from .callables import CallableObject, Probe, echo

SOURCE = "functions.c"


def test_function_is_called_without_python(probe: Probe) -> None:
    """A Function is passed as its own code; it is called as an export is, with handle NULL."""
    assert probe("apply")(probe("handle_is_null")) == 1
    assert probe("apply")(probe("apply"), probe("handle_is_null")) == 1
    with pytest.raises(LookupError, match="with the GIL"):
        probe("apply")(probe("fails_keep"))


def test_callable_is_returned_as_itself(probe: Probe) -> None:
    """A function that Python made is never wrapped twice."""
    apply = probe("apply")
    assert probe("apply")(echo, len) is len
    assert probe("apply")(echo, apply) is apply


def test_function_result_is_callable(probe: Probe) -> None:
    """A closure of the library becomes a Function, and is freed with it."""
    add = probe("make_adder")(40)
    assert isinstance(add, Function)
    assert (add(2), probe("apply")(add, 3), probe("live_objects")()) == (42, 43, 1)
    assert (add.name, add.signature, repr(add)) == ("make_adder()", None, "<Function make_adder()>")
    assert (probe("apply")(echo, add) is add, probe("apply")(echo, add)(4)) == (False, 44)
    with pytest.raises(TypeError, match="expected one number"):
        add(1, 2)
    with pytest.raises(TypeError, match=r"^make_adder\(\): argument 1: unsupported type"):
        add(object())
    del add
    assert probe("live_objects")() == 0


def test_function_argument_can_be_kept(probe: Probe) -> None:
    """A callback may keep its arguments beyond the call."""
    given: list[Any] = []
    probe("apply")(given.append, probe("make_adder")(1))
    assert given[0].name == "argument 1 of append"
    assert (given[0](2), probe("live_objects")()) == (3, 1)
    given.clear()
    assert probe("live_objects")() == 0


def test_function_result_keeps_its_library(compile_library: Callable[..., Path]) -> None:
    """A function that was returned works without its maker and its library."""
    source = (C_SOURCES / "functions.c").read_text() + "/* on its own */"
    library = Library(str(compile_library(source)))
    owner = CallableObject()
    make = library.function("make_adder", owner)
    assert make is not None
    add = make(40)
    assert add.owner is owner
    del library, make
    gc.collect()
    assert add(2) == 42


def test_kept_callable_lives_as_long_as_it_is_kept(probe: Probe) -> None:
    """Host code that takes a reference may call later; its release frees the callable."""

    def function(value: int) -> int:
        return value * 2

    gone = weakref.ref(function)
    probe("keep")(function)
    del function
    assert probe("call_kept")(21) == 42
    probe("drop_kept")()
    assert gone() is None


def test_kept_callable_and_the_next_one_are_apart(probe: Probe) -> None:
    """A callable that host code keeps is not reused for the callable of the next call."""
    probe("keep")(lambda value: f"kept {value}")
    assert probe("apply")(lambda value: f"next {value}", 1) == "next 1"
    assert probe("call_kept")(2) == "kept 2"
    probe("drop_kept")()
    assert probe("apply")(lambda value: f"last {value}", 3) == "last 3"
