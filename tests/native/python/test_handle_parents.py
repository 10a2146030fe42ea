"""Handles whose lifetime ends with that of another handle."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest

from .dlpack_producers import Probe

SOURCE = "declared.c"


def test_child_keeps_its_parent(probe: Probe, is_closed) -> None:
    """`lifetime` names the handle that must outlive the result."""
    parent = probe("counter_new")(3)
    gone = weakref.ref(parent)
    child = probe("counter_child")(parent)
    del parent
    assert gone() is not None
    del child
    assert gone() is None and is_closed()


def test_collector_releases_children_before_their_parents(probe: Probe, is_closed) -> None:
    """In whichever order it finds them."""
    for order in (1, -1):
        parent = probe("counter_new")(3)
        child = probe("counter_child")(parent)
        grandchild = probe("counter_child")(child)
        cycle: list[Any] = [parent, child, grandchild][::order]
        cycle.append(cycle)
        del parent, child, grandchild, cycle
        gc.collect()
    assert is_closed()


def test_child_of_a_closed_parent_is_closed(probe: Probe) -> None:
    """It is not released either: its memory may be a part of the parent's."""
    parent = probe("counter_new")(3)
    child = probe("counter_child")(parent)
    before = probe("num_open")()
    parent.close()
    with pytest.raises(ValueError, match="found a handle 'counter' whose parent is closed"):
        probe("counter_next")(child)
    assert child.closed
    del child
    assert probe("num_open")() == before - 1


def test_long_chain_of_parents_is_released(probe: Probe, is_closed) -> None:
    """The end of one handle ends its parent; without recursion, which has little stack here."""

    def walk() -> None:
        handle = probe("counter_new")(3)
        for _ in range(5000):
            handle = probe("counter_child")(handle)

    before = threading.stack_size(128 * 1024)
    try:
        thread = threading.Thread(target=walk)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert is_closed()


def test_items_of_a_list_belong_to_the_list(probe: Probe, is_closed) -> None:
    """A handle that releases nothing is not a parent, so a long walk makes no chain."""
    parent = probe("counter_new")(3)
    first = probe("counter_item")(parent)
    gone = weakref.ref(first)
    second = probe("counter_item")(first)
    del first
    assert gone() is None and not second.closed
    parent.close()
    assert second.closed and is_closed()


def test_lifetime_names_the_argument_not_the_address(probe: Probe, is_closed) -> None:
    """Two handles of one address may differ in what they release."""
    parent = probe("counter_new")(3)
    item = probe("counter_item")(parent)  # the same address
    child = probe("counter_item_of")(item, parent)
    parent.close()
    assert child.closed


def test_lifetime_may_name_an_omitted_argument(probe: Probe, is_closed) -> None:
    """Then the result has no parent."""
    parent = probe("counter_new")(3)
    item = probe("counter_item_of")(parent)  # the same address
    gone = weakref.ref(parent)
    del parent
    assert gone() is None and not item.closed and not is_closed()
    del item
    assert is_closed()
