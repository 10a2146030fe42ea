"""The shapes of a model's inputs: as the model declares them, or as a user gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from runtime.error import near_names, shown

from ..extent import Extent, identifier, step_of
from ..extent_text import parsed
from .types import known_extents
from .words import refusal, shape_text

if TYPE_CHECKING:
    import onnx_ir as ir

Given = tuple[int | str | None, ...]


def input_shapes(
    model: ir.Model, shapes: Mapping[str, Sequence[int | str]], source: str
) -> tuple[dict[str, tuple[Extent, ...]], bool]:
    """Return the shape of each input, and whether one differs from the declared shape.

    `shapes` are given by the user. Raises ExportError if they do not fit.
    """
    given = _checked(model, shapes, source)
    declared = {value.name: known_extents(value.shape) for value in model.graph.inputs}
    names: dict[str, int | str] = {}
    changed = False
    for key, shape in given.items():
        for old, new in zip(declared[key] or (), shape, strict=False):
            changed |= isinstance(old, int) and old != new
            if isinstance(old, str) and new is not None and names.setdefault(old, new) != new:
                text = f"input_shapes: {shown(key)}: extent {shown(old)}, expected {names[old]} as"
                raise refusal(source, f"{text} given before, found {new}")
    whole: dict[str, Given] = {}
    for key, known in declared.items():
        shape_ = given.get(key, known)
        if shape_ is None:
            text = f"input {shown(key)} has no shape, expected one; give it by input_shapes"
            raise refusal(source, text)
        # A name that one input was given an extent for has it in the others too.
        whole[key] = tuple(names.get(one, one) if isinstance(one, str) else one for one in shape_)
    return _named(whole), changed


def _checked(
    model: ir.Model, shapes: Mapping[str, Sequence[int | str]], source: str
) -> dict[str, Given]:
    """Return the given shapes, after the check of names and ranks."""
    inputs = {value.name: value for value in model.graph.inputs}
    for name, shape in shapes.items():
        if name not in inputs:
            text = f"input_shapes: the model has no input {shown(name)}"
            raise refusal(source, text + near_names(name, list(inputs)))
        where = f"input_shapes: {shown(name)}"
        is_list = isinstance(shape, Sequence) and not isinstance(shape, str | bytes)
        if not is_list or not all(_is_extent(extent) for extent in shape):
            text = f"{where}, expected extents of at least 0 or names, found {shown(shape)}"
            raise refusal(source, text)
        declared = inputs[name].shape
        if declared is not None and len(declared) != len(shape):
            wanted = known_extents(declared)
            text = f"{where}, expected {len(declared)} axes as in {shape_text(wanted)}"
            raise refusal(source, f"{text}, found {shape_text(shape)}")
    return {name: tuple(shape) for name, shape in shapes.items()}


def _is_extent(extent: object) -> bool:
    return isinstance(extent, str) or (
        isinstance(extent, int) and not isinstance(extent, bool) and extent >= 0
    )


def _named(shapes: Mapping[str, Given]) -> dict[str, tuple[Extent, ...]]:
    """Return shapes whose open extents are expressions of identifiers."""
    texts = [e for shape in shapes.values() for e in shape if isinstance(e, str)]
    plain = {text for text in texts if text.isascii() and text.isidentifier()}
    made: dict[str, str] = {text: identifier(text, ()) for text in sorted(plain)}
    steps = [_step(text) for text in texts]
    made |= {name: identifier(name, ()) for name in sorted({*filter(None, steps)})}
    for text in texts:
        if text not in made:
            made[text] = _expression(text, made) or identifier(text, list(made.values()))
    found: dict[str, tuple[Extent, ...]] = {}
    for key, shape in shapes.items():
        extents: list[Extent] = []
        for axis, extent in enumerate(shape):
            if extent is None:
                extents.append(identifier(f"{key}_{axis}", list(made.values())))
            else:
                extents.append(made[extent] if isinstance(extent, str) else extent)
        found[key] = tuple(extents)
    return found


def _step(text: str) -> str | None:
    """Return h of 32*h + 1, which a call then gives; None for other texts."""
    try:
        step = step_of(text)
    except ValueError:
        return None
    return step[0] if step else None


def _expression(text: str, names: Mapping[str, str]) -> str | None:
    """Return a text of a model that is an expression of other names; None for a name."""
    try:
        expression = parsed(text)
    except ValueError:
        return None
    is_known = all(symbol.name in names for symbol in expression.free_symbols)
    return str(expression) if is_known else None
