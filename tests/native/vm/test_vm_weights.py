"""`dso.weight`: weights of the imports, which bytecode uses where they are mapped."""

from __future__ import annotations

import gc
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime
from runtime.modules.vm import VMExecutable, load
from runtime.serial.stream import Reader

from ...support.dso_script import run_by_c, run_by_python
from ...support.vm_assembler import *

W = np.arange(6, dtype="f4").reshape(2, 3)


def safetensors(**arrays: Any) -> bytes:
    """A file whose tensors are aligned as far as their order and sizes permit."""
    header, data = {}, b""
    for name, array in arrays.items():
        header[name] = {
            "dtype": f"{array.dtype.kind.upper()}{8 * array.itemsize}",
            "shape": array.shape,
            "data_offsets": [len(data), len(data) + array.nbytes],
        }
        data += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 64)
    return len(text).to_bytes(8, "little") + text + data


def program(*names: tuple[int, Any]) -> Program:
    """``main()`` returns a tuple of the weights of these constants."""
    count = len(names)
    code = [call(i, 1, const(i)) for i in range(count)]
    code += [call(count, 2, *range(count)), ret(count)]
    main = Code("main", [], code, count + 1)
    return Program([main, packed("dso.weight"), packed("vm.builtin.make_tuple")], list(names))


def executable(made: Program, *imports: runtime.Module) -> VMExecutable:
    """An executable and its imports."""
    loaded = load(Reader(made.payload()))
    for module in imports:
        loaded.import_module(module)
    return loaded


def weights_of(**arrays: Any) -> runtime.SafetensorsModule:
    """A module of weights."""
    return runtime.SafetensorsModule(safetensors(**arrays))


def test_a_weight_is_the_tensor_of_the_library(tmp_path: Path) -> None:
    """The values, the shape, and the address that `weights` finds: nothing is copied."""
    big = np.arange(64, dtype="f4")
    made = program((STR, "a"), (STR, "layer.big"))
    tree = executable(made, weights_of(**{"a": np.arange(16, dtype="i4"), "layer.big": big}))
    packer.export_library(tree, tmp_path / "m.so")
    model = runtime.load(tmp_path / "m.so")
    for a, found in (model["main"](), model["main"]()):
        assert np.array_equal(a.numpy(), np.arange(16, dtype="i4"))
        assert np.array_equal(found.numpy(), big)
        assert found.numpy().ctypes.data == model.weights["layer.big"].numpy().ctypes.data
        assert found.numpy().ctypes.data == model["main"]()[1].numpy().ctypes.data


def test_a_weight_outlives_its_model(tmp_path: Path) -> None:
    """A result is a weight: it keeps the library mapped."""
    packer.export_library(executable(program((STR, "w")), weights_of(w=W)), tmp_path / "m.so")
    (found,) = runtime.load(tmp_path / "m.so")["main"]()
    gc.collect()
    assert np.array_equal(found.numpy(), W)


@pytest.mark.parametrize("source", ["safetensors", "const_loader"])
def test_a_function_that_would_write_to_a_weight_is_refused(source: str, tmp_path: Path) -> None:
    """As for constants; also where the weights could be written."""
    code = [call(0, 1, const(0)), call(VOID, 2, reg(0), reg(0), imm(4)), ret(0)]
    made = Program([Code("main", [], code, 1), packed("dso.weight"), packed("twice")], [(STR, "w")])
    array = np.arange(16, dtype="f4")
    weights = (
        weights_of(w=array)
        if source == "safetensors"
        else runtime.ConstLoaderModule({"w": array}, {})
    )
    tree = executable(made, packer.CSourceModule(TWICE_SOURCE, functions={"twice": TWICE}), weights)
    packer.export_library(tree, tmp_path / "m.so")
    model = runtime.load(tmp_path / "m.so")
    with pytest.raises(ValueError, match=r"twice: argument 2 'y': expected a writable tensor"):
        model["main"]()
    assert np.array_equal(model.weights["w"].numpy(), array)
    assert "expected a writable tensor" in run_by_c(f"load {tmp_path / 'm.so'}", "call 0 main")


def test_weights_of_a_module_in_memory_are_read_only() -> None:
    """The program's own array stays as it was, and can be written."""
    array = np.arange(16, dtype="f4")
    loader = runtime.ConstLoaderModule({"w": array}, {})
    (found,) = executable(program((STR, "w")), loader)["main"]()
    assert not found.numpy().flags.writeable
    assert loader.weights["w"].numpy().flags.writeable == array.flags.writeable


def test_weights_are_found_in_the_order_of_the_imports() -> None:
    """Of equal names the first, also deep in the tree; the code's own constants do not count."""
    inner = executable(program((STR, "w")), weights_of(w=W))
    outer = executable(program((STR, "w"), (STR, "v")), inner, weights_of(w=W + 1, v=W + 2))
    w, v = outer["main"]()
    assert np.array_equal(w.numpy(), W)
    assert np.array_equal(v.numpy(), W + 2)
    made = program((STR, "constant_1"))
    made.constants.append((70, W))
    with pytest.raises(runtime.WeightNotFoundError, match="constant_1"):
        executable(made)["main"]


NAMES = {"layer.weight": W, "layer.bias": W}
UNKNOWN = (
    "<VMExecutable 'relax.VMExecutable'>: its code uses the weight 'layer.weigth', which no import "
    "has; near names: 'layer.weight'"
)


def test_an_unknown_weight_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    """The look-up of the function says which, and what is like it; in C with the same words."""
    tree = executable(program((STR, "layer.weigth")), weights_of(**NAMES))
    with pytest.raises(runtime.WeightNotFoundError, match=re.escape(UNKNOWN)) as raised:
        tree["main"]
    assert isinstance(raised.value, KeyError)
    assert raised.value.name == "layer.weigth"
    packer.export_library(tree, tmp_path / "m.so")
    assert f"KeyError: {UNKNOWN}" in run_by_c(f"load {tmp_path / 'm.so'}", "call 0 main")
    alone = executable(program((STR, "w")))
    with pytest.raises(runtime.WeightNotFoundError, match="which no import has$"):
        alone["main"]


def test_a_name_must_be_a_constant_text() -> None:
    """A number, a register and an immediate raise when the call runs, and not before."""
    tree = executable(program((INT, 3)), weights_of(w=W))
    expected = "dso.weight: argument 1, expected a constant that is a str, found"
    with pytest.raises(TypeError, match=f"{expected} int"):
        tree["main"]()
    code = [call(0, 1, reg(0)), ret(0)]
    tree = executable(Program([Code("main", ["x"], code, 1), packed("dso.weight")]))
    with pytest.raises(TypeError, match=f"{expected} str"):
        tree["main"]("w")


def test_the_name_of_a_weight_stays_a_text_elsewhere() -> None:
    """One constant may be both a name and a value."""
    code = [call(0, 1, const(0)), call(1, 2, const(0), reg(0)), ret(1)]
    names = ["dso.weight", "vm.builtin.make_tuple"]
    made = Program([Code("main", [], code, 2), *map(packed, names)], [(STR, "w")])
    text, found = executable(made, weights_of(w=W))["main"]()
    assert text == "w"
    assert np.array_equal(found.numpy(), W)


def test_no_function_replaces_dso_weight(tmp_path: Path) -> None:
    """A function of that name in an import is another one."""

    class Other(runtime.Module):
        type_key = "test.other"

        def find_function(self, name: str) -> Any:
            return (lambda text: 7) if name == "dso.weight" else None

    (found,) = executable(program((STR, "w")), Other(), weights_of(w=W))["main"]()
    assert np.array_equal(found.numpy(), W)


def test_a_weight_without_alignment_is_copied_once() -> None:
    """Operators read tensors that are aligned to 64 bytes; both calls get the same copy."""
    made = program((STR, "odd"))
    tree = executable(made, weights_of(a=np.zeros(3, "u1"), odd=np.arange(16, dtype="i2")))
    (first,), (second,) = tree["main"](), tree["main"]()
    assert np.array_equal(first.numpy(), np.arange(16, dtype="i2"))
    assert first.numpy().ctypes.data == second.numpy().ctypes.data
    assert first.numpy().ctypes.data % 64 == 0
    assert not first.numpy().flags.writeable


def test_python_and_c_agree(tmp_path: Path) -> None:
    """Weights of each data type and shape, and of a machine made by hand."""
    arrays = {"w": W, "empty": np.zeros((0, 4), "i8"), "scalar": np.array(2.5), "u": W.astype("u1")}
    tree = executable(program(*((STR, name) for name in arrays)), weights_of(**arrays))
    packer.export_library(tree, tmp_path / "m.so")
    lines = [f"load {tmp_path / 'm.so'}", "call 0 main", "weight 0 w", "weight 0 scalar"]
    lines += ["call 0 vm_load_executable", "call 1 vm_initialization i:1 i:0 i:2", "call 1 main"]
    assert run_by_c(*lines) == run_by_python(*lines)
    assert "raised" not in run_by_c(*lines)


def test_a_tree_without_weights_needs_no_safetensors() -> None:
    """Bytecode that does not call `dso.weight` never parses a header of weights."""
    code = Code("main", ["x"], [ret(0)], 1)
    data = runtime.serialize_module_to_bytes(executable(Program([code]), weights_of(w=W)))
    model = runtime.deserialize_module_from_bytes(data.replace(b'"F32"', b'"F33"'))
    assert model["main"](3) == 3
    with pytest.raises(runtime.BlobFormatError, match="found 'F33'"):
        len(model.weights)
