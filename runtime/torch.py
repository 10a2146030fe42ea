"""PackedModule: a function of a loaded library as a `torch.nn.Module`. Needs PyTorch.

Nothing else of the runtime imports it; ``import runtime.torch``, or ``runtime.torch``, does.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ._core import TensorBase
from .interchange import homes_of, module_to_bytes, rebuild_module
from .load import load
from .module import Module

try:
    import torch
except ImportError as error:
    text = f"runtime.torch needs PyTorch: pip install torch ({error})"
    raise ImportError(text, name="torch") from error

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PackedModule"]


class PackedModule(torch.nn.Module):  # type: ignore[misc]
    """Calls one function of a library; part of a model like any other layer.

    Parameters
    ----------
    library : path or Module
        The library, or what `runtime.load` gave of it.
    entry : str, optional
        The function; the library's entry function by default.
    outputs : callable, optional
        ``outputs(*inputs)`` makes the tensor, or the tuple of tensors, that the function writes
        to. They are passed to it behind the inputs, and returned. To be pickled it must be a
        function of some module, not a lambda.

    Attributes
    ----------
    library : Module
        The root of the loaded tree.
    entry : str
        The function's name.

    Raises
    ------
    LibraryLoadError, BlobFormatError, LoaderNotFoundError
        As `runtime.load` does.
    FunctionNotFoundError
        The library has no such function.

    Notes
    -----
    Tensors are passed as they are, without a copy, and so come back those that the function
    returns. It has no parameters, so it adds nothing to a ``state_dict``.

    ``torch.save``, pickle and ``copy.deepcopy`` keep the whole library, not its path.
    ``torch.load`` then takes ``weights_only=False``, because it runs the library's code: use it on
    files from those you trust only.

    Examples
    --------
    >>> scale = PackedModule("model.so", "scale", torch.empty_like)  # doctest: +SKIP
    >>> scale(torch.ones(3))  # doctest: +SKIP
    tensor([2., 2., 2.])
    """

    def __init__(
        self,
        library: str | bytes | os.PathLike[str] | os.PathLike[bytes] | Module,
        entry: str | None = None,
        outputs: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__()
        self.library = library if isinstance(library, Module) else load(library)
        self.entry = entry or self.library.entry_name
        self.outputs = outputs
        self._function = self.library[self.entry]

    def forward(self, *inputs: Any) -> Any:
        """Call the function.

        Parameters
        ----------
        *inputs
            Its arguments; with `outputs`, those before the tensors that it writes to.

        Returns
        -------
        tensor, tuple of tensors, or what the function returns
            The outputs, where they are made here.

        Raises
        ------
        ValueError
            A tensor wants a gradient while gradients are recorded: none can flow through a library.
        """
        arguments = [_without_gradient(value) for value in inputs]
        if self.outputs is None:
            return _as_torch(self._function(*arguments))
        made = self.outputs(*arguments)
        self._function(*arguments, *(made if isinstance(made, tuple | list) else (made,)))
        return made

    def extra_repr(self) -> str:
        """What stands in the brackets when the module is printed."""
        return f"{self.library!r}, entry={self.entry!r}"

    def __getstate__(self) -> dict[str, Any]:
        # As a tensor, torch.save stores the bytes as they are; pickle's protocol 2 would need half
        # as much again.
        data = torch.frombuffer(bytearray(module_to_bytes(self.library)), dtype=torch.uint8)
        return {**self.__dict__, "library": (data, homes_of(self.library)), "_function": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        data, homes = state["library"]
        super().__setstate__(state)
        self.library = rebuild_module(_bytes_of(data), *homes)
        self._function = self.library[self.entry]


def _without_gradient(value: Any) -> Any:
    if not isinstance(value, torch.Tensor) or not value.requires_grad:
        return value
    if torch.is_grad_enabled():
        what = "no gradient flows through a library; call it under torch.no_grad(), or detach()"
        raise ValueError(f"a tensor that requires a gradient: {what} the tensor")
    return value.detach()


def _as_torch(value: Any) -> Any:
    return torch.from_dlpack(value) if isinstance(value, TensorBase) else value


def _bytes_of(data: Any) -> memoryview:
    """View a uint8 tensor; in main memory, wherever map_location may have put it."""
    from ctypes import c_ubyte

    data = data.cpu()
    array = (c_ubyte * data.numel()).from_address(data.data_ptr())
    array.tensor = data  # the view keeps the array, and so the memory
    return memoryview(array)
