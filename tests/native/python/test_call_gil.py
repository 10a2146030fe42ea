"""The GIL during a call: released, or kept if the metadata says so."""

from __future__ import annotations

import threading

from .dlpack_producers import Probe

SOURCE = "probe.c"


def _wait_beside_a_thread(probe: Probe, name: str, milliseconds: int) -> object:
    """Call a waiting function while another thread tries to answer it."""
    over = threading.Event()

    def answer() -> None:
        while not over.is_set() and not probe("is_waiting")():
            pass
        probe("set_flag")()

    thread = threading.Thread(target=answer)
    thread.start()
    result = probe(name)(milliseconds)
    over.set()
    thread.join()
    return result


def test_gil_is_released_during_a_call(probe: Probe) -> None:
    """Another Python thread answers while the function waits."""
    assert _wait_beside_a_thread(probe, "wait", 30000) is True


def test_gil_is_kept_when_the_metadata_says_so(probe: Probe) -> None:
    """No other Python thread runs during the call, so no thread answers."""
    assert _wait_beside_a_thread(probe, "wait_keep", 50) is False
