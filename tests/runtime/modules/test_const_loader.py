"""const_loader: host code receives the constants at the first look-up that needs them."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import runtime


class Host(runtime.Module):
    """Host code in Python that records its initialisation."""

    def __init__(self) -> None:
        self.given: list[Any] = []

    def find_function(self, name: str) -> Any:
        """Find one of two."""
        return {"__init_conv": self.init, "conv": lambda: len(self.given)}.get(name)

    def init(self, *arrays: Any) -> None:
        """Take a while, so that another thread can start."""
        time.sleep(0.01)
        self.given.append(arrays)


def loader_of(host: Host) -> runtime.ConstLoaderModule:
    """Constants over host code."""
    made = runtime.ConstLoaderModule({"a": b"1", "b": b"2"}, {"conv": ["b", "a"]})
    made.import_module(host)
    return made


def test_initialised_once_in_any_thread() -> None:
    """Threads that look up at once wait for the one that initialises."""
    host = Host()
    loader, seen = loader_of(host), []
    threads = [threading.Thread(target=lambda: seen.append(loader["conv"]())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1, 1, 1, 1]
    assert [bytes(array.raw) for array in host.given[0]] == [b"2", b"1"]


def test_a_failed_initialisation_is_tried_again() -> None:
    """The error arrives unchanged; the next look-up starts again."""
    host = Host()
    loader, init = loader_of(host), host.init

    def fail(*_: Any) -> None:
        host.init = init
        raise KeyError("not yet")

    host.init = fail
    with pytest.raises(KeyError, match="not yet"):
        loader["conv"]
    assert loader["conv"]() == 1


def test_an_operator_of_a_graph_below_a_const_loader() -> None:
    """Binding a graph's calls is also a look-up."""
    from ...support.graphs import factory, graph, null, op

    host = Host()
    executor = factory(graph([null("x"), op("y", "conv", [0])], [1]), {}, loader_of(host))
    with pytest.raises(TypeError):  # it takes no arguments, but it was found and initialised
        executor["default"]().run(x=np.zeros((2, 3), "float32"))
    assert len(host.given) == 1


def _above(*imports: runtime.Module) -> runtime.ConstLoaderModule:
    module = runtime.ConstLoaderModule({}, {})
    module.set_imports(list(imports))
    return module


def test_a_chain_of_const_loaders_is_looked_through_without_recursion() -> None:
    """A look-up searches const loaders of any depth."""
    root = _above()
    for _ in range(20_000):
        root = _above(root)
    assert not root.implements_function("f")


def test_diamonds_of_const_loaders_are_looked_through_once() -> None:
    """A tree of 2^40 paths searches each module once."""
    root = _above()
    for _ in range(40):
        root = _above(_above(root), _above(root))
    assert not root.implements_function("f")
