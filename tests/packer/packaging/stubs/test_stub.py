"""The stub of a tree: its functions by name, kernels, weights, the entry, and odd names."""

from __future__ import annotations

import ast
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import packer
import runtime
from packer.packaging.stubs import stub_of
from packer.packaging.stubs.names import identifier, quoted
from runtime.error import LibraryLoadError
from runtime.modules.vm import load as load_bytecode
from runtime.serial.stream import Reader

from ....support import models
from ....support.command_line import Packer, done, refused
from ....support.graphs import factory, host, sum_graph
from ....support.vm_assembler import TWICE, TWICE_SOURCE, doubling

HOST = """
#include <stdio.h>
__attribute__((constructor)) static void leave_mark(void) { fclose(fopen("mark", "w")); }
double mean(const double *x, long n) { return n ? x[0] : 0; }
int add(int a, int b) { return a + b; }
"""
STUB = '''\
"""The functions of tree.so. Written by packer stubs {version}."""

from collections.abc import Iterator, KeysView
from typing import Literal, Protocol, TypeAlias, overload, type_check_only

from runtime import Handle, Module, Tensor
from runtime.tensors.weights import Weights
from runtime.typing import Array, Float, Function, Int, SupportsDLPack

def add(a: Int, b: Int = 2) -> int:
    """Add two numbers."""
def main(a: Int, b: Int = 2, /) -> int:
    """Add two numbers."""
def mean(x: Array | None, n: Int) -> float: ...
def scale(arg0: SupportsDLPack | Handle | None, arg1: Float, blockIdx_x: Int, /) -> None:
    """A kernel. Its launch takes one integer per tag after the arguments: blockIdx.x."""

class _add(Function, Protocol):
    def __call__(self, a: Int, b: Int = 2) -> int:
        """Add two numbers."""

class _main(Function, Protocol):
    def __call__(self, a: Int, b: Int = 2, /) -> int:
        """Add two numbers."""

class _mean(Function, Protocol):
    def __call__(self, x: Array | None, n: Int) -> float: ...

class _scale(Function, Protocol):
    def __call__(
        self,
        arg0: SupportsDLPack | Handle | None,
        arg1: Float,
        blockIdx_x: Int,
        /,
    ) -> None:
        """A kernel. Its launch takes one integer per tag after the arguments: blockIdx.x."""

_weight: TypeAlias = Literal[
    "layer.bias",  # float32[2, 3]
]

@type_check_only
class _Weights(Weights):
    def __getitem__(self, name: _weight, /) -> Tensor: ...  # type: ignore[override]
    def __iter__(self) -> Iterator[_weight]: ...
    def keys(self) -> KeysView[_weight]: ...

@type_check_only
class Model(Module):
    """The tree of tree.so: ``cast("Model", runtime.load("tree.so"))``."""

    @overload  # type: ignore[override]
    def __getitem__(self, name: Literal["add"], /) -> _add: ...
    @overload
    def __getitem__(self, name: Literal["main"], /) -> _main: ...
    @overload
    def __getitem__(self, name: Literal["mean"], /) -> _mean: ...
    @overload
    def __getitem__(self, name: Literal["scale"], /) -> _scale: ...{pyright}
    @property
    def weights(self) -> _Weights: ...
    def __call__(self, a: Int, b: Int = 2, /) -> int:{pyright}
        """Add two numbers."""

model: Model
'''
PYRIGHT = "  # pyright: ignore[reportIncompatibleMethodOverride]"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Host code with kernels and weights."""
    functions = {"*": "auto", "add": {"defaults": {"b": 2}, "doc": "Add two numbers."}}
    host = packer.CSourceModule(HOST, functions=functions)
    kernel = runtime.FunctionInfo("scale", ["handle", "float32"], ["blockIdx.x"])
    host.import_module(runtime.DeviceModule("opencl", "code", "cl", [kernel]))
    host.import_module(runtime.DeviceModule("vulkan", "code", "spirv", [kernel]))
    weights = runtime.SafetensorsModule(safetensors("layer.bias", np.zeros((2, 3), "float32")))
    host.import_module(weights)
    return packer.export_library(host, tmp_path / "tree.so", entry="add")


def safetensors(name: str, array: np.ndarray) -> bytes:
    """A file of one tensor."""
    header = f'{{"{name}":{{"dtype":"F32","shape":{list(array.shape)},"data_offsets":[0,24]}}}}'
    return struct.pack("<Q", len(header)) + header.encode() + array.tobytes()


def test_stub_of_a_tree(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions with defaults, a kernel, weights and the entry; the library is not run."""
    monkeypatch.chdir(tmp_path)
    text = STUB.format(version=packer.__version__, pyright=PYRIGHT)
    assert packer.stub_of(tree) == text
    assert not (tmp_path / "mark").exists()


def test_stub_names_what_a_look_up_finds(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each name of an overload is found in the loaded tree, and so is each weight."""
    monkeypatch.chdir(tmp_path)  # its constructor writes a file
    model = runtime.load(tree)
    names = [
        node.value
        for cls in ast.parse(stub_of(tree)).body
        if isinstance(cls, ast.ClassDef) and cls.name == "Model"
        for node in ast.walk(cls)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value
    ]
    assert names
    assert all(name in model for name in names)
    assert list(model.weights) == ["layer.bias"]


def test_graph_executor(tmp_path: Path) -> None:
    """The entry of its tree makes the executor."""
    tree = factory(sum_graph(), {"w": np.ones((2, 3), "float32")}, host())
    text = stub_of(packer.export_library(tree, tmp_path / "graph.so"))
    assert 'name: Literal["default"], /) -> Callable[..., GraphExecutor]: ...' in text
    assert "def __call__(self, *devices: Any) -> GraphExecutor: ..." in text
    assert "def increase(a: Array | None, b: Array | None) -> None: ..." in text
    assert '"w",  # float32[2, 3]' in text


def test_bytecode(tmp_path: Path) -> None:
    """A function of it accepts any values, in their number, by position or name."""
    model = load_bytecode(Reader(doubling().payload()))
    model.import_module(packer.CSourceModule(TWICE_SOURCE, functions={"twice": TWICE}))
    text = stub_of(packer.export_library(model, tmp_path / "vm.so", format="tvm-ffi"))
    assert "def main(x: Any) -> Any: ..." in text
    assert "def __call__(self, x: Any) -> Any: ..." in text


def test_a_model_has_typed_inputs_and_outputs(tmp_path: Path) -> None:
    """Names, arrays in, tensors out; data types and shapes are its doc."""
    text = stub_of(packer.export_library(models.model(), tmp_path / "m.so"))
    assert "def main(x_1: Array, /) -> tuple[Tensor, Tensor]:" in text
    types = "scores: float32[batch, 48], hidden: float32[batch, 48]"
    assert f'"""x.1: float32[batch, 40] -> {types}"""' in text
    assert '"dense.weight",  # float32[40, 48]' in text


def test_a_library_that_tvm_made_may_have_more_functions(
    compile_library: Callable[..., Path],
) -> None:
    """Every C function of it can be called, so that `model[name]` accepts any name."""
    text = stub_of(compile_library("void *__tvm_module_ctx; int f(void) { return 1; }"))
    assert "def __getitem__(self, name: str, /) -> Callable[..., Any]: ..." in text


def test_a_type_without_a_loader_may_have_functions(tmp_path: Path) -> None:
    """Another process may have its loader."""

    class Custom(runtime.Module):
        type_key = "custom_of_stubs"
        property_mask = runtime.ModuleProperty.BINARY_SERIALIZABLE

        def save_to_binary(self, writer: runtime.Writer) -> None:
            writer.write_string("payload")

    host = packer.CSourceModule("int add(int a) { return a; }", functions="auto")
    host.import_module(Custom())
    text = stub_of(packer.export_library(host, tmp_path / "custom.so"))
    assert "def __getitem__(self, name: str, /) -> Callable[..., Any]: ..." in text
    assert 'def __getitem__(self, name: Literal["add"], /) -> _add: ...' in text
    assert "type: ignore[override]" not in text


def test_library_without_functions(compile_library: Callable[..., Path]) -> None:
    """Each look-up is an error."""
    text = stub_of(compile_library("int f(void) { return 1; }"))
    assert "def __getitem__(self, name: Never, /)" in text


def test_damaged_library_is_refused(tree: Path) -> None:
    """The message is that of `packer inspect`."""
    data = bytearray(tree.read_bytes())
    at = data.index(b"params a:i32 b:i32")
    data[at : at + 6] = b"PARAMS"
    tree.write_bytes(data)
    with pytest.raises(LibraryLoadError, match="tree.so: expected a library without problems"):
        stub_of(tree)


def test_command_writes_the_stub(tree: Path, packer: Packer, tmp_path: Path) -> None:
    """To stdout, or to a file, with the same bytes each time."""
    text = done(packer("stubs", "tree.so"))
    assert done(packer("stubs", "tree.so", "-o", "tree.pyi")) == ""
    assert (tmp_path / "tree.pyi").read_text() == text == stub_of(tree)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["none.so"], 1, "none.so"),
        (["add.c"], 1, "add.c"),
        (["tree.so", "-o", "tree.so"], 1, "tree.so"),
        ([], 2, "LIBRARY"),
    ],
)
def test_command_refuses(
    tree: Path, packer: Packer, arguments: list[str], code: int, text: str
) -> None:
    """A missing file, a file that is not a library, an output that is the input; wrong usage."""
    assert text in refused(packer("stubs", *arguments), code)
    assert tree.read_bytes()[:4] == b"\x7fELF"


def test_names_are_identifiers() -> None:
    """Of any text, and different from the words of Python."""
    assert [identifier(text) for text in ("a.b", "1", "", "class", "é")] == [
        *("a_b", "_1", "_", "class_", "_"),
    ]
    assert [quoted(text) for text in ("a", "it's", 'a"b', "é\n")] == [
        *('"a"', '"it\'s"', "'a\"b'", '"\\xe9\\n"'),
    ]
