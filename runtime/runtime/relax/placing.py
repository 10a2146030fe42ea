"""Arguments on the device of a machine."""

from __future__ import annotations

from .._core import TensorBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._core import Device, Function


class PlacedFunction:
    """A function of a machine whose first device is not the CPU: it puts arrays there.

    A Tensor of this package has a device, which is kept; NumPy's arrays have none.
    """

    def __init__(self, function: Function, device: Device) -> None:
        self._function, self._device = function, device

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made: dict[int, Any] = {}
        positional = [_placed_if_free(value, self._device, made) for value in args]
        named = {name: _placed_if_free(value, self._device, made) for name, value in kwargs.items()}
        return self._function(*positional, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __repr__(self) -> str:
        return repr(self._function)


def _placed_if_free(value: Any, device: Device, made: dict[int, Any]) -> Any:
    return value if isinstance(value, TensorBase) else placed(value, device, made)


def placed(value: Any, device: Device, made: dict[int, Any] | None = None) -> Any:
    """Put the arrays of an argument on a device; an object that occurs twice is put there once."""
    made = {} if made is None else made
    if id(value) not in made:
        made[id(value)] = _place(value, device, made)
    return made[id(value)]


def _place(value: Any, device: Device, made: dict[int, Any]) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(placed(item, device, made) for item in value)
    if device.kind == "cpu" or not hasattr(value, "__dlpack__"):
        return value
    from ..tensors.tensor import tensor

    return tensor(value, device)
