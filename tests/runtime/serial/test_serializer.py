"""Wire order: root 0, parents first, import order kept; every tree without a cycle is accepted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import runtime
from runtime.serial.serializer import serialize


class Host(runtime.Module):
    """Host code, as far as the order is concerned."""

    type_key = "test.host"
    property_mask = 4


def device(name: str) -> runtime.DeviceModule:
    """A module whose payload is its name."""
    return runtime.DeviceModule("cuda", name, "", {})


def order(root: runtime.Module) -> list[str]:
    """The names in wire order."""
    modules = serialize(root, export_dso=True).modules
    return ["_lib" if m is None else bytes(m.data).decode() for m in modules]


def connect(modules, imports):
    """Give each module its imports."""
    for module, children in zip(modules, imports, strict=True):
        for child in children:
            module.import_module(modules[child])
    return modules[0]


def test_siblings_ascend() -> None:
    """Imports are in import order, not reversed as TVM's writer leaves them."""
    root = connect([device(n) for n in "rabc"], [[1, 2, 3], [], [], []])
    assert order(root) == ["r", "a", "b", "c"]


def test_diamond_is_accepted_with_the_shared_module_last() -> None:
    """TVM refuses plain diamonds; a parent must only precede its children."""
    root = connect([device(n) for n in "rabs"], [[1, 2], [3], [3], []])
    assert order(root) == ["r", "a", "b", "s"]


def test_host_code_merges_with_its_imports_in_preorder() -> None:
    """Two host modules become one node; their imports follow each other, once each."""
    modules = [device("r"), Host(), Host(), device("x"), device("y")]
    root = connect(modules, [[1, 2], [3], [4, 3], [], []])
    blob = serialize(root, export_dso=True)
    assert order(root) == ["r", "_lib", "x", "y"]
    assert blob.children() == [(1,), (2, 3), (), ()]


def test_cycle_after_the_merge_is_refused_with_its_modules() -> None:
    """Host code above and below a device module is one node on both sides of it."""
    root = connect([Host(), device("d"), Host()], [[1], [2], []])
    with pytest.raises(runtime.ExportError, match="import tree: _lib -> cuda -> _lib"):
        serialize(root, export_dso=True)


def test_standalone_host_root_writes_no_entry() -> None:
    """A host root without imports is the whole tree: count 0, as TVM writes it."""
    assert runtime.serialize_module_to_bytes(Host()) == bytes(8)


def test_host_code_without_a_binary_form_is_refused_when_not_exported() -> None:
    """export_dso=False writes every module's own bytes; host source has none."""
    with pytest.raises(runtime.ExportError, match=r"the root module \(<Host 'test\.host'>\)"):
        runtime.serialize_module_to_bytes(Host(), export_dso=False)


@st.composite
def graphs(draw):
    """A random directed acyclic graph in which every node can be reached from node 0."""
    size = draw(st.integers(1, 12))
    imports = [[] for _ in range(size)]
    for child in range(1, size):
        for parent in draw(st.sets(st.integers(0, child - 1), min_size=1)):
            imports[parent].append(child)
    return [draw(st.permutations(row)) for row in imports]


@given(graphs())
def test_any_graph_is_restored_with_its_import_order(imports) -> None:
    """Every acyclic graph is accepted, keeps each import order, and is deterministic."""
    root = connect([device(str(i)) for i in range(len(imports))], imports)
    data = runtime.serialize_module_to_bytes(root)
    assert runtime.serialize_module_to_bytes(root) == data
    back = runtime.deserialize_module_from_bytes(data)
    pending, found = [back], {}
    while pending:
        module = pending.pop()
        found[int(bytes(module.data))] = [int(bytes(m.data)) for m in module.imported_modules]
        pending += module.imported_modules
    assert found == dict(enumerate(imports))


@given(graphs())
def test_parents_precede_children_and_siblings_ascend_in_trees(imports) -> None:
    """The root is 0; every child index is greater than its parent's."""
    blob = serialize(
        connect([device(str(i)) for i in range(len(imports))], imports), export_dso=True
    )
    assert bytes(blob.modules[0].data) == b"0"
    for parent, children in enumerate(blob.children()):
        assert all(child > parent for child in children)
    parents = [sum(child in row for row in imports) for child in range(len(imports))]
    if max(parents) <= 1:
        assert all(list(row) == sorted(row) for row in blob.children())
