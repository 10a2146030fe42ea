"""PyTorch models: torch.export traces them, torch.onnx writes ONNX, and `from_onnx` reads it."""

from __future__ import annotations

import importlib
import io
import re
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
from .caches import steps_of
from .higher_order import translations

if TYPE_CHECKING:
    from collections.abc import Iterator

    import onnx

    from runtime import Module

    from ..read.outside import LightModel

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_BATCH = "batch"  # the name of an extent without one
_CLONE = "pass x.clone() where an operator takes or captures a tensor x, or a view of it, again"


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
        ExportedProgram. A cache of transformers among them, of any length, becomes state: a
        session keeps its rows, and the number of tokens is open (tokens.md). Of a model with an
        encoder the others are the encoder's, which is the function ``encoder``.
    dynamic_shapes : optional
        Which extents each call decides, as for `torch.export.export`: ``{"ids": {0: Dim("batch"),
        1: Dim("seq", max=512)}}``. The greatest value of a Dim is checked in each call.
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
    steps = steps_of(module, example_inputs, dynamic_shapes)
    if not steps:
        return from_onnx(_light(module, example_inputs, dynamic_shapes), **options)
    models = {
        function: _light(*step[:3], input_names=step.input_names, output_names=step.output_names)
        for function, step in steps.items()
    }
    return from_onnx(models if len(models) > 1 else models["main"], **options)


def _light(
    module: Any, example_inputs: Sequence[Any], dynamic_shapes: Any, **names_of: list[str]
) -> LightModel:
    """Return the ONNX model of a module, with the ranges of its open extents."""
    program = _program_of(module, example_inputs, dynamic_shapes)
    model = _onnx_of(program, **names_of)
    names = _name_symbols(model.proto, dynamic_shapes)
    return model._replace(ranges=_ranges(program, names))


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
            f"{_first_line(error)}{_advice(error)}; torch.export.export(model, inputs) shows where"
        ) from error
    finally:
        module.train(was_training)


def _onnx_of(program: Any, **names: list[str]) -> LightModel:
    """Return the model, which shares the program's large weights: they are not copied."""
    import torch

    from ..read.outside import light_ir

    try:
        with _quiet():
            exported = torch.onnx.export(
                program,
                dynamo=True,
                verbose=False,
                custom_translation_table=translations(program),
                **names,
            )
    except ImportError as error:
        raise ExportError(
            f"packer.from_torch needs the package {error.name}: pip install 'dso-packer[torch]'"
        ) from error
    except Exception as error:
        cause = _innermost(error)
        raise ExportError(
            "packer.from_torch: torch.onnx has no ONNX operators for the model: "
            f"{_first_line(cause)}{_advice(cause)}"
        ) from error
    assert exported is not None
    return light_ir(exported.model)


def _name_symbols(proto: onnx.ModelProto, dynamic_shapes: Any) -> dict[str, str]:
    """Give the symbols of a model the names that the caller chose; return the name of each.

    Without a choice the only symbol is ``batch``, and several have the names of torch.
    """
    inputs = list(proto.graph.input)
    chosen = [*_leaves(dynamic_shapes)]
    names: dict[str, str] = {}
    for value, dims in zip(inputs, chosen if len(chosen) == len(inputs) else [], strict=False):
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            symbol, name = (_IDENTIFIER.findall(one) for one in (dim.dim_param, dims.get(axis, "")))
            if len(symbol) == len(name) == 1:
                names.setdefault(symbol[0], name[0])
    params = {dim.dim_param for one in inputs for dim in one.type.tensor_type.shape.dim}
    symbols = {name for param in params for name in _IDENTIFIER.findall(param)}
    if len(symbols) == 1:
        names.setdefault(next(iter(symbols)), _BATCH)
    for value in (*inputs, *proto.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                new = _IDENTIFIER.sub(lambda m: names.get(m[0], m[0]), dim.dim_param)
                dim.dim_param = new
    del proto.graph.value_info[:]  # they have the old names, and are inferred again
    return {symbol: names.get(symbol, symbol) for symbol in symbols}


def _leaves(shapes: Any) -> Iterator[dict[int, str]]:
    """Yield for each tensor of a specification of dynamic shapes the names by axis."""
    items = list(shapes.values()) if isinstance(shapes, Mapping) else shapes
    is_list = isinstance(items, Sequence) and not isinstance(items, str)
    if not is_list or all(_is_dim(item) for item in items):
        axes = shapes if isinstance(shapes, Mapping) else dict(enumerate(items if is_list else ()))
        yield {
            axis: dim if isinstance(dim, str) else getattr(dim, "__name__", "")
            for axis, dim in axes.items()
            if isinstance(axis, int)
        }
        return
    for item in items:
        yield from _leaves(item)


def _is_dim(item: Any) -> bool:
    return item is not None and not isinstance(item, Mapping | list | tuple)


def _ranges(program: Any, names: Mapping[str, str]) -> dict[str, tuple[int, int | None]]:
    """Return the least and greatest values of extents, by the names that they have.

    A least value of 2 is torch's own, which never traces a model for 0 or 1.
    """
    found = {}
    for symbol, bounds in getattr(program, "range_constraints", {}).items():
        name, least, most = names.get(str(symbol)), bounds.lower, bounds.upper
        if name is not None:
            is_chosen = least.is_Integer and least > 2
            found[name] = int(least) if is_chosen else 0, int(most) if most.is_Integer else None
    return found


def _innermost(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _advice(error: BaseException) -> str:
    return f"; {_CLONE}" if "alias" in str(error) else ""


def _first_line(error: BaseException) -> str:
    """Return the type and the first line of an error, with the line that a colon introduces."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " ".join(lines[:2] if lines and lines[0].endswith(":") else lines[:1])
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
