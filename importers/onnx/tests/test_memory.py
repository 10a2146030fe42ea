"""The memory of an export: the weights of a model go from file to file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.numpy_helper
import pytest

import packer
import runtime
from runtime.error import PackerError

from .small_models import model, node, unknown, value, weight
from .support.large_model import export_memory, write_model

MIB = 1 << 20


@pytest.mark.parametrize("is_external", [True, False], ids=["other file", "one file"])
def test_an_export_needs_little_beyond_the_weights(tmp_path: Path, is_external: bool) -> None:
    """The pages of the mapped file count; a copy of the weights would exceed the bound."""
    write_model(tmp_path / "m.onnx", 320 * MIB, is_external=is_external)
    peak = export_memory(tmp_path / "m.onnx", tmp_path / "m.so")
    assert (tmp_path / "m.so").stat().st_size > 320 * MIB
    assert peak < 320 * MIB + 160 * MIB


@pytest.mark.parametrize("form", ["path", "bytes", "message"])
def test_large_weights_of_every_source_are_the_same(tmp_path: Path, form: str) -> None:
    """Initialisers and Constants, plain and packed, whatever has them."""
    random = np.random.default_rng(1)
    table, factor, added = (
        random.random(s, np.float32) for s in ((2048, 512), (512, 512), 1 << 19)
    )
    attribute = onnx.numpy_helper.from_array(added.reshape(1, 1024, 512))
    nodes = [
        node("Gather", "table ids", "rows"),
        node("MatMul", "rows factor", "product"),
        node("Constant", "", "added", value=attribute),
        node("Add", "product added", "y"),
    ]
    ids = [value("ids", 1, 1024, dtype=onnx.TensorProto.INT64)]
    proto = model(nodes, ids, [unknown("y")], [weight("table", table), weight("factor", factor)])
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    assert path.stat().st_size > 4 * MIB
    before = proto.SerializeToString()
    made = packer.from_onnx({"path": path, "bytes": path.read_bytes(), "message": proto}[form])
    assert proto.SerializeToString() == before
    library = runtime.load(packer.export_library(made, tmp_path / "m.so"))
    chosen = random.integers(0, 2048, (1, 1024))
    expected = table[chosen] @ factor + added.reshape(1, 1024, 512)
    assert np.allclose(library["main"](chosen).numpy(), expected, rtol=1e-4)
    assert library.weights["table"].numpy().tolist() == table.tolist()


def test_a_folder_of_temporary_files_that_is_missing_is_named(monkeypatch) -> None:
    """Where the weights are written before the output is known."""
    monkeypatch.setattr("tempfile.tempdir", "/no such folder")
    proto = model([node("Relu", "w", "y")], [], [unknown("y")], [weight("w", np.ones(2, "f4"))])
    words = r"^/no such folder: cannot write the weights there: No such file .* set TMPDIR"
    with pytest.raises(PackerError, match=words):
        packer.from_onnx(proto)
