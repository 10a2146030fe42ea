"""Weights: the named tensors of a whole tree."""

from __future__ import annotations

from _collections_abc import Mapping

from ..module import preorder
from .tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..module import Module


class Weights(Mapping[str, Tensor]):
    """A read-only view of the tensors that the modules of a tree carry.

    Parameters
    ----------
    root : Module
        The tree; walked depth first in import order, as functions are looked up: of equal names
        the first is found.

    Notes
    -----
    It keeps the tensors' memory alive, not the modules.
    """

    def __init__(self, root: Module) -> None:
        self._parts = [own for module in preorder(root) if (own := module.own_weights)]

    def __getitem__(self, name: str) -> Tensor:
        for part in self._parts:
            if name in part:
                return part[name]
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return any(name in part for part in self._parts)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for part in self._parts for name in part))

    def __len__(self) -> int:
        return len({name for part in self._parts for name in part})

    def __repr__(self) -> str:
        return f"<Weights of {len(self)} tensors>"
