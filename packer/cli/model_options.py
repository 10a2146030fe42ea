"""The options of `packer export` that import a model: --onnx, --torch and theirs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ..project.model import ModelSource
from .compiler_options import compiler_words

if TYPE_CHECKING:
    from .parser import CommandParser


def add_model_options(parser: CommandParser) -> None:
    """Add the options."""
    group = parser.add_argument_group("models; docs/onnx.md")
    group.add_argument("--onnx", metavar="FILE", help="an ONNX model; its function is main")
    made = "a Python function that returns a PyTorch model and example inputs; FILE.py:FUNCTION too"
    group.add_argument("--torch", metavar="MODULE:FUNCTION", help=made)
    shape = "the shape of an input: x=1x3x224x224; a second one of x begins another set of shapes"
    parser.add_repeated("--input-shape", "NAME=SHAPE", shape, group)
    group.add_argument("--dynamic", metavar="NAME", help="the dimension that stays open: batch")
    fixed = "the value of an input that decides shapes: size=2,2,5,6; it is no argument then"
    parser.add_repeated("--input-value", "NAME=NUMBERS", fixed, group)


def model_source(parser: CommandParser, arguments: argparse.Namespace) -> ModelSource | None:
    """Return the model that the options describe, or None; end with exit code 2 for a mistake."""
    for kind in ("onnx", "torch"):
        if getattr(arguments, kind) is not None and arguments.project is not None:
            parser.error(f"argument --project: not allowed with --{kind}")
    if arguments.onnx is not None and arguments.torch is not None:
        parser.error("argument --torch: not allowed with --onnx")
    if arguments.onnx is None:
        for option, value in (
            ("input-shape", arguments.input_shape),
            ("dynamic", arguments.dynamic),
            ("input-value", arguments.input_value),
        ):
            if value:
                parser.error(f"argument --{option}: needs --onnx")
        if arguments.torch is None:
            return None
        return ModelSource("torch", arguments.torch, options=tuple(compiler_words(arguments)))
    dynamic = () if arguments.dynamic is None else (arguments.dynamic,)
    shapes, values = tuple(arguments.input_shape), tuple(arguments.input_value)
    words = tuple(compiler_words(arguments))
    return ModelSource("onnx", Path(arguments.onnx), shapes, dynamic, values, words)
