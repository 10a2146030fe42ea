"""Exceptions of callbacks pass through native code."""

from __future__ import annotations

import gc
import traceback
import weakref

import pytest

from .callables import Probe

SOURCE = "functions.c"


def test_exception_arrives_as_itself(probe: Probe) -> None:
    """The very object, of any class, with the traceback of where it was raised."""

    class OwnError(Exception):
        pass

    error = OwnError("mine", 7)

    def fail() -> None:
        raise error

    for apply in ("apply", "apply_keep"):
        error.__traceback__ = None
        with pytest.raises(OwnError) as caught:
            probe(apply)(fail)
        assert caught.value is error
        assert [frame.name for frame in traceback.extract_tb(error.__traceback__)][-1] == "fail"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, StopIteration])
def test_exceptions_that_end_things_pass(probe: Probe, error: type[BaseException]) -> None:
    """A callable can raise errors that C cannot raise by name."""

    def fail() -> None:
        raise error("mine")

    with pytest.raises(error, match="mine"):
        probe("apply")(fail)


def test_exception_passes_through_nested_calls(probe: Probe) -> None:
    """Through two calls of the core it still is the same object."""
    apply, error = probe("apply"), ValueError("deep")

    def fail() -> None:
        raise error

    with pytest.raises(ValueError, match="deep") as caught:
        apply(lambda: apply(fail))
    assert caught.value is error


def test_swallowed_exception_is_forgotten(probe: Probe) -> None:
    """An error that host code ignored neither reappears nor stays alive."""

    class OwnError(Exception):
        pass

    def fail() -> None:
        raise OwnError

    gone: list[weakref.ref[OwnError]] = []

    def fail_and_watch() -> None:
        error = OwnError()
        gone.append(weakref.ref(error))
        raise error

    assert probe("swallow")(fail_and_watch) == -1
    gc.collect()
    assert gone[0]() is None
    assert probe("swallow")(fail) == -1
    with pytest.raises(TypeError, match="expected one number"):
        probe("make_adder")(1)()


def test_error_of_host_code_has_the_exception_as_context(probe: Probe) -> None:
    """Host code may raise another error instead; the first one is its context."""
    error = ValueError("first")

    def fail() -> None:
        raise error

    with pytest.raises(KeyError, match="translated") as caught:
        probe("translate")(fail)
    assert caught.value.__context__ is error
    assert caught.value.__cause__ is None


def test_exception_that_cannot_be_shown(probe: Probe) -> None:
    """An exception whose str raises is passed on unchanged."""

    class MuteError(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

    def fail() -> None:
        raise MuteError

    with pytest.raises(MuteError):
        probe("apply")(fail)
