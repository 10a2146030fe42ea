"""The modules of a forest: bytecode, the C code of its functions, and its bytes as a weight.

``predict`` and ``leaves`` make the result, and call the C function with the weight, the rows and
the result.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import ref

import numpy as np

from packer import CSourceModule
from packer.relax import MACHINE, DataType, Program
from runtime import SafetensorsModule
from runtime.abi import MODEL_RECORD

from .pack import depth_of, pack

if TYPE_CHECKING:
    from packer.relax import Code, Register, VMExecutable

    from .forest import Forest

_WEIGHT = "forest"
_SUPPORT = Path(__file__).parent / "support"
_FUNCTIONS = {
    "trees_is_batch": "int64_t(const DLTensor *x)",
    "trees_predict": "dso_status(const DLTensor *forest, const DLTensor *x, DLTensor *y)",
    "trees_leaves": "dso_status(const DLTensor *forest, const DLTensor *x, DLTensor *y)",
}
# The codes of vm.builtin.match_shape and make_shape (TVM, builtin.h).
_STORE, _ANY = 1, 2
_NUMBER, _SLOT = 0, 1
_INT32, _FLOAT = DataType(0, 32), 2


def forest_module(forest: Forest, where: str) -> VMExecutable:
    """Make the tree of modules of a forest.

    Raises ExportError if the forest is damaged or too large.
    """
    data = pack(forest, where)
    scores = forest.num_scores
    shape = () if scores == 1 else (scores,)
    dtype = DataType(_FLOAT, 64 if forest.dtype == "float64" else 32)
    program = Program()
    _write(program.function("predict", ["rows"]), "trees_predict", shape, dtype)
    num_trees = len(forest.trees.begins) - 1
    _write(program.function("leaves", ["rows"]), "trees_leaves", (num_trees,), _INT32)
    executable = program.executable()
    executable.import_module(_code())
    executable.import_module(_weights(data, _metadata(forest, shape, data)))
    return executable


def _write(code: Code, function: str, shape: tuple[int, ...], dtype: DataType) -> None:
    """Write a function: a row gets a result of `shape`, rows get one for each."""
    rows = code.params[0]
    nbytes = dtype.bits // 8
    for extent in shape:
        nbytes *= extent
    row = code.label()
    is_batch = code.call("trees_is_batch", rows)
    code.jump_if_zero(is_batch, row)
    heap = code.call("vm.builtin.alloc_shape_heap", MACHINE, 1)
    context = f"{code.name}: rows "
    code.run("vm.builtin.match_shape", rows, heap, 2, _STORE, 0, _ANY, 0, context)
    pairs = [_SLOT, 0, *(number for extent in shape for number in (_NUMBER, extent))]
    of_rows = code.call("vm.builtin.make_shape", heap, len(pairs) // 2, *pairs)
    storage = code.call("vm.builtin.alloc_storage", MACHINE, of_rows, 0, dtype, "global")
    _finish(code, function, storage, of_rows, dtype)
    code.place(row)
    storage = code.call("vm.builtin.alloc_storage", MACHINE, (nbytes,), 0, DataType(1, 8), "global")
    _finish(code, function, storage, shape, dtype)


def _finish(
    code: Code,
    function: str,
    storage: Register,
    shape: Register | tuple[int, ...],
    dtype: DataType,
) -> None:
    result = code.call("vm.builtin.alloc_tensor", storage, 0, shape, dtype)
    code.run(function, code.call("dso.weight", _WEIGHT), code.params[0], result)
    code.ret(result)


_made: ref[CSourceModule] | None = None


def _code() -> CSourceModule:
    """Return the module of the C code: one for all forests of a library."""
    global _made
    module = _made() if _made else None
    if module is None:
        path = _SUPPORT / "evaluate.c"
        module = CSourceModule(path, functions=_FUNCTIONS, libraries=("m",), options=_OPTIONS)
        _made = ref(module)
    return module


_OPTIONS = ("-O3", "-ffp-contract=off")


def _weights(data: bytes, metadata: dict[str, str]) -> SafetensorsModule:
    header = {
        "__metadata__": metadata,
        _WEIGHT: {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]},
    }
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    return SafetensorsModule(len(text).to_bytes(8, "little") + text + data)


def _metadata(forest: Forest, shape: tuple[int, ...], data: bytes) -> dict[str, str]:
    """Return what readers of the library learn: the record of a model, and the forest's facts."""
    trees = forest.trees
    num_trees = len(trees.begins) - 1
    rows = {"name": "rows", "dtype": forest.row_dtype, "shape": ["n", forest.num_features]}
    scores = {"name": "scores", "dtype": forest.dtype, "shape": ["n", *shape]}
    leaves = {"name": "leaves", "dtype": "int32", "shape": ["n", num_trees]}
    facts = {
        "library": forest.library,
        **forest.facts,
        "trees": str(num_trees),
        "depth": str(depth_of(data)),
        "leaves": str(int((trees.left < 0).sum())),
        "features_used": str(len(np.unique(trees.feature[trees.left >= 0]))),
    }
    text = "forest of {library}: {trees} trees, depth {depth}, {features_used} features used"
    node = {"name": "forest", "op": text.format(**facts), "function": "trees_predict"}
    ends = {"inputs": [rows["name"]], "outputs": [scores["name"]]}
    record = {
        "version": 1,
        "inputs": [rows],
        "outputs": [scores],
        "variants": [
            {"function": "predict", "inputs": [rows], "outputs": [scores]},
            {"function": "leaves", "inputs": [rows], "outputs": [leaves]},
        ],
        "nodes": [{**node, **ends, "flops": 0}],
        "values": {},
        "weights": {},
        "folded": {},
    }
    names = {"feature_names": list(forest.feature_names), "classes": list(forest.classes)}
    lists = {key: json.dumps(value, ensure_ascii=False) for key, value in names.items() if value}
    return {MODEL_RECORD: json.dumps(record, ensure_ascii=False), **facts, **lists}
