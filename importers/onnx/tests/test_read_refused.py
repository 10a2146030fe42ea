"""Bad models are refused in words, with the node and the name, in little time and memory."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from dso_packer_onnx.read import read_model, with_shapes
from runtime.error import PackerError

from .small_models import (
    STRING,
    classifier,
    model,
    node,
    ones,
    relu,
    unknown,
    value,
    weight,
)

X = value("x", 2, 3)
HUGE = weight("s", np.array([1 << 20, 1 << 20]))


def changed(proto: onnx.ModelProto, **fields: Any) -> onnx.ModelProto:
    """Set fields of a model."""
    for name, field in fields.items():
        setattr(proto, name, field)
    return proto


def opset(version: int, domain: str = "") -> onnx.ModelProto:
    """One node of an opset."""
    proto = relu()
    proto.opset_import[0].CopyFrom(helper.make_opsetid(domain, version))
    return proto


def one(op_type: str, *weights: Any, name: str = "bad", **attributes: Any) -> onnx.ModelProto:
    """Make a model of one node with an input x and weights."""
    inputs = " ".join(["x", *(w.name for w in weights)])
    return model([node(op_type, inputs, "y", name, **attributes)], [X], [unknown("y")], weights)


def other_domain() -> onnx.ModelProto:
    """A node that another tool made."""
    proto = one("Relu")
    proto.graph.node[0].domain = "com.microsoft"
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return proto


def sparse() -> onnx.ModelProto:
    """A sparse initialiser."""
    proto = one("Add", ones("w", 2, 3))
    proto.graph.sparse_initializer.add().values.name = "w2"
    return proto


def training() -> onnx.ModelProto:
    """Information for training."""
    proto = relu()
    proto.training_info.add()
    return proto


def functions(*bodies: list[Any], opsets: int = 23) -> onnx.ModelProto:
    """A model that calls the last of functions F0, F1, ..."""
    made = [
        helper.make_function(
            "local",
            f"F{i}",
            ["a"],
            ["b"],
            body,
            [helper.make_opsetid("", 23), helper.make_opsetid("local", 1)],
        )
        for i, body in enumerate(bodies)
    ]
    call = helper.make_node(f"F{len(bodies) - 1}", ["x"], ["y"], name="call", domain="local")
    proto = model([call], [X], [unknown("y")], functions=made)
    proto.opset_import.append(helper.make_opsetid("local", 1))
    return proto


def call(name: str, given: str, made: str) -> Any:
    """Call a function of `functions`."""
    return helper.make_node(name, [given], [made], domain="local")


CYCLE = [
    node("Add", "x b", "a", "first"),
    node("Relu", "a", "b", "second"),
    node("Relu", "b", "y"),
]
RAW = onnx.TensorProto(name="w", data_type=1, dims=[2, 3], raw_data=b"123")
EMPTY = onnx.TensorProto(name="w", data_type=1, dims=[1 << 20, 1 << 20])

REFUSED = {
    "no model": (b"hello world, this is no model", "byte 0x2: this is not a field of protobuf"),
    "empty": (b"", "ir_version, expected 3 to 13, found 0"),
    "cut": (
        classifier().SerializeToString()[:-10],
        "byte 0x2: a field, expected 1,450 bytes, found",
    ),
    "another object": (7, "expected a path, bytes or onnx.ModelProto, found 7"),
    "cycle": (
        model(CYCLE, [X], [unknown("y")]),
        r"cycle.*'first' \(Add\) -> node 'second' \(Relu\)",
    ),
    "missing weight": (
        model(
            [node("MatMul", "x weight", "y", "fc")], [X], [unknown("y")], [ones("weights", 3, 2)]
        ),
        r"node 'fc' \(MatMul\): input 'weight', .*near names: 'weights'",
    ),
    "two producers": (
        model([node("Relu", "x", "y", "a"), node("Abs", "x", "y", "b")], [X], [unknown("y")]),
        r"node 'b' \(Abs\): output 'y', .* found that of node 'a' \(Relu\)",
    ),
    "two inputs": (model([node("Relu", "x", "y")], [X, X], [unknown("y")]), "input 'x' is there 2"),
    "unknown operator": (one("Relo"), r"node 'bad' \(Relo\): operator Relo .*near names: 'Relu'"),
    "later opset": (
        one("Swish"),
        r"operator Swish is unknown in opset \d+ .*; it is of opset 24: ",
    ),
    "other domain": (other_domain(), r"node 'bad' \(Relu\): operator Relu is unknown in opset 1"),
    "unknown opset": (opset(99), "opset 99 of domain 'ai.onnx', expected 1 to 26"),
    "no opset": (opset(1, "ai.onnx.ml"), r"node 'act' \(Relu\): domain 'ai.onnx'"),
    "unknown version": (changed(relu(), ir_version=99), "ir_version, expected 3 to 13, found 99"),
    "large input": (
        model([node("Relu", "x", "y")], [value("x", 1 << 20, 1 << 20)], [unknown("y")]),
        "input 'x': shape .* has 1,099,511,627,776 elements",
    ),
    "large weight": (one("Add", EMPTY), "initialiser 'w': shape .* 1,099,511,627,776 elements"),
    "large result": (one("Tile", HUGE), r"node 'bad' \(Tile\): output 'y': shape .* elements"),
    "size of data": (
        one("Add", RAW),
        r"'w': shape \(2, 3\), expected 24 bytes of raw_data, found 3",
    ),
    "matrices": (one("MatMul", ones("w", 4, 2)), r"node 'bad' \(MatMul\): .*'w' float32 \(4, 2\)"),
    "Gemm": (one("Gemm", ones("w", 4, 2)), r"node 'bad' \(Gemm\): the columns of A \(2, 3\)"),
    "declared": (
        model([node("Relu", "x", "y", "r")], [X], [value("y", 2, 4)]),
        r"node 'r' \(Relu\): output 'y': shape, expected \(2, 4\) as declared, found \(2, 3\)",
    ),
    "types": (one("Add", weight("w", np.ones((2, 3), np.int64))), r"node 'bad' \(Add\): .*int64"),
    "arity": (one("Add"), r"node 'bad' \(Add\): .*input size 1"),
    "attribute": (one("Softmax", axis="last"), r"node 'bad' \(Softmax\): .*attribute type"),
    "reshape": (one("Reshape", weight("s", np.array([4]))), r"'bad' \(Reshape\): the elements of"),
    "permutation": (
        one("Transpose", perm=[0]),
        r"'bad' \(Transpose\): perm, expected each of 2 axes once, found \[0\]",
    ),
    "index": (
        one("Gather", weight("i", np.array([7]))),
        r"'bad' \(Gather\): indices, expected -2 to",
    ),
    "strings": (
        model([node("Identity", "x", "y")], [value("x", 1, dtype=STRING)], [unknown("y", STRING)]),
        "input 'x' is a tensor of strings; strings are unsupported",
    ),
    "made strings": (one("Cast", to=STRING), r"node 'bad' \(Cast\): output 'y' is a tensor of str"),
    "sparse": (sparse(), "initialiser 'w2' is a sparse tensor; make it dense"),
    "training": (training(), "training_info, which is unsupported; export it for inference"),
    "recursion": (functions([call("F0", "a", "b")]), "functions call themselves: F0 -> F0"),
    "growth": (
        functions(
            [node("Relu", "a", "b")],
            *([call(f"F{i}", "a", "t"), call(f"F{i}", "t", "b")] for i in range(40)),
        ),
        "more than 1,000,000 nodes",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_model_is_refused_in_words(case: str) -> None:
    """The message has the node or the name; no error of another package comes through."""
    given, words = REFUSED[case]
    started = time.process_time()
    with pytest.raises(PackerError) as caught:
        with_shapes(read_model(given))
    assert re.search(words, str(caught.value)), str(caught.value)
    assert time.process_time() - started < 2


SHAPES = {
    "unknown input": ({"X": (1, 3, 4, 4)}, "the model has no input 'X'; near names: 'x'"),
    "axes": ({"x": (1, 3)}, r"'x', expected 4 axes as in \('n', 3, 4, 4\), found \(1, 3\)"),
    "negative": ({"x": (-1, 3, 4, 4)}, "expected extents of at least 0 or names"),
    "channels": ({"x": (1, 5, 4, 4)}, r"node 'conv' \(Conv\): X has 5 channels, expected 3"),
}


@pytest.mark.parametrize("case", SHAPES)
def test_shapes_that_do_not_fit_are_refused(case: str) -> None:
    """The message shows what is wrong with the given shapes."""
    shapes, words = SHAPES[case]
    read = read_model(classifier("n"))
    with pytest.raises(PackerError, match=words):
        with_shapes(read, shapes)


@pytest.mark.parametrize(
    "op_type", ["Scaler", "Normalizer", "LinearRegressor", "SVMRegressor", "TreeEnsembleRegressor"]
)
def test_operators_of_the_other_domain_are_refused_by_name(op_type: str) -> None:
    """Not as shapes that are unknown, whose declaration would be refused next."""
    proto = model(
        [node(op_type, "x", "y", "learned", domain="ai.onnx.ml")],
        [value("x", 2, 3)],
        [value("y", 2, 3)],
    )
    proto.opset_import.add(domain="ai.onnx.ml", version=4)
    words = rf"node 'learned' \({op_type}\): of the domain ai.onnx.ml only these are supported: "
    with pytest.raises(PackerError, match=words):
        read_model(proto)


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("../secret", "expected a file in the model's folder"),
        ("link", "expected a file in the model's folder"),
        ("up/secret", "expected a file in the model's folder"),
        ("/etc/passwd", "expected a file in the model's folder"),
        ("", "expected a file in the model's folder"),
        ("pipe", "expected a regular file"),
        ("none", "No such file"),
        ("short", "expected 24 bytes, found 8; the file is cut"),
    ],
)
def test_data_outside_the_folder_is_refused(tmp_path: Path, location: str, words: str) -> None:
    """By whatever path; and special files, which would block."""
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(24))
    (folder / "short").write_bytes(bytes(8))
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    tensor = onnx.TensorProto(name="w", data_type=1, dims=[2, 3], data_location=1)
    tensor.external_data.add(key="location", value=location)
    path = folder / "model.onnx"
    path.write_bytes(one("Add", tensor).SerializeToString())
    with pytest.raises(PackerError, match=words) as caught:
        read_model(path)
    assert "initialiser 'w'" in str(caught.value)


@pytest.mark.parametrize(("key", "text"), [("length", str(1 << 50)), ("offset", "-4")])
def test_a_wrong_place_of_data_is_refused(tmp_path: Path, key: str, text: str) -> None:
    """A length beyond the shape is not allocated."""
    (tmp_path / "w").write_bytes(bytes(24))
    tensor = onnx.TensorProto(name="w", data_type=1, dims=[2, 3], data_location=1)
    tensor.external_data.add(key="location", value="w")
    tensor.external_data.add(key=key, value=text)
    path = tmp_path / "model.onnx"
    path.write_bytes(one("Add", tensor).SerializeToString())
    with pytest.raises(PackerError, match=f"initialiser 'w': .*{key}"):
        read_model(path)
