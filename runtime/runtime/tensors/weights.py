"""Weights: the named tensors of a whole tree."""

from __future__ import annotations

from _collections_abc import Mapping

from ..abi import MODEL_RECORD
from ..error import BlobFormatError, WeightNotFoundError, near_names
from .tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..graph.model_record import ModelRecord


class Weights(Mapping[str, Tensor]):
    """A read-only view of the tensors that the modules of a tree carry.

    `parts` are the tensors of each module; of equal names the first is found. It keeps the memory
    of the tensors alive, but not the modules. `why_fewer` ends the message about a missing one.

    A weight of a model that is stored as an operator reads it is unpacked at each access: that
    needs NumPy, and the result is a copy. All others are views.

    Attributes
    ----------
    folded : dict of str to str
        The weights of a model that are not stored, since they are a part of another one, and those
        with other values, since another one is a part of them; each with the reason.
    """

    def __init__(self, parts: list[Mapping[str, Tensor]], why_fewer: str = "") -> None:
        self._parts = parts
        self._why_fewer = why_fewer

    @property
    def folded(self) -> dict[str, str]:
        """The weights that are not stored, or with other values, each with the reason."""
        found: dict[str, str] = {}
        for part in self._parts:
            if isinstance(part, ModelWeights):
                found = {**part.folded, **found}
        return found

    def __getitem__(self, name: str) -> Tensor:
        for part in self._parts:
            if name in part:
                found = part[name]
                if isinstance(found, Tensor):  # custom modules may have arrays
                    found._prove()
                return found
        folded = self.folded
        if name in folded:
            text = f"weight {name!r} is not stored: {folded[name]}"
        else:
            near = near_names(str(name), list(self))
            text = f"no weight {name!r} in the tree{near}{self._why_fewer}"
        raise WeightNotFoundError(text, name=name)

    def __contains__(self, name: object) -> bool:
        return any(name in part for part in self._parts)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for part in self._parts for name in part))

    def __len__(self) -> int:
        return len({name for part in self._parts for name in part})

    def __repr__(self) -> str:
        folded = f", {len(self.folded)} folded" if self.folded else ""
        return f"<Weights of {len(self)} tensors{folded}>"


def model_weights(stored: Mapping[str, Tensor], record: ModelRecord | None) -> Mapping[str, Tensor]:
    """Return the tensors of a module as a model has them, if it has a record."""
    return stored if record is None else ModelWeights(stored, record)


def described_weights(
    stored: Mapping[str, Tensor], record: ModelRecord | None
) -> Iterator[tuple[str, tuple[str, tuple[int, ...]]]]:
    """Return the names of `model_weights` with data types and shapes; nothing is unpacked."""
    if record is None:
        yield from ((name, (tensor.dtype, tensor.shape)) for name, tensor in stored.items())
        return
    weights = ModelWeights(stored, record)
    yield from ((name, weights.describe(name)) for name in weights)


class ModelWeights(Mapping[str, Tensor]):
    """The weights of a model under its names, with its shapes: `stored` as the record describes."""

    def __init__(self, stored: Mapping[str, Tensor], record: ModelRecord) -> None:
        self._stored = stored
        self._record = record
        self.folded = record.folded
        forms = record.weights
        hidden = {name for name, form in forms.items() if "of" in form}
        equal = [name for name in forms if name not in stored and self._equal(name) in stored]
        self._names = dict.fromkeys([*(name for name in stored if name not in hidden), *equal])

    def _equal(self, name: str) -> str | None:
        """Return the stored name of a weight that another one equals."""
        form = self._record.weights[name]
        other = form.get("name") if form.get("form") == "equal" else None
        return other if isinstance(other, str) else None

    def describe(self, name: str) -> tuple[str, tuple[int, ...]]:
        """Return the data type and the shape of a weight, without unpacking it."""
        home = self._home(name)
        packing = self._packing(home)
        if packing is not None:
            return str(packing.get("dtype", "float32")), tuple(packing.get("shape", ()))
        dtype, shape = self._type(home)
        return dtype, shape

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._names:
            raise KeyError(name)
        home = self._home(name)
        try:
            return self._shown(home)
        except ImportError as error:
            text = f"weight {name!r} is stored as its operator reads it, and unpacking it"
            raise ImportError(f"{text} needs NumPy: pip install numpy") from error
        except ValueError as error:
            text = f"safetensors: {MODEL_RECORD}: weight {name!r}: {error}; export the model again"
            raise BlobFormatError(text) from error

    def _shown(self, home: str) -> Tensor:
        stored, packing = self._stored[home], self._packing(home)
        if packing is not None:
            from .unpack import unpack

            return unpack(stored, packing)
        dtype, shape = self._type(home)
        return stored if dtype == stored.dtype else Tensor(stored.raw, shape, dtype)

    def _home(self, name: str) -> str:
        """Return the name under which the values of a weight are stored."""
        return name if name in self._stored else str(self._equal(name))

    def _packing(self, home: str) -> dict[str, Any] | None:
        form = self._record.weights.get(home, {})
        return form if form.get("form") == "packed" else None

    def _type(self, home: str) -> tuple[str, tuple[int, ...]]:
        """Return the record's type of a weight whose bytes are stored, else the stored one."""
        stored, info = self._stored[home], self._record.values.get(home)
        if info is not None and info.dtype != stored.dtype and stored.dtype == "uint8":
            extents = [extent for extent in info.shape if isinstance(extent, int)]
            if len(extents) == len(info.shape):
                return info.dtype, tuple(extents)
        return stored.dtype, stored.shape

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
