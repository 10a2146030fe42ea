"""Weights: the named tensors of a whole tree."""

from __future__ import annotations

from _collections_abc import Mapping

from .tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Weights(Mapping[str, Tensor]):
    """A read-only view of the tensors that the modules of a tree carry.

    `parts` are the tensors of each module; of equal names the first is found. It keeps the memory
    of the tensors alive, but not the modules.
    """

    def __init__(self, parts: list[Mapping[str, Tensor]]) -> None:
        self._parts = parts

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
