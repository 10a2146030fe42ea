"""PyTorch models: torch.export traces them, torch.onnx writes ONNX, and `from_onnx` reads it."""

from __future__ import annotations

import importlib
import io
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packer import ExportError, PackerError
from packer.files.text import path_error
from runtime.error import near_names

from ..quiet import quiet

if TYPE_CHECKING:
    from collections.abc import Iterator

    import onnx

    from runtime import Module

    from ..read.outside import LightModel

_BATCH = "batch"  # the name of an extent without one


def from_torch(
    module: Any, example_inputs: Sequence[Any] = (), dynamic_shapes: Any = None, **options: Any
) -> Module:
    """Make a module of a PyTorch model, for inference.

    Parameters
    ----------
    module : torch.nn.Module, torch.export.ExportedProgram or str
        The model. A module in training mode is exported in evaluation mode, and put back. Or
        ``"module:function"``, ``"file.py:function"``: a function without arguments that returns the
        first two or three arguments of this one, as a tuple. Modules are also searched in the
        working directory, and beside the file.
    example_inputs : sequence of torch.Tensor
        Arguments of a call; the library takes the same dtypes and shapes. Not used for an
        ExportedProgram.
    dynamic_shapes : optional
        Which extents are symbolic, as for `torch.export.export`: ``{"x": {0: Dim("batch")}}``.
        One symbol, in first extents.
    **options
        Further arguments of `from_onnx`.

    Returns
    -------
    Module
        As `from_onnx` makes it: the function ``main``, weights by their names in the state dict.
        The module owns copies of the weights.

    Raises
    ------
    ExportError
        torch is not installed; torch.export cannot trace the model, or torch.onnx has no operator
        for a part of it; there is no such function, or it raises or returns something else; or as
        for `from_onnx`.

    Examples
    --------
    ::

        model = torchvision.models.resnet18().eval()
        module = packer.from_torch(model, [torch.zeros(1, 3, 224, 224)])
        packer.export_library(module, "resnet18.so")
    """
    from .. import from_onnx

    if isinstance(module, str):
        return from_torch(*_made_by(module), **options)
    model = _onnx_of(_program_of(module, example_inputs, dynamic_shapes))
    return from_onnx(model, dynamic=_name_symbols(model.proto, dynamic_shapes), **options)


def _made_by(target: str) -> tuple[Any, ...]:
    """Return what the Python function of a name returns: the arguments of `from_torch`."""
    name, separator, attribute = target.rpartition(":")
    if not (name and separator and attribute):
        raise ExportError(
            f"{target!r}: expected MODULE:FUNCTION or FILE.py:FUNCTION, as in net.py:make"
        )
    function = _function(name, attribute)
    try:
        made = function()
    except Exception as error:
        raise ExportError(f"{target}: {_first_line(error)}") from error
    if not isinstance(made, tuple) or len(made) not in (2, 3):
        raise ExportError(
            f"{target}: expected that it returns (model, example inputs[, dynamic shapes]), found "
            f"{type(made).__name__}"
        )
    return made


def _function(name: str, attribute: str) -> Callable[[], Any]:
    """Import a module, by name or by its file, and return one of its functions."""
    is_file = name.endswith(".py")
    folder = str(Path(name).absolute().parent if is_file else Path.cwd())
    sys.path.insert(0, folder)
    try:
        if is_file and not Path(name).is_file():
            raise path_error(name, "there is no such file")
        module = importlib.import_module(Path(name).stem if is_file else name)
    except PackerError:
        raise
    except Exception as error:  # any, since it runs the module
        raise ExportError(f"cannot import {name}: {_first_line(error)}") from error
    finally:
        sys.path.remove(folder)
    function: Callable[[], Any] | None = getattr(module, attribute, None)
    if not callable(function):
        names = [key for key, value in vars(module).items() if callable(value)]
        raise ExportError(f"{name} has no function {attribute!r}{near_names(attribute, names)}")
    return function


def _program_of(module: Any, example_inputs: Sequence[Any], dynamic_shapes: Any) -> Any:
    """Return the ExportedProgram of a model in evaluation mode."""
    try:
        import torch
    except ImportError as error:
        raise ExportError(
            "packer.from_torch needs the package torch: pip install 'dso-packer[torch]'"
        ) from error
    if isinstance(module, torch.export.ExportedProgram):
        return module
    if not isinstance(module, torch.nn.Module):
        raise ExportError(
            "packer.from_torch: model, expected torch.nn.Module or ExportedProgram, found "
            f"{type(module).__name__}"
        )
    was_training = module.training
    module.eval()
    try:
        with _quiet():
            return torch.export.export(module, tuple(example_inputs), dynamic_shapes=dynamic_shapes)
    except Exception as error:
        raise ExportError(
            f"packer.from_torch: torch.export cannot trace {type(module).__name__}: "
            f"{_first_line(error)}; torch.export.export(model, inputs) shows where"
        ) from error
    finally:
        module.train(was_training)


def _onnx_of(program: Any) -> LightModel:
    """Return the model, which shares the program's large weights: they are not copied."""
    import torch

    from ..read.outside import light_ir

    try:
        with _quiet():
            exported = torch.onnx.export(program, dynamo=True, verbose=False)
    except ImportError as error:
        raise ExportError(
            f"packer.from_torch needs the package {error.name}: pip install 'dso-packer[torch]'"
        ) from error
    except Exception as error:
        raise ExportError(
            "packer.from_torch: torch.onnx has no ONNX operators for the model: "
            f"{_first_line(_innermost(error))}"
        ) from error
    assert exported is not None
    return light_ir(exported.model)


def _name_symbols(proto: onnx.ModelProto, dynamic_shapes: Any) -> tuple[str, ...]:
    """Give the only symbol of the inputs the name that the caller chose; return it, if any.

    Raises ExportError if there are several symbols, or one that is not the first extent of an
    input.
    """
    places = [
        (value.name, axis, dim.dim_param)
        for value in proto.graph.input
        for axis, dim in enumerate(value.type.tensor_type.shape.dim)
        if dim.dim_param
    ]
    symbols = list(dict.fromkeys(symbol for _, _, symbol in places))
    if len(symbols) > 1 or any(axis for _, axis, _ in places):
        found = ", ".join(f"axis {axis} of {name!r}" for name, axis, _ in places)
        raise ExportError(
            "packer.from_torch: symbolic extents, expected one, of the first axis of inputs, "
            f"found {found}; leave the others out of dynamic_shapes"
        )
    if not symbols:
        return ()
    chosen = list(dict.fromkeys(_names(dynamic_shapes)))
    name = chosen[0] if len(chosen) == 1 else symbols[0] if chosen else _BATCH
    for value in (*proto.graph.input, *proto.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param == symbols[0]:
                dim.dim_param = name
    del proto.graph.value_info[:]  # they have the old name, and are inferred again
    return (name,)


def _names(shapes: Any) -> Iterator[str]:
    """Yield the names in a specification of dynamic shapes."""
    if isinstance(shapes, str):
        yield shapes
    elif isinstance(shapes, type) or hasattr(shapes, "__name__"):
        yield shapes.__name__
    elif isinstance(shapes, Mapping):
        for value in shapes.values():
            yield from _names(value)
    elif isinstance(shapes, Sequence):
        for value in shapes:
            yield from _names(value)


def _innermost(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _first_line(error: BaseException) -> str:
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep torch's notes about its own parts from the terminal, and the graph that it prints."""
    with (
        quiet("torch", "onnxscript", "onnx_ir"),
        redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield
