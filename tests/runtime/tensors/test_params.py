"""Params dict files: parameters apart from the graph that takes them."""

from __future__ import annotations

import numpy as np
import pytest

import runtime


def test_bytes_and_back() -> None:
    """Names, shapes and data types are restored in order; the bytes have the golden files' form."""
    params = {"w": np.arange(6, dtype="float32").reshape(2, 3), "b": np.array(7, "int64")}
    data = runtime.save_param_dict(params)
    back = runtime.load_param_dict(data)
    assert list(back) == ["w", "b"]
    assert all(np.array_equal(back[name].numpy(), params[name]) for name in params)
    assert runtime.save_param_dict(back) == data


def test_golden_files_are_reproduced(params_file) -> None:
    """A file of real TVM is written again with the same bytes."""
    _, path = params_file
    data = path.with_suffix(".bin").read_bytes()
    assert runtime.save_param_dict(runtime.load_param_dict(data)) == data


def test_files(tmp_path) -> None:
    """A file is mapped, not read; the tensors keep it mapped."""
    path, array = tmp_path / "w.params", np.arange(6, dtype="float32")
    runtime.save_param_dict_to_file({"w": array}, path)
    back = runtime.load_param_dict_from_file(path)["w"]
    path.unlink()
    assert np.array_equal(back.numpy(), array)


def test_no_params_dict(tmp_path) -> None:
    """Another file, and an empty one, are refused by name."""
    (tmp_path / "w.params").write_bytes(b"weights!")
    with pytest.raises(runtime.BlobFormatError, match=r"w\.params: params at 0x0: params magic"):
        runtime.load_param_dict_from_file(tmp_path / "w.params")
    (tmp_path / "w.params").write_bytes(b"")
    with pytest.raises(runtime.BlobFormatError, match=r"w\.params"):
        runtime.load_param_dict_from_file(tmp_path / "w.params")
