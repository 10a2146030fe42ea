"""The kinds "onnx" and "torch": a model as packer.toml and the command line describe it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from runtime.error import ExportError
from runtime.module import Module

from ..importers import find_model_importer
from .inputs import Inputs
from .table import Table

Shape = tuple[int | str, ...]

_EXTENT = re.compile(r"[0-9]+")


class ModelSource(NamedTuple):
    """A model, and how to import it.

    Attributes
    ----------
    kind : str
        The importer: a key of `MODELS`.
    model : Path or str
        The file of an ONNX model; or the Python function that makes a PyTorch model,
        ``"module:function"`` or ``"file.py:function"``.
    input_shapes : tuple of str
        ``"x=1x3x224x224"``: as `read_input_shapes` takes them.
    dynamic : tuple of str
        The name of the dimension that stays open.
    input_values : tuple of str
        ``"size=2,2,5,6"``: as `read_input_values` takes them.
    options : tuple of str
        Compiler options for the operators.
    """

    kind: str
    model: Path | str
    input_shapes: tuple[str, ...] = ()
    dynamic: tuple[str, ...] = ()
    input_values: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    def module(self, inputs: Inputs) -> Module:
        """Import the model; its file is added to the inputs. ExportError as the importer does."""
        if isinstance(self.model, Path):
            inputs.add(self.model)
        arguments: dict[str, Any] = {"options": self.options, "progress": inputs.progress}
        if self.input_shapes:
            arguments["input_shapes"] = read_input_shapes(self.input_shapes)
        if self.dynamic:
            arguments["dynamic"] = self.dynamic
        if self.input_values:
            arguments["input_values"] = read_input_values(self.input_values)
        return find_model_importer(self.kind)(self.model, **arguments)


def model_module(table: Table) -> Module:
    """Make the module that a table describes."""
    kind, model = table.needed_text("kind"), table.needed_text("model")
    if kind == "torch":
        module, separator, function = model.rpartition(":")
        if module.endswith(".py"):
            model = f"{table.file('model', module)}{separator}{function}"
        return ModelSource(kind, model, options=table.texts("options")).module(table.inputs)
    keys = (table.texts(key) for key in ("input_shapes", "dynamic", "input_values", "options"))
    return ModelSource(kind, table.file("model", model), *keys).module(table.inputs)


def read_input_shapes(texts: Iterable[str]) -> list[dict[str, Shape]]:
    """Read ``NAME=SHAPE`` texts as sets of shapes.

    A name that comes again begins the next set. An input that is named once has this shape in all
    sets.

    Parameters
    ----------
    texts : iterable of str
        A shape is ``1x3x224x224`` or ``1,3,224,224``; nothing is a scalar. An extent that is no
        number is the name of a dimension: ``batch,3,224,224``.

    Returns
    -------
    list of dict of str to tuple
        The sets in order; [] without texts.

    Raises
    ------
    ExportError
        A text has another form, or inputs are not in every set.
    """
    given: dict[str, list[Shape]] = {}
    for text in texts:
        name, separator, shape = text.rpartition("=")
        if not (name and separator):
            raise _refusal(f"expected NAME=SHAPE, as in x=1x3x224x224, found {text!r}")
        given.setdefault(name.strip(), []).append(_shape(text, shape.strip()))
    count = max(map(len, given.values()), default=0)
    for name, shapes in given.items():
        if len(shapes) not in (1, count):
            text = f"{name!r} has {len(shapes)} shapes, expected 1 or {count}, as other inputs have"
            raise _refusal(text)
    return [
        {name: shapes[index if len(shapes) > 1 else 0] for name, shapes in given.items()}
        for index in range(count)
    ]


def read_input_values(texts: Iterable[str]) -> dict[str, list[int | float]]:
    """Read ``NAME=NUMBERS`` texts as the values of inputs, by name: ``size=2,2,5,6``.

    Raises
    ------
    ExportError
        A text has another form, or a name comes twice.
    """
    values: dict[str, list[int | float]] = {}
    for text in texts:
        name, separator, numbers = text.rpartition("=")
        name = name.strip()
        if not (name and separator) or name in values:
            expected = "each name once" if name in values else "NAME=NUMBERS, as in size=2,2,5,6"
            raise ExportError(f"input values: expected {expected}, found {text!r}")
        try:
            words = [word.strip() for word in numbers.split(",")]
            values[name] = [float(w) if set(w) & set(".enai") else int(w) for w in words]
        except ValueError:
            raise ExportError(f"input values: {text!r}: expected numbers") from None
    return values


def _shape(text: str, shape: str) -> Shape:
    words: Sequence[str] = shape.split("," if "," in shape else "x") if shape else ()
    words = [word.strip() for word in words]
    if not all(words):
        raise _refusal(f"{text!r}: a shape, expected extents as in 1x3x224x224")
    return tuple(int(word) if _EXTENT.fullmatch(word) else word for word in words)


def _refusal(text: str) -> ExportError:
    return ExportError(f"input shapes: {text}")
