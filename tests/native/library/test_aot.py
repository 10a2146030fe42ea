"""Models that were compiled ahead of time, and parameters that were linked into a library."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import runtime
from runtime._core import Graph, Library
from runtime.library import LibraryModule

from ...support.graphs import graph, null, op
from ...support.paths import C_SOURCES

SOURCE = (C_SOURCES / "aot.c").read_text()
X = np.arange(6, dtype="float32").reshape(2, 3)


def factory(path: Path, params: dict[str, np.ndarray]) -> runtime.AotExecutorFactory:
    """A factory over a library, with TVM's metadata module between them."""
    made, metadata = runtime.AotExecutorFactory(params), runtime.MetadataModule()
    metadata.import_module(LibraryModule(Library(str(path))))
    made.import_module(metadata)
    return made


def test_a_model_runs(compile_library) -> None:
    """Its main function is the one operator, whose parameters the library states."""
    executor = factory(compile_library(SOURCE), {"w": X + 1})["default"]()
    assert executor.get_input_info() == ({"x": (2, 3)}, {"x": "float32"})
    executor.run(x=X)
    assert np.array_equal(executor.get_output(0).numpy(), X * (X + 1))


def test_an_input_is_found_by_its_name_in_the_model(compile_library) -> None:
    """TVM names it by a C name; another name that gives this one is it too."""
    made = factory(compile_library(SOURCE, '-DNAME="x_1_0"'), {"w": X})
    executor = made["default"]()
    executor.run(**{"x.1:0": X})
    assert np.array_equal(executor.get_output(0).numpy(), X * X)
    assert [executor.get_input_index(n) for n in ("x/1/0", "x_1_0", "x.10")] == [0, 0, -1]
    with pytest.raises(KeyError, match=r"no input 'x\.10'"):
        executor.get_input("x.10")


def test_a_model_is_restored_from_its_bytes(compile_library) -> None:
    """The factory's payload holds the parameters; its imports the code."""
    made = factory(compile_library(SOURCE), {"w": X})
    bare = made.remove_params()
    assert (bare.params, bare.imported_modules) == ({}, made.imported_modules)
    data = runtime.serialize_module_to_bytes(runtime.AotExecutorFactory({"w": X}, "net"))
    back = runtime.deserialize_module_from_bytes(data)
    assert isinstance(back, runtime.AotExecutorFactory)
    assert back.entry_name == "net"
    assert np.array_equal(back["get_graph_params"]()["w"].numpy(), X)


@pytest.mark.parametrize(
    ("option", "found"),
    [("-DVERSION=2", "found version 2"), ("-DPOOLS=1", "version 1 with 1 memory pools")],
)
def test_metadata_that_is_not_understood(compile_library, option, found) -> None:
    """Another version, and memory pools from outside, are refused."""
    with pytest.raises(runtime.BlobFormatError, match=found):
        factory(compile_library(SOURCE, option), {})["default"]()


@pytest.mark.parametrize(
    ("option", "match"),
    [
        ("NUM_INPUTS=-1", "inputs: expected 0 to 10000, found -1"),
        ("NUM_INPUTS=1ll<<58", "inputs: expected 0 to 10000, found 288230376151711744"),
        ("NUM_INPUTS=9999", "inputs: found 9999 in 319968 bytes at 0x.*, expected at most .*ends"),
        ("INPUTS=0", "inputs: found 2 in 64 bytes at NULL"),
        ("NDIM=-1", "shape of 'x': expected 0 to 64, found -1"),
        ("NDIM=65", "shape of 'x': expected 0 to 64, found 65"),
        ("EXTENT=-2", r"'x': expected a size that can be addressed, found \[-2, 3\] of data type"),
        ("EXTENT=1ll<<62", r"'x': expected a size that can be addressed, found \[4611686018427387"),
        ("BITS=0", r"'x': expected a size that can be addressed, found .*\(2, 0, 1\)"),
    ],
)
def test_metadata_that_cannot_be(compile_library, option, match) -> None:
    """Counts and sizes in a library are bounded before they are used for reading or allocating."""
    library = compile_library(SOURCE, f"-D{option}")
    with pytest.raises(runtime.BlobFormatError, match=f"^get_c_metadata: {match}"):
        factory(library, {})["default"]()


def test_a_library_without_metadata() -> None:
    """The error names the missing function."""
    with pytest.raises(runtime.FunctionNotFoundError, match="get_c_metadata"):
        runtime.AotExecutorFactory({})["default"]()


def test_an_address_is_expected(compile_library) -> None:
    """The metadata is what the library's function returns."""
    library = LibraryModule(Library(str(compile_library(SOURCE))))
    for function in (library["wrong_metadata"], lambda: 1):
        with pytest.raises(TypeError, match="get_c_metadata: result, expected an address"):
            Graph(function)


def test_linked_parameters(compile_library) -> None:
    """Parameters are found by storage_id, and used in place, also when the executor is freed."""
    library = LibraryModule(Library(str(compile_library(SOURCE))))
    nodes = [null("x"), null("w"), op("y", "tvmgen_default___tvm_main__", [0, 1])]
    executor = runtime.graph_executor.create(json.dumps(graph(nodes, [2])), library)
    assert executor.get_input_info()[0] == {"x": (2, 3)}
    executor.run(x=X)
    assert np.array_equal(executor.get_output(0).numpy(), X * (X + 1))
    weights = executor.get_input("w")
    del executor, library
    assert np.array_equal(weights.numpy(), X + 1)


def test_linked_parameter_beyond_its_segment(compile_library) -> None:
    """A graph cannot ask for more than the library has."""
    end = "__extension__ ({ extern char _end[]; _end - 4; })"
    library = LibraryModule(Library(str(compile_library(SOURCE, f"-DLINKED={end}"))))
    nodes = [null("x"), null("w"), op("y", "tvmgen_default___tvm_main__", [0, 1])]
    match = "^_lookup_linked_param: 'w': found 24 bytes at 0x.*, expected at most 4, where its seg"
    with pytest.raises(runtime.BlobFormatError, match=match):
        runtime.graph_executor.create(json.dumps(graph(nodes, [2])), library)
