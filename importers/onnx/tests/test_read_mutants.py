"""A thousand damaged models: each is read or refused, and nothing else happens."""

from __future__ import annotations

import random
from pathlib import Path

import onnx

from dso_packer_onnx.read import read_model, with_shapes
from runtime.error import PackerError

DATA = Path(onnx.__file__).parent / "backend/test/data/node"
NUMBERS = (0, -1, 1, 2, 7, 1 << 20, 1 << 31, 1 << 40, (1 << 63) - 1, -(1 << 63))
OPERATORS = ("Add", "Conv", "Loop", "If", "Reshape", "Einsum", "LSTM", "Slice", "Gather", "Pad")


def damaged(data: bytes, choose: random.Random) -> bytes:
    """Change a few bytes."""
    found = bytearray(data)
    for _ in range(choose.randint(1, 5)):
        place = choose.randrange(len(found))
        if choose.random() < 0.7:
            found[place] = choose.randrange(256)
        else:
            del found[place : place + choose.randint(1, 8)]
        found = found or bytearray(1)
    return bytes(found)


def changed(data: bytes, choose: random.Random) -> bytes:
    """Change names, numbers, types and operators of a model that protobuf still reads."""
    proto = onnx.ModelProto.FromString(data)
    graph = proto.graph
    names = [one.name for one in graph.input] + [name for n in graph.node for name in n.output]
    node = choose.choice(list(graph.node))
    kind = choose.randrange(5)
    if kind == 0 and node.input:
        node.input[choose.randrange(len(node.input))] = choose.choice([*names, "", "other"])
    elif kind == 1 and node.attribute:
        attribute = choose.choice(list(node.attribute))
        attribute.i = choose.choice(NUMBERS)
        for index in range(len(attribute.ints)):
            attribute.ints[index] = choose.choice(NUMBERS)
    elif kind == 2:
        node.op_type = choose.choice(OPERATORS)
    elif kind == 3:
        shape = choose.choice([*graph.input, *graph.output]).type.tensor_type.shape
        shape.dim.add().dim_value = choose.choice(NUMBERS)
    else:
        one = choose.choice([*graph.input, *graph.output])
        one.type.tensor_type.elem_type = choose.randrange(28)
    return proto.SerializeToString()


def test_damaged_models_are_read_or_refused() -> None:
    """No error but ours, no crash."""
    choose = random.Random(19)
    paths = sorted(path for path in DATA.glob("*/model.onnx") if path.stat().st_size < 5_000)
    read = refused = 0
    for path in choose.choices(paths, k=1_000):
        data = path.read_bytes()
        mutant = choose.choice([damaged, changed, changed])(data, choose)
        try:
            with_shapes(read_model(mutant))
            read += 1
        except PackerError:
            refused += 1
    assert read > 50 and refused > 500
