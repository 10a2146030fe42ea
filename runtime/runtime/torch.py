"""PackedModule: a function of a loaded library as a `torch.nn.Module`. Needs PyTorch.

It is imported by ``import runtime.torch``, or by the first use of ``runtime.torch``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ._core import TensorBase
from .interchange import homes_of, module_to_bytes, rebuild_module
from .load import load
from .module import Module
from .reference.pickled import pickled_reference

try:
    import torch
except ImportError as error:
    text = f"runtime.torch needs PyTorch: pip install torch ({error})"
    raise ImportError(text, name="torch") from error

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PackedModule"]


class PackedModule(torch.nn.Module):  # type: ignore[misc]
    """Calls one function of a library, as a layer of a model.

    Parameters
    ----------
    library : path or Module
        The library, or the result of `runtime.load`.
    entry : str, optional
        The function; the library's entry function by default.
    outputs : callable, optional
        ``outputs(*inputs)`` makes the tensor, or the tuple of tensors, that the function writes
        to. They are passed after the inputs, and returned. It must not be a lambda if the module
        is pickled.

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
    Arguments and results are tensors without a copy. It has no parameters, so it adds nothing to a
    ``state_dict``.

    ``torch.save``, pickle and ``copy.deepcopy`` store the whole library, not its path, unless
    `runtime.by_reference` was called with it.
    ``torch.load`` then needs ``weights_only=False``, because it runs the library's code: use it on
    trusted files only.

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

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Call the function.

        Parameters
        ----------
        *inputs
            Its arguments; with `outputs`, those before the tensors that it writes to.
        **named
            Arguments by name, as of a model's inputs; `outputs` does not get them.

        Returns
        -------
        tensor, tuple of tensors, or what the function returns
            The tensors of `outputs`, if that is given.

        Raises
        ------
        ValueError
            A tensor requires a gradient while gradients are recorded: a library has none.
        """
        arguments = [_without_gradient(value) for value in inputs]
        keywords = {name: _without_gradient(value) for name, value in named.items()}
        if self.outputs is None:
            return _as_torch(self._function(*arguments, **keywords))
        made = self.outputs(*arguments)
        written = made if isinstance(made, tuple | list) else (made,)
        self._function(*arguments, *written, **keywords)
        return made

    def extra_repr(self) -> str:
        """Return the text in brackets of the printed module."""
        return f"{self.library!r}, entry={self.entry!r}"

    def __getstate__(self) -> dict[str, Any]:
        if pickled_reference(self.library) is not None:
            return {**self.__dict__, "_function": None}
        # As a tensor: torch.save stores its bytes unchanged. Pickle's protocol 2, which it uses for
        # other objects, takes 1.5 times the size.
        data = torch.frombuffer(bytearray(module_to_bytes(self.library)), dtype=torch.uint8)
        return {**self.__dict__, "library": (data, homes_of(self.library)), "_function": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not isinstance(self.library, Module):
            data, homes = self.library
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
    if isinstance(value, tuple):
        return tuple(map(_as_torch, value))
    return torch.from_dlpack(value) if isinstance(value, TensorBase) else value


def _bytes_of(data: Any) -> memoryview:
    """View a uint8 tensor in main memory; map_location may have put it on a device."""
    from ctypes import c_ubyte

    data = data.cpu()
    array = (c_ubyte * data.numel()).from_address(data.data_ptr())
    array.tensor = data  # the view keeps the array, and so the memory
    return memoryview(array)
