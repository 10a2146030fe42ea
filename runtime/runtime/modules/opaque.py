"""A module whose type key has no loader: its payload is carried unchanged."""

from __future__ import annotations

from ..abi import BINARY_SERIALIZABLE
from ..error import LoaderNotFoundError
from ..module import Module
from ..registry import known_type_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from ..serial.stream import Writer


class OpaqueModule(Module):
    """Carries the payload of an unknown type, uncopied; can be written again, not used."""

    property_mask = BINARY_SERIALIZABLE

    def __init__(self, type_key: str, payload: memoryview) -> None:
        self.type_key = type_key
        self.payload = payload

    def save_to_binary(self, writer: Writer) -> None:
        """Write the payload unchanged."""
        writer.write_raw(self.payload)

    def get_function(self, name: str, query_imports: bool = False) -> Callable[..., Any]:
        """Look up `name` in the imports if `query_imports`; LoaderNotFoundError if none has it."""
        function = self._find(name) if query_imports else None
        if function is None:
            self._explain(name)
        return function

    def _explain(self, name: str) -> NoReturn:
        known = known_type_keys()
        raise LoaderNotFoundError(
            f"function {name!r}: module type {self.type_key!r} has no loader here, so its "
            f"{len(self.payload)} bytes are only carried; known: {', '.join(known)}. Install the "
            f"package that provides it, or register one and load again",
            type_key=self.type_key,
            known=known,
        )
