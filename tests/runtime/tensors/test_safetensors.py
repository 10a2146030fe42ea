"""safetensors: files of the reference package are read equally, in place."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy

import runtime
from runtime.tensors.safetensors_file import DTYPES

from ...support.process import run_python
from ...support.weights_files import ONE, PackBlob, address_of, blob_of, file_of

ARRAYS = {f"layer.{code}": np.arange(12).astype(code).reshape(3, 4) for code in "?bBhHiIqQefdF"} | {
    "scalar": np.array(2.5),
    "empty": np.zeros((0, 3), "f4"),
    "ähm": np.ones(1, "u1"),
}


@pytest.mark.parametrize("origin", ["path", "buffer", "library"])
def test_arrays_are_those_of_the_reference(origin: str, pack_blob: PackBlob, tmp_path) -> None:
    """A file of the reference package has the same arrays, from a path and from bytes."""
    path = tmp_path / "w.safetensors"
    safetensors.numpy.save_file(ARRAYS, path, metadata={"format": "np"})
    if origin == "library":
        module = runtime.load(pack_blob(blob_of(runtime.SafetensorsModule(path))))
        assert module.imported_modules[0].metadata == {"format": "np"}
    else:
        module = runtime.SafetensorsModule(path if origin == "path" else path.read_bytes())
    assert set(module.weights) == set(ARRAYS)
    for name, expected in ARRAYS.items():
        found = module.weights[name].numpy()
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.tobytes() == expected.tobytes()
        assert not found.flags.writeable


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_of_the_format(dtype: str) -> None:
    """Each has the reference's size; NumPy gets types of whole bytes, the others are raw bytes."""
    _code, bits, _lanes = DTYPES[dtype]
    data = bytes(range(8 * bits // 8))
    layout = {"dtype": dtype, "shape": [2, 4], "data_offsets": [0, len(data)]}
    file = file_of(json.dumps({"w": layout}), data)
    [(name, theirs)] = safetensors.deserialize(file)
    tensor = runtime.SafetensorsModule(file).weights[name]
    assert (bytes(tensor.raw), list(tensor.shape)) == (theirs["data"], theirs["shape"])
    if bits >= 8:
        array = tensor.numpy()
        assert (array.dtype.name, array.tobytes()) == (tensor.dtype, data)
        assert np.asarray(tensor).dtype == array.dtype
    else:
        with pytest.raises(BufferError, match="its elements share bytes; raw has the bytes"):
            tensor.numpy()


def test_bfloat16_is_a_view_through_ml_dtypes() -> None:
    """Values arrive, read-only and without a copy."""
    expected = np.array([[1.5, -2.0], [0.0, 3e38]], ml_dtypes.bfloat16)
    layout = {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 8]}
    file = file_of(json.dumps({"w": layout}), expected.tobytes())
    array = runtime.SafetensorsModule(file).weights["w"].numpy()
    assert array.dtype == ml_dtypes.bfloat16
    assert array.tolist() == expected.tolist()
    assert array.ctypes.data == address_of(file) + len(file) - 8
    assert not array.flags.writeable


@pytest.mark.parametrize("blocked", [("ml_dtypes",), ("ml_dtypes", "numpy", "packer")])
def test_without_packages_the_bytes_are_there(blocked, pack_blob: PackBlob) -> None:
    """Without ml_dtypes NumPy lacks bfloat16, and the error says so; raw bytes need no package."""
    header = (
        '{"b": {"dtype": "BF16", "shape": [1], "data_offsets": [4, 6]},'
        ' "f": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}'
    )
    module = runtime.SafetensorsModule(file_of(header, b"\0\0\x80\x3f\x01\x02"))
    code = (
        "import json, sys, runtime\n"
        "weights = runtime.load(sys.argv[1]).weights\n"
        "said = ''\n"
        "try:\n    weights['b'].numpy()\n"
        "except (BufferError, ImportError) as error:\n    said = str(error)\n"
        "print(json.dumps([memoryview(weights['f']).tolist(), weights['b'].raw.hex(), said]))"
    )
    values, raw, said = run_python(code, str(pack_blob(blob_of(module))), blocked=blocked)
    assert (values, raw) == ([1.0], "0102")
    assert ("pip install ml_dtypes" in said) == ("numpy" not in blocked)


def test_header_forms_that_the_reference_reads() -> None:
    """Spaces after the header, unknown keys, tensors in any order of offsets, no tensor."""
    for header, data, names in [
        (ONE + " " * 9, b"1234", ["a"]),
        (ONE.replace('"U8"', '"U8", "note": [1.5]'), b"1234", ["a"]),
        ("{}", b"", []),
        (
            '{"b": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}, '
            '"n": {"dtype": "U8", "shape": [0], "data_offsets": [1, 1]}, '
            '"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}',
            b"12",
            ["b", "n", "a"],
        ),
    ]:
        file = file_of(header, data)
        ours = {n: bytes(t.raw) for n, t in runtime.SafetensorsModule(file).weights.items()}
        assert list(ours) == names
        assert ours == {name: bytes(t["data"]) for name, t in safetensors.deserialize(file)}


def test_weights_are_a_read_only_mapping() -> None:
    """Length, membership, order, misses; a tensor is made once; nothing can be put in."""
    module = runtime.SafetensorsModule(file_of(ONE, b"1234"))
    weights = module.weights
    assert (len(weights), list(weights), list(weights.keys())) == (1, ["a"], ["a"])
    assert "a" in weights and "b" not in weights and weights.get("b") is None
    assert weights["a"] is module.weights["a"] is dict(weights.items())["a"]
    assert repr(weights) == "<Weights of 1 tensors>"
    with pytest.raises(KeyError, match="'b'"):
        weights["b"]
    with pytest.raises(TypeError):
        weights["b"] = weights["a"]  # type: ignore[index]
    module.metadata["x"] = "y"
    assert module.metadata == {}


def test_weights_of_a_tree_are_found_in_look_up_order() -> None:
    """Several files, and the payloads of TVM: depth first, the first of a name counts."""
    first = runtime.SafetensorsModule(file_of(ONE, b"1234"))
    second = runtime.SafetensorsModule(file_of(ONE.replace('"a"', '"b"'), b"5678"))
    below = runtime.ConstLoaderModule({"a": b"x", "c": b"y"}, {})
    graph = runtime.GraphExecutorFactory("{}", {"p": b"z"})
    first.import_module(below)
    root = runtime.deserialize_module_from_bytes(blob_of(first, second, graph))
    assert {n: bytes(t.raw) for n, t in root.weights.items()} == {
        "a": b"1234",
        "c": b"y",
        "b": b"5678",
        "p": b"z",
    }
    assert (list(root.weights), len(root.weights)) == (["a", "c", "b", "p"], 4)
    assert list(root.imported_modules[1].weights) == ["b"]
    assert dict(runtime.MetadataModule().weights) == {}
