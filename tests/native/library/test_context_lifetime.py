"""A context lives as long as its library, and keeps no other object."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import runtime
from runtime._core import Library

from ...support.importing import HOST, Functions, importing
from ...support.mapped import is_mapped
from ...support.process import run_python


def test_library_is_closed_with_its_last_reference(host_path) -> None:
    """A function that host code looked up keeps the import alive, and nothing keeps the library."""
    host = runtime.load(host_path)
    module = importing(host, f=lambda: 1)
    host["call"]("f")
    gone, imported_gone = weakref.ref(host), weakref.ref(module)
    del host, module
    assert gone() is None
    assert imported_gone() is None
    assert not is_mapped(host_path)


def test_function_keeps_library_and_imports(host_path) -> None:
    """A function that outlives its module can still be called."""
    call = _call_of(host_path)
    gc.collect()
    assert call("f") == 1
    del call
    assert not is_mapped(host_path)


def _call_of(path: Path) -> Callable[..., Any]:
    host = runtime.load(path)
    importing(host, f=lambda: 1)
    return host["call"]


def test_import_that_leads_back_is_collected(host_path) -> None:
    """The collector frees a cycle through Python, over a function that host code looked up."""
    host = runtime.load(host_path)
    add = host["add"]
    importing(host, twice=lambda x, add=add: add(x, x))
    assert host["call"]("twice", 21) == 42
    gone = weakref.ref(host)
    del add
    del host
    gc.collect()
    assert gone() is None
    assert not is_mapped(host_path)


class Viewing(Functions):
    """A module that keeps a view of its library."""

    def __init__(self, view: memoryview, **functions: Callable[..., Any]) -> None:
        super().__init__(**functions)
        self.view = view


def test_module_that_views_the_library_does_not_keep_it_open(compile_library) -> None:
    """The modules of a library's blob do not keep it open: its last reference closes it at once."""
    path = compile_library(
        HOST.read_text() + 'DSO_EXPORT const char some_data[] = "data of the library";\n'
    )
    host = runtime.load(path)
    assert isinstance(host, runtime.LibraryModule)
    view = host._library.data("some_data")
    assert view is not None
    module = Viewing(view)
    module.functions["f"] = lambda module=module: bytes(module.view)[:4]
    host.import_module(module)
    assert host["call"]("f") == b"data"
    gc.disable()
    try:
        module.functions.clear()
        del host, module, view
        assert not is_mapped(path)
    finally:
        gc.enable()


def test_function_over_weights_does_not_keep_the_library_open(compile_library) -> None:
    """A cached function may view the library through a tensor, which the collector cannot see."""
    path = compile_library(
        HOST.read_text() + 'DSO_EXPORT const char weights[] = "1234567 weights";\n'
    )
    host = runtime.load(path)
    assert isinstance(host, runtime.LibraryModule)
    weights = host._library.data("weights")
    assert weights is not None
    tensor = runtime.Tensor(weights, (16,), (1, 8, 1))
    module = importing(host, f=lambda tensor=tensor: tensor.nbytes)
    host["remember"]("f")
    assert host["call_remembered"]() == 16
    gc.disable()
    try:
        del host, module, weights, tensor
        assert not is_mapped(path)
    finally:
        gc.enable()


def test_two_libraries_over_one_image_share_a_context(host_path) -> None:
    """The first module is searched first; objects that code points to outlive it."""
    first, second = (runtime.LibraryModule(Library(str(host_path))) for _ in range(2))
    importing(first, f=lambda: "first")
    importing(second, f=lambda: "second", g=lambda: "second")
    assert second["call"]("f") == "first"
    second["remember"]("f")
    del first
    assert second["call_remembered"]() == "first"
    assert second["call"]("g") == "second"


def test_library_that_is_never_unmapped_keeps_its_cached_functions(compile_library) -> None:
    """A second open returns the old image; its functions are looked up again."""
    path = compile_library(HOST.read_text(), "-Wl,-z,nodelete")
    host = runtime.load(path)
    importing(host, f=lambda: "remembered", g=lambda: "old")
    host["remember"]("f")
    host["call"]("g")
    del host
    gc.collect()
    host = runtime.load(path)
    with pytest.raises(runtime.FunctionNotFoundError, match="'f'"):
        host["call_remembered"]()
    importing(host, f=lambda: "anew", g=lambda: "new")
    assert host["call_remembered"]() == "anew"
    assert host["call"]("g") == "new"


RETIRED = """
import gc, json, sys
import runtime
class Functions(runtime.Module):
    def find_function(self, name):
        return (lambda: 7) if name == "answer" else None
runtime.register_func("answer")(lambda: 42)
provider = runtime.load(sys.argv[2]) if len(sys.argv) > 2 else Functions()
host = runtime.load(sys.argv[1])
host.import_module(provider)
host["remember"]("answer")
sys.setswitchinterval(1000)
host["begin"]()
del host
gc.collect()
sys.setswitchinterval(0.005)
host = runtime.load(sys.argv[1])
print(json.dumps(host["finish"]()))
"""


@pytest.mark.parametrize("provider", ["python", "library"])
def test_call_that_waits_for_the_gil_while_its_module_is_freed(
    provider, compile_library, host_path
) -> None:
    """The function of a call is freed before the call reaches it, and is looked up again."""
    path = compile_library(HOST.read_text(), "-Wl,-z,nodelete")
    others = [str(host_path)] if provider == "library" else []
    assert run_python(RETIRED, str(path), *others, timeout=30) == 42
