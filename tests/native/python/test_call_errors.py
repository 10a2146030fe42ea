"""Errors of calls: class, text, and whose call they belong to."""

from __future__ import annotations

import threading

import pytest

from .dlpack_producers import Probe

SOURCE = "probe.c"


@pytest.mark.parametrize(
    "kind", [ValueError, TypeError, KeyError, MemoryError, IndexError, OSError]
)
def test_raised_kind_is_the_builtin_class(probe: Probe, kind: type[Exception]) -> None:
    """The kind is the class, the message its only argument."""
    with pytest.raises(kind) as caught:
        probe("fail")(kind.__name__, "wrong: żółw")
    assert type(caught.value) is kind
    assert caught.value.args == ("wrong: żółw",)


@pytest.mark.parametrize(
    "kind", ["InternalError", "", "print", "SystemExit", "KeyboardInterrupt", "UnicodeDecodeError"]
)
def test_other_kind_is_a_runtime_error(probe: Probe, kind: str) -> None:
    """No name from C ends the interpreter or makes a class it cannot make."""
    with pytest.raises(RuntimeError) as caught:
        probe("fail")(kind, "text")
    assert caught.value.args == (f"{kind}: text",)


def test_long_and_null_texts(probe: Probe) -> None:
    """The slot holds any length, and NULL for either string."""
    with pytest.raises(ValueError, match=r"^x{100000}$"):
        probe("fail")("ValueError", "x" * 100000)
    with pytest.raises(RuntimeError) as caught:
        probe("fail_null")()
    assert caught.value.args == ("",)


def test_failure_without_an_error_is_reported(probe: Probe) -> None:
    """-1 alone names the function; so does any other status."""
    with pytest.raises(RuntimeError, match=r"^fail_silently: returned -1 without raising$"):
        probe("fail_silently")()
    with pytest.raises(RuntimeError, match=r"^fail_with_7: returned 7 without raising$"):
        probe("fail_with_7")()


def test_stale_error_is_never_reported_for_another_call(probe: Probe) -> None:
    """An error that a call raised and did not report is cleared when the next one fails."""
    assert probe("raise_but_succeed")() is None
    with pytest.raises(RuntimeError, match="without raising"):
        probe("fail_silently")()
    with pytest.raises(KeyError, match="second"):
        probe("fail_twice")()
    with pytest.raises(RuntimeError, match="without raising"):
        probe("fail_silently")()


def test_each_thread_has_its_own_error(probe: Probe) -> None:
    """Errors raised in many threads at once do not mix."""
    found: dict[int, set[str]] = {}

    def run(number: int) -> None:
        seen = set()
        for _ in range(300):
            try:
                probe("fail")("ValueError", f"thread {number}")
            except ValueError as error:
                seen.add(str(error))
        found[number] = seen

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: {f"thread {number}"} for number in range(8)}
