"""Which inputs are state: each with the output that is its value in the next call.

Pairs are found by name, as torch.onnx and optimum write them: ``past_key_values.0.key``
or ``past.0.key`` with ``present.0.key``, also with ``_`` for a point. Others are given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from runtime.error import near_names, shown

from ..extent import Extent
from ..operator import shape_of
from ..read.words import refusal, shape_text

if TYPE_CHECKING:
    import onnx_ir as ir

_PAST = re.compile(r"past(?:_key_values)?([._].+)")
_PRESENT = re.compile(r"present(?:_key_values)?([._].+)")
_HOW = "give --state none to keep them as inputs and outputs"


def find_pairs(
    model: ir.Model, given: Mapping[str, str] | None, notes: list[str]
) -> list[tuple[ir.Value, ir.Value]]:
    """Return the pairs of a model with shapes, in the order of its inputs.

    `given` has the names of inputs and their outputs; None: they are found by name, and pairs
    that do not fit remain inputs and outputs, which `notes` gets. Raises ExportError if a given
    pair does not exist or does not fit.
    """
    inputs = {str(value.name): value for value in model.graph.inputs}
    outputs = {str(value.name): value for value in model.graph.outputs}
    names = _by_name([*inputs], [*outputs]) if given is None else _checked(model, given)
    pairs = [(inputs[name], outputs[names[name]]) for name in inputs if name in names]
    kept = {str(v.name) for v in model.graph.inputs} - names.keys()
    decided = {one for name in kept for one in shape_of(inputs[name])}
    wrong = next((why for pair in pairs if (why := _misfit(*pair, decided))), "")
    if wrong and given is not None:
        raise refusal(model.meta.get("source", "model"), f"state: {wrong}")
    if wrong:
        notes.append(f"{len(pairs)} inputs look like state, and remain inputs: {wrong}")
        return []
    if pairs and given is None:
        notes.append(
            f"{len(pairs)} inputs are state, as {pairs[0][0].name!r}, which a session keeps: "
            f"model.session(); {_HOW}"
        )
    return pairs


def _by_name(inputs: Sequence[str], outputs: Sequence[str]) -> dict[str, str]:
    ends = {match[1]: name for name in outputs if (match := _PRESENT.fullmatch(name))}
    found = ((name, _PAST.fullmatch(name)) for name in inputs)
    return {name: ends[match[1]] for name, match in found if match and match[1] in ends}


def _checked(model: ir.Model, given: Mapping[str, str]) -> Mapping[str, str]:
    source = model.meta.get("source", "model")
    ends = {"input": model.graph.inputs, "output": model.graph.outputs}
    for kind, names in (("input", [*given]), ("output", [*given.values()])):
        known = [str(value.name) for value in ends[kind]]
        for name in names:
            if name not in known or names.count(name) > 1:
                what = "one state only" if name in known else f"an {kind} of the model"
                text = f"state: {shown(name)}, expected {what}"
                raise refusal(source, text + ("" if name in known else near_names(name, known)))
    return given


def _misfit(past: ir.Value, present: ir.Value, decided: set[Extent]) -> str:
    """Return why an output cannot be the next value of an input; else ""."""
    names = f"{past.name!r} and {present.name!r}"
    if past.dtype != present.dtype:
        return f"{names}: data type, expected {past.dtype}, found {present.dtype}"
    before, after = shape_of(past), shape_of(present)
    fits = len(before) == len(after) <= 8 and all(
        one == other if isinstance(one, int) or one in decided else str(one).isidentifier()
        for one, other in zip(before, after, strict=True)
    )
    if fits:
        return ""
    return (
        f"{names}: shape, expected {shape_text(before)} again, or open extents where it differs, "
        f"found {shape_text(after)}"
    )
