"""``kind = "onnx"``: a model as packer.toml and the command line describe it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from runtime.error import ExportError
from runtime.module import Module

from ..files.progress import Progress, silent
from ..importers import find_model_importer
from .table import Table

Shape = tuple[int | str, ...]

_EXTENT = re.compile(r"[0-9]+")


class ModelSource(NamedTuple):
    """A file with a model, and how to import it.

    Attributes
    ----------
    kind : str
        The importer: ``"onnx"``.
    path : Path
        The file.
    input_shapes : tuple of str
        ``"x=1x3x224x224"``: as `read_input_shapes` takes them.
    dynamic : tuple of str
        The name of the dimension that stays open.
    """

    kind: str
    path: Path
    input_shapes: tuple[str, ...] = ()
    dynamic: tuple[str, ...] = ()

    def module(self, progress: Progress = silent) -> Module:
        """Import the model; ExportError as the importer raises it."""
        shapes = read_input_shapes(self.input_shapes)
        make = find_model_importer(self.kind)
        return make(self.path, shapes or None, self.dynamic, progress=progress)


def model_module(table: Table) -> Module:
    """Make the module that a table describes."""
    path = table.file("model", table.needed_text("model"))
    shapes, dynamic = table.texts("input_shapes"), table.texts("dynamic")
    return ModelSource(table.needed_text("kind"), path, tuple(shapes), tuple(dynamic)).module()


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


def _shape(text: str, shape: str) -> Shape:
    words: Sequence[str] = shape.split("," if "," in shape else "x") if shape else ()
    words = [word.strip() for word in words]
    if not all(words):
        raise _refusal(f"{text!r}: a shape, expected extents as in 1x3x224x224")
    return tuple(int(word) if _EXTENT.fullmatch(word) else word for word in words)


def _refusal(text: str) -> ExportError:
    return ExportError(f"input shapes: {text}")
