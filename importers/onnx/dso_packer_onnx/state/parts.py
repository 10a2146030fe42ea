"""Parts: the graphs of one library, whose functions share the states of a session.

An encoder and a decoder are two functions, ``encoder`` and ``main``. optimum has two graphs for
``main``, of the first call and of later ones: two files, or the branches of one If.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from packer import ExportError
from packer.files.text import path_error
from runtime.error import shown

from ..read import fix_inputs, read_model
from ..read.branches import take_branch
from .pairs import has_caches

if TYPE_CHECKING:
    import onnx_ir as ir

MAIN, _ENCODER = "main", "encoder"
_HAS_PAST = "use_cache_branch"  # an input: whether caches have rows
_HIDDEN, _MASK = "encoder_hidden_states", "encoder_attention_mask"  # what decoders read
_MERGED, _FIRST, _LATER = (
    f"decoder_{name}.onnx" for name in ("model_merged", "model", "with_past_model")
)
_WHOLE, _ENCODER_FILE = "model.onnx", "encoder_model.onnx"


class Part(NamedTuple):
    """A graph of a function; of two, one is for a session without state, one for later calls."""

    function: str
    model: ir.Model
    is_first: bool | None = None  # None: the function has one graph

    @property
    def name(self) -> str:
        """The function of the graph."""
        return self.function if self.is_first is None else f"{self.function}_{2 - self.is_first}"


def read_parts(
    model: Any, values: Mapping[str, Any], state: Mapping[str, str] | None
) -> list[Part]:
    """Read a model, the models of functions by their names, or a folder of optimum.

    ``main`` comes first. `values` become the values of inputs. Raises ExportError as `read_model`
    does, or if a folder or a mapping has other entries.
    """
    if isinstance(model, str | os.PathLike) and Path(model).is_dir():
        model = _files_of(Path(model))
    parts = [one for entry in _functions(model).items() for one in _read(*entry)]
    parts = [made for part in parts for made in _divided(part, values, state)]
    for part in parts:
        fix_inputs(part.model, given_to(part, parts, values))
    _share_encoder(parts)
    if len(parts) > 1:
        _drop_unchanged(parts)
    return parts


def given_to(part: Part, parts: Sequence[Part], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is given for inputs of a part; for a wrong name all, so that each refuses it."""
    known = [{str(value.name) for value in one.model.graph.inputs} for one in parts]
    own = known[parts.index(part)]
    return {
        name: one
        for name, one in given.items()
        if name in own or not any(name in names for names in known)
    }


def _functions(model: Any) -> dict[str, Any]:
    if not isinstance(model, Mapping):
        return {MAIN: model}
    if MAIN not in model or not all(str(name).isidentifier() for name in model):
        text = f"packer.from_onnx: models, expected {MAIN!r} and other names of functions, found"
        raise ExportError(f"{text} {shown([*model])}")
    return {MAIN: model[MAIN], **model}


def _read(function: str, source: Any) -> list[Part]:
    """Read the model of a function, or its two: of the first call, and of later ones."""
    if type(source) not in (tuple, list):
        return [Part(function, read_model(source))]
    if len(source) != 2:
        text = "expected a model, or two: of the first call, and of later ones, found"
        raise ExportError(f"packer.from_onnx: {function}: {text} {len(source)}")
    return [Part(function, read_model(one), one is source[0]) for one in source]


def _files_of(folder: Path) -> dict[str, Any]:
    """Return the files of a folder, as optimum names them, by their functions."""
    has = {path.name for path in folder.glob("*.onnx")}
    main: Any = next((folder / name for name in (_MERGED, _WHOLE) if name in has), None)
    if main is None and has >= {_FIRST, _LATER}:
        main = folder / _FIRST, folder / _LATER
    if main is None:
        text = f"a folder of models, expected {_WHOLE}, {_MERGED}, or {_FIRST} and {_LATER}"
        advice = "optimum writes the last ones for tasks that end in '-with-past'"
        raise path_error(folder, f"{text}, found {sorted(has)}; {advice}")
    encoder = {_ENCODER: folder / _ENCODER_FILE} if _ENCODER_FILE in has else {}
    return {MAIN: main, **encoder}


def _divided(
    part: Part, values: Mapping[str, Any], state: Mapping[str, str] | None
) -> Iterator[Part]:
    """Yield the two graphs of a model that asks whether its caches have rows; else the part."""
    import onnx_ir as ir

    inputs = [str(value.name) for value in part.model.graph.inputs]
    has_state = bool(state) or (state is None and has_caches(inputs))
    if _HAS_PAST not in inputs or _HAS_PAST in values or not has_state:
        yield part
        return
    for is_first in (True, False):
        made = part.model.clone()
        made.meta.update(part.model.meta)
        fix_inputs(made, {_HAS_PAST: [not is_first]})
        value = made.graph.initializers[_HAS_PAST]
        for node, _ in list(value.uses()):
            if node.op_type == "If" and node.graph is made.graph:
                take_branch(made.graph, node, not is_first)
        read = {
            one for node in ir.traversal.RecursiveGraphIterator(made.graph) for one in node.inputs
        }
        for value in [one for one in made.graph.inputs if one not in read]:
            if has_caches([str(value.name)]) or value.name in (state or ()):
                made.graph.inputs.remove(value)
        yield Part(part.function, made, is_first)


def _share_encoder(parts: Sequence[Part]) -> None:
    """Let an encoder of optimum return what decoders read of it, by the names that they use."""
    import onnx_ir as ir

    read = {
        value.name
        for part in parts
        for value in part.model.graph.inputs
        if part.function != _ENCODER
    }
    for graph in (part.model.graph for part in parts if part.function == _ENCODER):
        made = {value.name: value for value in graph.outputs}
        if _HIDDEN in read - made.keys() and "last_hidden_state" in made:
            made["last_hidden_state"].name = _HIDDEN
        mask = next((value for value in graph.inputs if value.name == "attention_mask"), None)
        if _MASK in read - made.keys() and mask is not None:
            node = ir.Node("", "Identity", [mask], num_outputs=1)
            graph.append(node)
            node.outputs[0].name, node.outputs[0].type = _MASK, mask.type
            node.outputs[0].shape = mask.shape
            graph.outputs.append(node.outputs[0])


def _drop_unchanged(parts: Sequence[Part]) -> None:
    """Remove outputs that only repeat a state, or are empty in place of it: it is kept."""
    for graph in (part.model.graph for part in parts):
        for output in list(graph.outputs):
            value = output
            while (node := value.producer()) is not None and node.op_type == "Identity":
                value = node.inputs[0]
            is_cache = value in graph.inputs and has_caches([str(value.name)])
            if is_cache or _is_empty(value):
                graph.outputs.remove(output)


def _is_empty(value: ir.Value) -> bool:
    """Return True for a constant without elements."""
    node, array = value.producer(), value.const_value
    if node is not None and node.op_type == "Constant" and "value" in node.attributes:
        array = node.attributes["value"].as_tensor()
    return array is not None and array.size == 0
