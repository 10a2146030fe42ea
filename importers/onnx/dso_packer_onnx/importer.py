"""The importer of ONNX models, as packer finds it: its settings, options and texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from packer import ExportError, Importer, Setting

if TYPE_CHECKING:
    import argparse

Shape = tuple[int | str, ...]

_EXTENT = re.compile(r"[0-9]+")
_NO_STATE = "none"


def read_input_shapes(texts: Iterable[str]) -> list[dict[str, Shape]]:
    """Read ``NAME=SHAPE`` texts as sets of shapes.

    A name that comes again begins the next set. An input that is named once has this shape in all
    sets.

    Parameters
    ----------
    texts : iterable of str
        A shape is ``1x3x224x224`` or ``1,3,224,224``; nothing is a scalar. An extent that is not a
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

    Raises ExportError if a text has another form, or a name comes twice.
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


def read_pairs(texts: Sequence[str]) -> dict[str, str] | None:
    """Read ``INPUT=OUTPUT`` texts; None without any, {} for the one text ``none``.

    Raises ExportError if a text has another form, or an input comes twice.
    """
    if not texts:
        return None
    if list(texts) == [_NO_STATE]:
        return {}
    pairs: dict[str, str] = {}
    for text in texts:
        name, separator, output = (part.strip() for part in text.partition("="))
        if not (name and separator and output) or name in pairs:
            expected = "each input once" if name in pairs else "INPUT=OUTPUT, or only 'none'"
            raise ExportError(f"state: expected {expected}, found {text!r}")
        pairs[name] = output
    return pairs


def _number(text: str, what: str) -> int:
    """Read a number without a sign; `from_onnx` knows which ones there are."""
    if not _EXTENT.fullmatch(text):
        raise ExportError(f"{what}: expected a number, found {text!r}")
    return int(text)


def _shape(text: str, shape: str) -> Shape:
    words: Sequence[str] = shape.split("," if "," in shape else "x") if shape else ()
    words = [word.strip() for word in words]
    if not all(words):
        raise _refusal(f"{text!r}: a shape, expected extents as in 1x3x224x224")
    return tuple(int(word) if _EXTENT.fullmatch(word) else word for word in words)


def _refusal(text: str) -> ExportError:
    return ExportError(f"input shapes: {text}")


def _add_options(group: argparse._ArgumentGroup) -> None:
    shape = "an input's shape: x=1x3x224x224, x=batch,3,h,w; x again begins another set of shapes"
    fixed = "the value of an input that decides shapes: size=2,2,5,6; it is not an argument then"
    state = "an input that a session keeps, with its next value; found by name without; or none"
    for option, dest, metavar, text in (
        (
            "--weight-bits",
            "weight_bits",
            "4|8",
            "store matrices of products and tables of tokens so",
        ),
        ("--block", "block", "N", "inputs that share a scale of --weight-bits; 32"),
        (
            "--activation-bits",
            "activation_bits",
            "8",
            "round what such products multiply to 8 bits",
        ),
    ):
        group.add_argument(option, dest=dest, metavar=metavar, help=text)
    for option, dest, metavar, text in (
        ("--input-shape", "input_shapes", "NAME=SHAPE", f"{shape}; may be repeated"),
        ("--dynamic", "dynamic", "NAME", "not needed: what is open in the model stays open"),
        ("--input-value", "input_values", "NAME=NUMBERS", f"{fixed}; may be repeated"),
        ("--state", "state", "INPUT=OUTPUT", f"{state}; may be repeated"),
    ):
        group.add_argument(
            option, dest=dest, action="append", default=[], metavar=metavar, help=text
        )


SETTINGS = (
    Setting(
        "input_shapes",
        "strings",
        '`"x=1x3x224x224"`: the shapes of the inputs; a name in place of a number, as in '
        '`"x=batch,3,224,224"`, is an extent that each call decides. An input that is named again '
        "begins the next set of shapes.",
        read_input_shapes,
    ),
    Setting(
        "dynamic",
        "strings",
        '`["batch"]`: not needed; what is open in the model or in `input_shapes` stays open.',
    ),
    Setting(
        "input_values",
        "strings",
        '`["size=1,3,64,64"]`: inputs that decide shapes, with their values.',
        read_input_values,
    ),
    Setting(
        "state",
        "strings",
        '`["h=h_next"]`: inputs that a session keeps, each with the output that is its next value. '
        'By default caches are found by their names; `["none"]` keeps them inputs and outputs.',
        read_pairs,
    ),
    Setting(
        "weight_bits",
        "string",
        '`"4"` or `"8"`: store matrices of products and tables of tokens with so many bits.',
        lambda text: _number(text, "weight bits"),
    ),
    Setting(
        "block",
        "string",
        '`"32"`: the inputs that share a scale of `weight_bits`: 16, 32, 64, 128 or 256.',
        lambda text: _number(text, "block"),
    ),
    Setting(
        "activation_bits",
        "string",
        '`"8"`: products with weights of few bits round what they multiply to 8 bits.',
        lambda text: _number(text, "activation bits"),
    ),
    Setting("options", "strings", "Further options for the compiler."),
)
IMPORTER = Importer(
    "onnx",
    {".onnx": None},
    "dso_packer_onnx:from_onnx",
    SETTINGS,
    _add_options,
    title="models; importers/onnx/docs/onnx.md",
    text="an ONNX model, or a folder of optimum's; its function is main",
    takes_folders=True,
)
