"""ONNX models: a graph becomes a program, C functions and weights in one library.

`read` checks a model, `state` finds what a session keeps, `rewrite` fuses its operators, `layout`
chooses how images are stored, `lower` makes a C function of each node, `plan` places the values in
memory, `program` writes the bytecode that calls the functions, `weights` and `record` are the rest
of the library. `tree` joins them, and `operator` is what they exchange.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from packer import ExportError
from packer.files.arguments import list_of
from packer.files.progress import silent

if TYPE_CHECKING:
    import onnx
    from numpy.typing import ArrayLike

    from packer.relax import VMExecutable

    from .lower.bits import Bits

    InputShapes = Mapping[str, Sequence[int | str]]
    Model: TypeAlias = str | os.PathLike[str] | bytes | onnx.ModelProto

_BITS, _BLOCKS = (4, 8), (16, 32, 64, 128, 256)
_NOT_NEEDED = (
    "dynamic (--dynamic) is not needed: what is open in the model or in input_shapes stays open; "
    "input_shapes (--input-shape) fixes it"
)


def from_onnx(
    model: Model | Mapping[str, Model | tuple[Model, Model]],
    input_shapes: InputShapes | Sequence[InputShapes] | None = None,
    dynamic: Iterable[str] = (),
    *,
    input_values: Mapping[str, ArrayLike] | None = None,
    options: Sequence[str] = (),
    state: Mapping[str, str] | None = None,
    weight_bits: int | None = None,
    block: int | None = None,
    activation_bits: int | None = None,
    progress: Callable[[str], None] = silent,
) -> VMExecutable:
    """Make a tree of modules of an ONNX model: its library needs no other package.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto, or a mapping of str to these
        The model. Weights in other files are found beside a path only. A mapping has the models of
        functions that share the states of a session; ``"main"`` is among them, and one with two
        models has them for the first call and for later ones. A folder has such models by the
        names that optimum gives their files.
    input_shapes : mapping of str to shape, or a sequence of them, optional
        Shapes of inputs, to fix what the model leaves open, to change a shape, or to open one: a
        str is the name of an extent that each call decides, as in ``{"x": ("batch", 3, 224,
        224)}``. A sequence has several sets of shapes: the library has a program for each, over
        the same weights, and ``main`` chooses by the shapes of its arguments.
    dynamic : iterable of str
        Accepted from earlier versions, and not needed: what is open in the model or in
        `input_shapes` is open in the library. A note says so.
    input_values : mapping of str to array_like, optional
        Inputs that get their value now and not as arguments of ``main``: inputs that decide
        shapes, such as the size of a Resize. Of the dtype and shape of the input.
    options : sequence of str
        Further compiler options for the operators.
    state : mapping of str to str, optional
        Inputs that are state, each with the output that is its value in the next call: ``main``
        has neither, and is called by a session (`runtime.Module.session`). By default pairs such
        as ``past_key_values.0.key`` and ``present.0.key``; {} keeps all inputs and outputs.
    weight_bits : {4, 8}, optional
        Store the float32 matrices of products, and tables of tokens, with so many bits, rounded to
        the nearest; a note has the largest error of each. By default they are stored as they are.
    block : {16, 32, 64, 128, 256}, optional
        The inputs that share a scale, 32 by default.
    activation_bits : {8}, optional
        Let products with weights of 4 or 8 bits round what they multiply to 8 bits, in blocks.
        By default it is float32.
    progress : callable
        Gets the name of each step.

    Returns
    -------
    VMExecutable
        Its function ``main`` takes the inputs and returns the output, or a tuple of outputs: new
        tensors. It imports the C code of the operators, and the weights.

    Raises
    ------
    ExportError
        A package is missing, the model breaks a rule of ONNX, a shape is unknown or wrong, an
        operator is not supported, or a state does not fit; names the node.

    Examples
    --------
    ::

        model = packer.from_onnx("model.onnx", {"x": (1, 3, 224, 224)})
        path = packer.export_library(model, "model.so")
        main = runtime.load(path)["main"]
        y = main(x)
    """
    sets = _sets_of_shapes(input_shapes)
    notes = [_NOT_NEEDED] if list_of(dynamic, "dynamic") else []
    try:
        from .tree import make_tree
    except ModuleNotFoundError as error:
        if str(error.name).startswith(("packer.", "dso_packer_onnx.")):
            raise
        text = f"packer.from_onnx needs the package {error.name}: pip install 'dso-packer[onnx]'"
        raise ExportError(text) from error
    return make_tree(
        *(model, sets, dict(input_values or {}), tuple(list_of(options, "options"))),
        *(progress, notes, state, _bits(weight_bits, block, activation_bits)),
    )


def _bits(weight_bits: int | None, block: int | None, activation_bits: int | None) -> Bits:
    """Check the numbers."""
    from .lower.bits import Bits

    if weight_bits is None and block is not None:
        raise ExportError(f"from_onnx: block {block!r} without weight_bits; give both, or neither")
    given = {"weight": weight_bits, "block": block, "activation": activation_bits}
    for name, known in (("weight", _BITS), ("block", _BLOCKS), ("activation", (8,))):
        if given[name] is not None and given[name] not in known:
            option = name if name == "block" else f"{name}_bits"
            text = f"{option}, expected one of {', '.join(map(str, known))}, found {given[name]!r}"
            raise ExportError(f"from_onnx: {text}")
    return Bits(**{name: value for name, value in given.items() if value is not None})


def _sets_of_shapes(
    input_shapes: InputShapes | Sequence[InputShapes] | None,
) -> Sequence[InputShapes]:
    """Return the sets of shapes; one without shapes if none are given."""
    if input_shapes is None:
        return [{}]
    sets = [input_shapes] if isinstance(input_shapes, Mapping) else list(input_shapes)
    if not sets or not all(isinstance(shapes, Mapping) for shapes in sets):
        text = (
            f"input_shapes, expected a mapping of names to shapes, or a sequence of them, "
            f"found {input_shapes!r}"
        )
        raise ExportError(f"from_onnx: {text}")
    return sets
