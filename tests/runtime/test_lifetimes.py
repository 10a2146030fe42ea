"""The nodes of a loaded tree: one object each, freed in any order (docs/who-owns-what.md)."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from random import Random

import pytest

import packer
import runtime
from runtime import registry
from runtime.module import preorder

from ..support.mapped import is_mapped
from ..support.process import run_python

KEY = "test.lifetime"


class Named(runtime.Module):
    """A type of the user, with a payload and attributes."""

    type_key = KEY
    property_mask = runtime.ModuleProperty.BINARY_SERIALIZABLE

    def __init__(self, name: str) -> None:
        self.name = name

    def find_function(self, name: str):
        return (lambda: self.name) if name == self.name else None

    def save_to_binary(self, writer) -> None:
        writer.write_string(self.name)


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A library: type of the user > host code > built-in type > type of the user."""
    runtime.register_loader(KEY)(lambda reader: Named(reader.read_string()))
    top, bottom = Named("top"), Named("bottom")
    host = packer.CSourceModule("int one(void) { return 1; }", functions="auto")
    constants = runtime.ConstLoaderModule({"w": b"1234"}, {})
    top.import_module(host)
    host.import_module(constants)
    constants.import_module(bottom)
    yield packer.export_library(top, tmp_path / "tree.so")
    del registry._loaders[KEY]
    gc.collect()


def nodes_of(path: Path) -> list[runtime.Module]:
    """The four nodes of a new load of the library."""
    return list(preorder(runtime.load(path)))


def test_a_node_is_one_object_with_its_attributes(path: Path) -> None:
    """Each way to a node leads to the same object, of the user's class, while the tree is used."""
    model = runtime.load(path)
    (host,) = model.imported_modules
    (constants,) = host.imported_modules
    (bottom,) = constants.imported_modules
    assert isinstance(bottom, Named)
    bottom.note, alive = "kept", weakref.ref(bottom)
    del host, constants, bottom
    gc.collect()
    again = runtime.load(path).imported_modules[0].imported_modules[0].imported_modules[0]
    assert again is alive()
    assert again.note == "kept"


def test_nodes_are_freed_in_any_order(path: Path) -> None:
    """The remaining nodes work, and the last one closes the file."""
    gc.disable()
    try:
        for order in permutations(range(4)):
            nodes = dict(enumerate(nodes_of(path)))
            for index in order[:-1]:
                del nodes[index]
                assert nodes[max(nodes)]["bottom"]() == "bottom"
            # The bottom module holds nothing of the file: its loader copied the name.
            assert is_mapped(path) == (order[-1] != 3)
            nodes.clear()
            assert not is_mapped(path)
    finally:
        gc.enable()


def test_threads_free_nodes_in_any_order(path: Path) -> None:
    """Threads that load and drop parts of one tree see whole trees."""
    found: list[str] = []

    def use(seed: int) -> None:
        random = Random(seed)
        for _ in range(50):
            nodes = nodes_of(path)
            random.shuffle(nodes)
            while len(nodes) > 1:
                nodes.pop()
            if nodes[0].implements_function("bottom", query_imports=True):
                found.append(nodes[0]["bottom"]())

    threads = [threading.Thread(target=use, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["bottom"] * 200
    gc.collect()
    assert not is_mapped(path)


def test_a_cycle_through_a_type_of_the_user_is_collected(path: Path) -> None:
    """A child that refers to its root, and to a function of it, keeps neither for ever."""
    nodes = nodes_of(path)
    nodes[3].root, nodes[3].function = nodes[0], nodes[0]["one"]
    gone = weakref.ref(nodes[0])
    nodes.clear()
    assert gone() is not None
    gc.collect()
    assert gone() is None
    assert not is_mapped(path)


CALLER = """
#include "dso_packer.h"
dso_status call_bottom(void) { return dso_call("bottom", NULL); }
"""


def test_a_cycle_through_a_reader_is_collected(tmp_path: Path) -> None:
    """A module keeps the reader of its payload, and the library caches a function of it."""

    @runtime.register_loader("test.reader")
    def load(reader: runtime.Reader) -> Named:
        module = Named(reader.read_string())
        module.reader = reader
        return module

    bottom = Named("bottom")
    bottom.type_key = "test.reader"
    host = packer.CSourceModule(CALLER, functions={"call_bottom": "dso_status()"})
    host.import_module(bottom)
    path = packer.export_library(host, tmp_path / "reader.so")
    model = runtime.load(path)
    model["call_bottom"]()
    model.imported_modules[0].root = model
    del model
    assert is_mapped(path)
    gc.collect()
    assert not is_mapped(path)
    del registry._loaders["test.reader"]


def test_a_view_of_a_weight_keeps_the_file_but_no_node(path: Path) -> None:
    """The file is unmapped with the last view."""
    model = runtime.load(path)
    view, gone = memoryview(model.weights["w"]), weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
    assert is_mapped(path)
    assert bytes(view) == b"1234"
    del view
    assert not is_mapped(path)


def test_a_forked_child_makes_the_nodes_that_waited(path: Path) -> None:
    """The parent loaded the tree, and the child is the first that asks for its imports."""
    model = runtime.load(path)
    child = os.fork()
    if child == 0:
        os._exit(0 if model["bottom"]() == "bottom" and model["one"]() == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert model["bottom"]() == "bottom"


AT_EXIT = """
import runtime

class Named(runtime.Module):
    type_key = "test.lifetime"
    def __init__(self, name): self.name = name
    def find_function(self, name): return (lambda: self.name) if name == self.name else None
    def __del__(self): self.find_function(self.name)()

runtime.register_loader("test.lifetime")(lambda reader: Named(reader.read_string()))
import sys
model = runtime.load(sys.argv[1])
parts = [model, model.imported_modules[0].imported_modules[0], model["one"], model["bottom"]]
runtime.register_func("test.lifetime", lambda: parts)
parts.append(parts)
print("true")
"""


def test_a_tree_in_use_at_the_end_of_the_interpreter(path: Path) -> None:
    """Globals, a registered function and a cycle hold it; the process ends without a message."""
    assert run_python(AT_EXIT, str(path)) is True
