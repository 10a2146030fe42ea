"""Found functions are cached until the tree changes."""

from __future__ import annotations

import gc
import sys

import pytest

import runtime

from ...support.importing import Functions, importing


def test_name_is_looked_up_once(host) -> None:
    """After the first look-up no module is searched."""
    module = importing(host, f=lambda: 1)
    for _ in range(5):
        host["call"]("f")
    assert module.asked == ["f"]


def test_later_import_is_seen(host) -> None:
    """import_module and clear_imports invalidate names that were looked up before."""
    importing(host, f=lambda: "first")
    assert host["call"]("f") == "first"
    host.clear_imports()
    with pytest.raises(runtime.FunctionNotFoundError):
        host["call"]("f")
    importing(host, f=lambda: "second")
    assert host["call"]("f") == "second"


def test_change_further_down_the_tree_is_seen(host) -> None:
    """An import of an import counts as well."""
    middle = importing(host)
    middle.import_module(Functions(f=lambda: "first"))
    assert host["call"]("f") == "first"
    middle.clear_imports()
    middle.import_module(Functions(f=lambda: "second"))
    assert host["call"]("f") == "second"


def test_replaced_global_function_is_seen(host, register_func) -> None:
    """register_func(override=True) invalidates names that were looked up before."""
    register_func("test.context.g", lambda: "first")
    assert host["call"]("test.context.g") == "first"
    register_func("test.context.g", lambda: "second")
    assert host["call"]("test.context.g") == "second"


def test_change_elsewhere_keeps_cached_functions(host) -> None:
    """After a change of another tree the same function object is used; memory does not grow."""

    def function() -> int:
        return 1

    module = importing(host, f=function)
    references = sys.getrefcount(function)
    for _ in range(3):
        assert host["call"]("f") == 1
        Functions().import_module(Functions())
    assert module.asked == ["f"] * 3
    assert sys.getrefcount(function) == references + 1


def test_function_that_code_remembers_outlives_its_import(host) -> None:
    """Code that TVM makes keeps borrowed functions: they stay until the library is closed."""
    module = importing(host, f=lambda: "still there")
    host["remember"]("f")
    host.clear_imports()
    del module
    gc.collect()
    assert host["call_remembered"]() == "still there"
