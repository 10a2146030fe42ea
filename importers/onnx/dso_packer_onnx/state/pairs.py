"""Which inputs are state: each with the output that is its value in the next call.

Pairs are found by name, as torch.onnx and optimum write them: ``past_key_values.0.key``
or ``past.0.key`` with ``present.0.key``, also with ``_`` for a point. Others are given. A function
may only make a state, as an encoder, and another one only read it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
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


def has_caches(inputs: Iterable[str]) -> bool:
    """Return True if an input has the name of a cache."""
    return any(_PAST.fullmatch(name) for name in inputs)


def find_pairs(
    models: Sequence[ir.Model], given: Mapping[str, str] | None, notes: list[str]
) -> dict[str, str]:
    """Return the output of each input that is state, in models with shapes that share states.

    `given` has the names of inputs and their outputs; None: they are found by name, and pairs
    of one model that do not fit remain inputs and outputs, which `notes` gets. Raises ExportError
    if a given pair does not exist, or if one of several models does not fit.
    """
    source = models[0].meta.get("source", "model")
    inputs = [str(value.name) for model in models for value in model.graph.inputs]
    outputs = [str(value.name) for model in models for value in model.graph.outputs]
    found = _by_name(inputs, outputs) if given is None else _checked(source, inputs, outputs, given)
    pairs = {name: found[name] for name in inputs if name in found}
    wrong = next((why for model in models if (why := _misfits(model, pairs))), "")
    wrong = wrong or _differences(models, pairs)
    if wrong and (given is not None or len(models) > 1):
        raise refusal(source, f"state: {wrong}" + (f"; {_HOW}" if given is None else ""))
    if wrong:
        notes.append(f"{len(pairs)} inputs look like state, and remain inputs: {wrong}")
        return {}
    if pairs and given is None:
        notes.append(
            f"{len(pairs)} inputs are state, as {next(iter(pairs))!r}, which a session keeps: "
            f"model.session(); {_HOW}"
        )
    return pairs


def _by_name(inputs: Sequence[str], outputs: Sequence[str]) -> dict[str, str]:
    """Pair names of caches, and equal ones, which one function returns and another one takes."""
    ends = {match[1]: name for name in outputs if (match := _PRESENT.fullmatch(name))}
    found = ((name, _PAST.fullmatch(name)) for name in inputs)
    caches = {name: ends[match[1]] for name, match in found if match and match[1] in ends}
    return {name: name for name in inputs if name in outputs} | caches


def _checked(
    source: str, inputs: Sequence[str], outputs: Sequence[str], given: Mapping[str, str]
) -> Mapping[str, str]:
    for kind, known, names in (
        ("input", inputs, [*given]),
        ("output", outputs, [*given.values()]),
    ):
        for name in names:
            if name not in known or names.count(name) > 1:
                what = "one state only" if name in known else f"an {kind} of the model"
                text = f"state: {shown(name)}, expected {what}"
                raise refusal(source, text + ("" if name in known else near_names(name, [*known])))
    return given


def _misfits(model: ir.Model, pairs: Mapping[str, str]) -> str:
    """Return why a model's output cannot be the next value of its input; else ""."""
    inputs = {str(value.name): value for value in model.graph.inputs}
    outputs = {str(value.name): value for value in model.graph.outputs}
    decided = {one for name in inputs.keys() - pairs.keys() for one in shape_of(inputs[name])}
    both = ((inputs.get(one), outputs.get(other)) for one, other in pairs.items())
    found = (_misfit(*pair, decided) for pair in both if None not in pair)
    return next(filter(None, found), "")


def _differences(models: Sequence[ir.Model], pairs: Mapping[str, str]) -> str:
    """Return why values of a state in several models differ; else ""."""
    for past, present in pairs.items():
        ends = [
            *(value for model in models for value in model.graph.inputs if value.name == past),
            *(value for model in models for value in model.graph.outputs if value.name == present),
        ]
        kinds = {(value.dtype, len(shape_of(value))) for value in ends}
        axes = zip(*map(shape_of, ends), strict=False)
        if len(kinds) > 1 or any(len({e for e in axis if isinstance(e, int)}) > 1 for axis in axes):
            shapes = ", ".join(f"{value.dtype}{shape_text(shape_of(value))}" for value in ends)
            return f"{past!r} and {present!r}: expected one type in all functions, found {shapes}"
    return ""


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
