"""The modules of a model: bytecode, the C code of its functions, and its tables as weights.

``predict`` and ``leaves`` make the result of each part, and call its C function with the weight,
the rows and the result.
"""

from __future__ import annotations

import json
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from packer.relax import MACHINE, DataType, Program
from runtime import SafetensorsModule
from runtime.abi import MODEL_RECORD

from .code import code_modules
from .draw import draw_tree
from .forest import Forest
from .pack import depth_of, pack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from packer.relax import Code, Register, VMExecutable

    from .steps import Steps

    Part = Forest | Steps

# The codes of vm.builtin.match_shape and make_shape (TVM, builtin.h).
_STORE, _ANY = 1, 2
_NUMBER, _SLOT = 0, 1
_INT32, _BYTES = DataType(0, 32), DataType(1, 8)
_DTYPES = {"float32": DataType(2, 32), "float64": DataType(2, 64)}


def model_module(parts: Sequence[Part], where: str) -> VMExecutable:
    """Make the tree of modules of a model: each part gets the results of the one before.

    Raises ExportError if a part is damaged or too large.
    """
    layers: list[_Layer] = []
    weights: dict[str, bytes] = {}
    facts: dict[str, str] = {}
    for part in parts:
        is_last = part is parts[-1]
        layer, data, of_part = (
            _of_forest(part, where) if isinstance(part, Forest) else (_of_steps(part, where))
        )
        name = f"{layer.weight}{len(weights)}" if layer.weight in weights else layer.weight
        shape = () if is_last and part.num_scores == 1 else (part.num_scores,)
        layers.append(layer._replace(weight=name, shape=shape))
        weights[name] = data
        facts |= of_part
    program = Program()
    _write(program.function("predict", ["rows"]), layers)
    forests = [i for i, part in enumerate(parts) if isinstance(part, Forest)]
    if len(forests) == 1:
        at = forests[0]
        shape = (int(facts["trees"]),)
        leaves = layers[at]._replace(function="trees_leaves", shape=shape, dtype=_INT32)
        _write(program.function("leaves", ["rows"]), [*layers[:at], leaves])
    executable = program.executable()
    has_steps = any(layer.function == "trees_transform" for layer in layers)
    for module in code_modules(has_steps=has_steps):
        executable.import_module(module)
    executable.import_module(_weights(weights, _metadata(parts, layers, facts)))
    return executable


class _Layer(NamedTuple):
    """A call of a C function with a weight, rows and a result, which has `shape` for a row."""

    function: str
    weight: str
    shape: tuple[int, ...]
    dtype: DataType


def _of_forest(forest: Forest, where: str) -> tuple[_Layer, bytes, dict[str, str]]:
    """Return the layer of a forest, its tables and facts."""
    data, trees = pack(forest, where), forest.trees
    facts = {
        "library": forest.library,
        **forest.facts,
        "trees": str(len(trees.begins) - 1),
        "depth": str(depth_of(data)),
        "leaves": str(int((trees.left < 0).sum())),
        "features_used": str(len(np.unique(trees.feature[trees.left >= 0]))),
    }
    return _Layer("trees_predict", "forest", (), _DTYPES[forest.dtype]), data, facts


def _of_steps(steps: Steps, where: str) -> tuple[_Layer, bytes, dict[str, str]]:
    layer = _Layer("trees_transform", "steps", (), _DTYPES[steps.dtype])
    return layer, steps.pack(where), dict(steps.facts)


def _write(code: Code, layers: Sequence[_Layer]) -> None:
    """Write a function: a row gets a result of the last layer's shape, rows get one for each."""
    rows = code.params[0]
    row = code.label()
    is_batch = code.call("trees_is_batch", rows)
    code.jump_if_zero(is_batch, row)
    heap = code.call("vm.builtin.alloc_shape_heap", MACHINE, 1)
    context = f"{code.name}: rows "
    code.run("vm.builtin.match_shape", rows, heap, 2, _STORE, 0, _ANY, 0, context)
    found = rows
    for layer in layers:
        pairs = [_SLOT, 0, *(number for extent in layer.shape for number in (_NUMBER, extent))]
        shape = code.call("vm.builtin.make_shape", heap, len(pairs) // 2, *pairs)
        storage = code.call("vm.builtin.alloc_storage", MACHINE, shape, 0, layer.dtype, "global")
        found = _run(code, layer, found, storage, shape)
    code.ret(found)
    code.place(row)
    found = rows
    for layer in layers:
        nbytes = (prod(layer.shape) * layer.dtype.bits // 8,)
        storage = code.call("vm.builtin.alloc_storage", MACHINE, nbytes, 0, _BYTES, "global")
        found = _run(code, layer, found, storage, layer.shape)
    code.ret(found)


def _run(
    code: Code, layer: _Layer, rows: Register, storage: Register, shape: Register | tuple[int, ...]
) -> Register:
    result = code.call("vm.builtin.alloc_tensor", storage, 0, shape, layer.dtype)
    code.run(layer.function, code.call("dso.weight", layer.weight), rows, result)
    return result


def _weights(tensors: Mapping[str, bytes], metadata: dict[str, str]) -> SafetensorsModule:
    header: dict[str, object] = {"__metadata__": metadata}
    end = 0
    for name, data in tensors.items():
        offsets = [end, end := end + len(data)]
        header[name] = {"dtype": "U8", "shape": [len(data)], "data_offsets": offsets}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    parts = [len(text).to_bytes(8, "little"), text, *tensors.values()]
    return SafetensorsModule(b"".join(parts))


def _metadata(
    parts: Sequence[Part], layers: Sequence[_Layer], facts: Mapping[str, str]
) -> dict[str, str]:
    """Return what readers of the library learn: the record of a model, and its facts."""
    first, last = parts[0], parts[-1]
    rows = {"name": "rows", "dtype": first.row_dtype, "shape": ["n", first.num_features]}
    scores = {"name": "scores", "dtype": last.dtype, "shape": ["n", *layers[-1].shape]}
    variants = [{"function": "predict", "inputs": [rows], "outputs": [scores]}]
    nodes, values = [], ["rows", *(f"values{i}" for i in range(1, len(parts))), "scores"]
    for i, (part, layer) in enumerate(zip(parts, layers, strict=True)):
        op, drawing = "{steps} steps of {library}", ""
        if isinstance(part, Forest):
            op, drawing = _FOREST, draw_tree(part)
        node = {"name": layer.weight, "op": op.format(**facts), "function": layer.function}
        ends = {"inputs": [values[i]], "outputs": [values[i + 1]]}
        nodes.append({**node, **ends, "flops": 0, "drawing": drawing})
    if "trees" in facts:
        leaves = {"name": "leaves", "dtype": "int32", "shape": ["n", int(facts["trees"])]}
        variants.append({"function": "leaves", "inputs": [rows], "outputs": [leaves]})
    record = {
        "version": 1,
        "inputs": [rows],
        "outputs": [scores],
        "variants": variants,
        "nodes": nodes,
        "values": {},
        "weights": {},
        "folded": {},
    }
    names = {"feature_names": list(first.feature_names), "classes": list(last.classes)}
    lists = {key: json.dumps(value, ensure_ascii=False) for key, value in names.items() if value}
    return {MODEL_RECORD: json.dumps(record, ensure_ascii=False), **facts, **lists}


_FOREST = "forest of {library}: {trees} trees, depth {depth}, {features_used} features used"
