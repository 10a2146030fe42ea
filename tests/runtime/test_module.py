"""Module: imports, properties, look-up through imports, entry, time_evaluator."""

from __future__ import annotations

import gc
import weakref

import pytest

import packer
import runtime


class Named(runtime.Module):
    """A module with functions that return where they were found."""

    type_key = "test.named"

    def __init__(self, name, functions=(), entry=None):
        self.name, self.functions, self.entry = name, set(functions), entry

    def find_function(self, name):
        """Give a closure that keeps the module alive."""
        return (lambda: f"{self.name}.{name}") if name in self.functions else None

    def function_names(self):
        """The names given."""
        return sorted(self.functions)

    @property
    def own_entry_name(self):
        """The entry given."""
        return self.entry


def test_in_agrees_with_a_look_up() -> None:
    """``"f" in module`` searches the imports; only a str is a name."""
    root = Named("root", ["f"])
    root.import_module(Named("child", ["g"]))
    assert [name in root for name in ("f", "g", "h", 3, None)] == [True, True, False, False, False]


def test_module_is_not_a_sequence() -> None:
    """Neither an index nor a loop reaches find_function with a number."""
    with pytest.raises(TypeError, match="a function's name is a str, found int"):
        Named("m", ["f"])[0]
    with pytest.raises(TypeError, match="not iterable"):
        list(Named("m", ["f"]))


def test_error_names_an_object_that_is_not_a_module() -> None:
    """Source text is not a module."""
    text = r"expected a runtime\.Module, found str"
    with pytest.raises(TypeError, match=text):
        packer.export_library("int f(void);", "f.so")
    with pytest.raises(TypeError, match=text):
        runtime.serialize_module_to_bytes("int f(void);")


def test_function_of_host_code_is_called_after_an_export() -> None:
    """The message says why: in its module it is source."""
    host = packer.CSourceModule("int f(void);", functions={"f": "int(void)"})
    with pytest.raises(runtime.FunctionNotFoundError, match="not compiled; export the tree, and"):
        host["f"]


@pytest.mark.parametrize(
    ("names", "name", "match"),
    [
        (["convolve", "threshold"], "convolv", "near names: 'convolve'$"),
        (["GEMM", "other"], "gemm", "near names: 'GEMM'$"),
        ([f"f{i:02}" for i in range(25)], "something", r"'f00', .*'f19' and 5 more$"),
    ],
)
def test_missing_function_names_others(names, name, match) -> None:
    """Similar ones, in any case of letters; if there is none, the first twenty and a count."""
    with pytest.raises(runtime.FunctionNotFoundError, match=match) as info:
        Named("m", names)[name]
    assert (info.value.name, info.value.module) == (name, "test.named")
    assert isinstance(info.value, AttributeError)


def test_lookup_finds_own_function_before_imported_one() -> None:
    """The module's own function of a name hides its imports' functions."""
    root, child = Named("root", ["f"]), Named("child", ["f", "g"])
    root.import_module(child)
    assert root["f"]() == "root.f"
    assert root["g"]() == "child.g"


def test_lookup_goes_depth_first_in_import_order() -> None:
    """The first import with all below it precedes the second."""
    root, a, b, c = Named("root"), Named("a"), Named("b", ["f"]), Named("c", ["f"])
    root.import_module(a)
    root.import_module(b)
    a.import_module(c)
    assert root["f"]() == "c.f"


def test_get_function_alone_does_not_ask_imports() -> None:
    """query_imports is off by default, as in TVM."""
    root = Named("root")
    root.import_module(Named("child", ["f"]))
    assert not root.implements_function("f")
    assert root.implements_function("f", query_imports=True)
    with pytest.raises(runtime.FunctionNotFoundError, match="<Named 'test.named'> has no function"):
        root.get_function("f")


def test_cached_lookup_is_dropped_when_a_tree_changes() -> None:
    """A function imported later, deeper in the tree, is found."""
    root, child, grandchild = Named("root"), Named("child"), Named("grandchild", ["f"])
    root.import_module(child)
    assert not root.implements_function("f", query_imports=True)
    child.import_module(grandchild)
    assert root["f"]() == "grandchild.f"
    child.clear_imports()
    assert not root.implements_function("f", query_imports=True)


def test_import_that_closes_a_cycle_is_refused() -> None:
    """A module cannot import one that imports it, however far away."""
    root, child = Named("root"), Named("child")
    root.import_module(child)
    with pytest.raises(runtime.ExportError, match="would make a cycle"):
        child.import_module(root)
    with pytest.raises(runtime.ExportError, match="would make a cycle"):
        root.import_module(root)
    assert child.imported_modules == []


def test_import_of_something_else_is_a_type_error() -> None:
    """Only a module can be imported."""
    with pytest.raises(TypeError, match=r"takes a runtime\.Module, found int"):
        Named("root").import_module(3)


def test_imported_modules_is_a_copy() -> None:
    """A change of the list does not change the tree."""
    root = Named("root")
    root.imported_modules.append(root)
    assert root.imported_modules == []


def test_entry_is_the_first_that_a_module_of_the_tree_sets() -> None:
    """Calling a module calls its entry function, found through the imports."""
    root, child = Named("root"), Named("child", ["start"], entry="start")
    assert root.entry_name == "main"
    root.import_module(child)
    assert root.entry_name == "start"
    assert root() == "child.start"


def test_chain_of_20000_modules_is_searched_and_released() -> None:
    """No recursion over the depth of a tree: look-up, and the end of it."""
    root = bottom = Named("root")
    for i in range(20_000):
        child = Named(str(i))
        bottom.set_imports([child])
        bottom = child
    bottom.functions.add("f")
    assert root["f"]() == "19999.f"
    gone = weakref.ref(bottom)
    del root, bottom, child
    gc.collect()
    assert gone() is None


def test_diamonds_are_searched_once() -> None:
    """Forty diamonds on top of each other have 2^40 paths, and 81 modules."""
    root = top = Named("top")
    for _ in range(40):
        left, right, bottom = Named("l"), Named("r"), Named("b")
        top.set_imports([left, right])
        left.set_imports([bottom])
        right.set_imports([bottom])
        top = bottom
    assert not root.implements_function("f", query_imports=True)


def test_properties_follow_the_mask() -> None:
    """The three flags are read from property_mask, an IntFlag or an int."""
    module = Named("m")
    module.property_mask = runtime.ModuleProperty.BINARY_SERIALIZABLE | 4
    assert module.is_binary_serializable
    assert module.is_dso_exportable
    assert not module.is_runnable


def test_module_without_a_form_is_reported() -> None:
    """Source, file and binary form of a type that has none are errors that name it."""
    module = Named("m")
    with pytest.raises(runtime.PackerError, match="'test.named'> has no source text"):
        module.get_source()
    with pytest.raises(runtime.PackerError, match="has no file format"):
        module.save("nowhere")
    with pytest.raises(runtime.PackerError, match="has no binary form"):
        runtime.serialize_module_to_bytes(_serializable(module))


def _serializable(module):
    module.property_mask = 1
    return module


def test_time_evaluator_counts_calls() -> None:
    """Number x repeat calls are made, and one ahead that is not counted."""
    calls = []

    class Counting(runtime.Module):
        def find_function(self, name):
            return calls.append

    result = Counting().time_evaluator("f", number=3, repeat=4)(1)
    assert len(calls) == 1 + 3 * 4
    assert len(result.results) == 4
    assert result.min <= result.median <= result.max
    assert "mean" in str(result)


def test_time_evaluator_measures_at_least_min_repeat_ms() -> None:
    """The number of calls is raised until one measurement takes so long."""
    calls = []

    class Counting(runtime.Module):
        def find_function(self, name):
            return lambda: calls.append(1)

    result = Counting().time_evaluator("f", number=1, min_repeat_ms=5)()
    assert result.mean * (len(calls) - 1) >= 0.005


def test_time_evaluator_refuses_zero_calls() -> None:
    """The number and repeat are at least one."""
    with pytest.raises(ValueError, match="at least 1, found 0 and 1"):
        Named("m", ["f"]).time_evaluator("f", number=0)
