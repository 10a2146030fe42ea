"""Handles that several threads use, while one of them or the garbage collector ends them."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from .dlpack_producers import Probe

SOURCE = "declared.c"


@pytest.fixture
def many_switches() -> Iterator[None]:
    """Change threads as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("many_switches")
def test_threads_close_and_use_one_handle(probe: Probe) -> None:
    """Each call gets an open handle or an error, and each object is released once.

    A child whose parent another thread closed is never released.
    """
    gc.collect()  # handles in the tracebacks of earlier tests
    before = probe("num_open")()
    shared = [probe("counter_new")(3)]
    abandoned: list[Any] = []

    def use_child(handle: Any) -> None:
        child = probe("counter_child")(handle)
        try:
            probe("counter_next")(child)
            probe("counter_free")(child)
        except ValueError as error:
            assert "whose parent is closed" in str(error)
            abandoned.append(child)

    uses = [
        lambda handle: handle.close(),
        lambda handle: probe("counter_free")(handle),
        lambda handle: probe("update")({"counter": handle}),
        use_child,
    ]

    def work() -> None:
        for i in range(2000):
            handle = shared[0]
            try:
                uses[i % 4](handle)
            except ValueError as error:
                assert "closed" in str(error) or "in use" in str(error)
            if handle.closed:
                shared[0] = probe("counter_new")(3)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shared.clear()
    num_abandoned = len(abandoned)
    abandoned.clear()
    assert probe("num_open")() == before + num_abandoned


def test_collector_leaves_a_handle_that_a_finaliser_passed_to_a_call(probe: Probe) -> None:
    """The finaliser of another object of the cycle may keep it alive."""
    kept: list[Any] = []
    entered, end = threading.Event(), threading.Event()

    class Saving:
        """Its end starts a call that uses the handle."""

        handle: Any = None
        cycle: Any = None

        def __del__(self) -> None:
            def call() -> None:
                probe("call_with")(self.handle, lambda _: (entered.set(), end.wait(), 0)[-1])

            kept.extend([self.handle, threading.Thread(target=call)])
            kept[1].start()
            entered.wait()

    saving = Saving()
    saving.cycle, saving.handle = saving, probe("counter_new")(3)
    del saving
    gc.collect()
    assert not kept[0].closed
    end.set()
    kept[1].join()
    kept[0].close()
