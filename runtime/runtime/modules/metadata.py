"""metadata_module: an empty payload; the module only groups its imports."""

from __future__ import annotations

from ..abi import BINARY_SERIALIZABLE
from ..module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..serial.stream import Reader, Writer


class MetadataModule(Module):
    """A node without a payload."""

    type_key = "metadata_module"
    property_mask = BINARY_SERIALIZABLE

    def save_to_binary(self, writer: Writer) -> None:
        """Write nothing."""


def decode(reader: Reader, type_key: str) -> MetadataModule:
    """Read nothing."""
    del reader, type_key
    return MetadataModule()
