"""JSON runtimes (``dnnl_json``, ``tensorrt_json``, ...): a subgraph for an external library.

string symbol, string graph_json, vector<string> const_names
"""

from __future__ import annotations

from ..abi import BINARY_SERIALIZABLE
from ..module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..serial.stream import Reader, Writer


class JSONRuntimeModule(Module):
    """A subgraph that is carried for the library that runs it.

    Parameters
    ----------
    type_key : str
        Ends in ``_json``.
    symbol : str
        The function that it implements.
    graph_json : str
        The subgraph.
    const_names : iterable of str
        The constants it takes.
    """

    property_mask = BINARY_SERIALIZABLE

    def __init__(
        self, type_key: str, symbol: str, graph_json: str, const_names: Iterable[str] = ()
    ) -> None:
        if not type_key.endswith("_json"):
            raise ValueError(f"type key {type_key!r} of a JSON runtime must end in '_json'")
        self.type_key = type_key
        self.symbol = symbol
        self.graph_json = graph_json
        self.const_names = tuple(const_names)

    def function_names(self) -> list[str]:
        """The function that it implements."""
        return [self.symbol]

    def get_source(self, fmt: str = "") -> str:
        """Return the subgraph."""
        return self.graph_json if fmt in ("", "json") else super().get_source(fmt)

    def save_to_binary(self, writer: Writer) -> None:
        """Write symbol, graph_json, const_names."""
        writer.write_string(self.symbol)
        writer.write_string(self.graph_json)
        writer.write_vector(self.const_names, writer.write_string)


def decode(reader: Reader, type_key: str) -> JSONRuntimeModule:
    """Read the payload of a ``*_json`` type key."""
    texts = reader.read_name(), reader.read_name(), reader.read_vector(reader.read_name)
    return JSONRuntimeModule(type_key, *texts)
