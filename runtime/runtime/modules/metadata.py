"""metadata_module: an empty payload; the module only groups its imports."""

from __future__ import annotations

from ..abi import BINARY_SERIALIZABLE
from ..module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..serial.stream import Reader, Writer


class MetadataModule(Module):
    """A node without a payload."""

    type_key = "metadata_module"
    property_mask = BINARY_SERIALIZABLE

    def save_to_binary(self, writer: Writer) -> None:
        """Write nothing."""


def loader(type_key: str) -> Callable[[Reader], MetadataModule]:
    """Make the loader of ``metadata_module``."""
    return lambda reader: MetadataModule()
