"""The tree of a loaded library: parsed by the core, and made when it is requested."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import packer
import runtime
from runtime import registry

from ..support.mapped import is_mapped
from ..support.process import run_python

SOURCE = "long add(long a, long b) { return a + b; }"

LOAD = """
import json, sys
import runtime
model = runtime.load(sys.argv[1])
assert model["add"](40, 2) == 42
unused = [name for name in ("runtime.blob", "runtime.modules.device") if name in sys.modules]
keys = [module.type_key for module in model.imported_modules]
print(json.dumps([unused, keys]))
"""


class Counted(runtime.Module):
    """A module of a type that is registered in Python."""

    type_key = "test.counted"
    property_mask = runtime.ModuleProperty.BINARY_SERIALIZABLE
    num_loads = 0

    def save_to_binary(self, writer) -> None:
        """Write a payload whose end only the loader knows."""
        writer.write_string("counted")


@pytest.fixture
def counted_loader() -> Iterator[None]:
    """Register the loader of `Counted`."""

    @runtime.register_loader(Counted.type_key)
    def load(reader) -> Counted:
        assert reader.read_string() == "counted"
        Counted.num_loads += 1
        return Counted()

    Counted.num_loads = 0
    yield
    del registry._loaders[Counted.type_key]


def export(path: Path, *imports: runtime.Module, root: runtime.Module | None = None) -> Path:
    """Export host code that imports modules, below `root` if it is given."""
    host = packer.CSourceModule(SOURCE, functions={"add": "long(long a, long b)"})
    for module in imports:
        host.import_module(module)
    if root is not None:
        root.import_module(host)
    return packer.export_library(root or host, path)


def kernels() -> runtime.DeviceModule:
    """A module of a type that libdso reads."""
    return runtime.DeviceModule("opencl", "kernel", "cl", [runtime.FunctionInfo("f")])


def test_types_of_imports_are_imported_when_the_imports_are_requested(tmp_path) -> None:
    """A process that calls host code does not pay for them."""
    path = export(tmp_path / "lib.so", kernels())
    assert run_python(LOAD, str(path)) == [[], ["opencl"]]


@pytest.mark.usefixtures("counted_loader")
def test_loader_of_python_is_called_once_by_a_load(tmp_path) -> None:
    """The core parses around its payload, and the same module is the node of the tree."""
    path = export(tmp_path / "lib.so", kernels(), Counted(), kernels())
    model = runtime.load(path)
    assert Counted.num_loads == 1
    keys = [module.type_key for module in model.imported_modules]
    assert (keys, Counted.num_loads) == (["opencl", "test.counted", "opencl"], 1)


@pytest.mark.usefixtures("counted_loader")
def test_root_of_a_type_of_python_is_loaded_once(tmp_path) -> None:
    """The root is needed at once."""
    model = runtime.load(export(tmp_path / "lib.so", kernels(), root=Counted()))
    assert (model.type_key, Counted.num_loads) == ("test.counted", 1)
    (host,) = model.imported_modules
    assert model["add"](40, 2) == 42
    assert [module.type_key for module in host.imported_modules] == ["opencl"]


def test_unknown_root_is_carried(tmp_path) -> None:
    """A type without a loader is a node, whose imports can be used."""
    model = runtime.load(export(tmp_path / "lib.so", root=Counted()))
    assert model.type_key == "test.counted"
    assert bytes(model.payload) == b"\7" + bytes(7) + b"counted"
    assert model["add"](40, 2) == 42


def test_loader_that_fails_is_named_and_its_error_is_the_cause(tmp_path, counted_loader) -> None:
    """The error has the place of the entry, and the loader's own error."""
    path = export(tmp_path / "lib.so", kernels(), Counted())
    registry._loaders[Counted.type_key] = lambda reader: reader.nothing
    with pytest.raises(runtime.BlobFormatError, match="the loader of 'test.counted'") as caught:
        runtime.load(path)
    assert isinstance(caught.value.__cause__, AttributeError)
    assert caught.value.path == str(path)
    assert f"at {caught.value.offset:#x}: " in str(caught.value)


@pytest.mark.parametrize("is_linked", [False, True])
@pytest.mark.parametrize("has_root", [False, True])
def test_file_is_closed_with_the_last_reference(is_linked, has_root, tmp_path) -> None:
    """No cycle keeps the tree, whether its imports were requested or not."""
    root = runtime.ConstLoaderModule({"w": b"1234"}, {}) if has_root else None
    path = export(tmp_path / "lib.so", kernels(), root=root)
    gc.disable()
    try:
        model = runtime.load(path)
        if is_linked:
            assert len(model.imported_modules) == 1
        assert is_mapped(path)
        del model
        assert not is_mapped(path)
    finally:
        gc.enable()


def test_threads_make_the_modules_once(tmp_path) -> None:
    """All threads see the same imports."""
    model = runtime.load(export(tmp_path / "lib.so", *[kernels() for _ in range(50)]))
    barrier, seen = threading.Barrier(4), []

    def request() -> None:
        barrier.wait()
        seen.append(model.imported_modules)

    threads = [threading.Thread(target=request) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen[0]) == 50
    assert all(modules == seen[0] for modules in seen)


def test_import_that_is_added_first_follows_those_of_the_file(tmp_path) -> None:
    """A change of the imports makes the file's imports first."""
    model = runtime.load(export(tmp_path / "lib.so", kernels()))
    model.import_module(runtime.ConstLoaderModule({}, {}))
    assert [module.type_key for module in model.imported_modules] == ["opencl", "const_loader"]
