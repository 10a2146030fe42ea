"""shared_library: a whole shared library inside a blob (TVM has no such payload).

bytes file    the library's file, verbatim

Its imports are in the file, so the entry has none in the import tree. Parsing a blob does not load
the library; building the tree does, and runs its code. TVM declares a binary form for its loaded
libraries, but fails to write it.
"""

from __future__ import annotations

from _thread import _local

from ..abi import BINARY_SERIALIZABLE
from ..error import BlobFormatError, LibraryLoadError
from ..module import Module, preorder, upper_floors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..serial.stream import Reader, Writer

# A carried library may carry libraries. This bounds the recursion of a load.
MAX_NESTING = 8
_thread = _local()


class CarriedSharedLibraryModule(Module):
    """A shared library that is not loaded: the form of a `LibraryModule` in a blob.

    `data` is its file, which is not copied; `where` is its place, for messages.
    """

    type_key = "shared_library"
    property_mask = BINARY_SERIALIZABLE
    _carries_imports = True

    def __init__(self, data: bytes | memoryview, where: str = "shared_library") -> None:
        self.data = memoryview(data).cast("B").toreadonly()
        self.where = where

    def save_to_binary(self, writer: Writer) -> None:
        """Write the file."""
        writer.write_bytes(self.data)

    def tree_node(self) -> Module:
        """Load the library; its host code with its imports is the node.

        Raises LibraryLoadError, or BlobFormatError if it has no host code or is nested too deep.
        """
        depth = getattr(_thread, "depth", 0)
        if depth == MAX_NESTING:
            raise BlobFormatError(f"{self.where}: libraries nested deeper than {MAX_NESTING}")
        _thread.depth = depth + 1
        try:
            return self._load()
        finally:
            _thread.depth = depth

    def _load(self) -> Module:
        try:
            root: Module = upper_floors["load_from_bytes"](self.data)
        except LibraryLoadError as error:
            text = f"{self.where}: {error.message}"
            raise LibraryLoadError(text, path=error.path, reason=error.reason) from error
        for module in preorder(root):
            if getattr(module, "_library", None) is root._loaded_from:
                return module
        raise BlobFormatError(f"{self.where}: a library without host code, expected some")


def decode(reader: Reader, type_key: str) -> CarriedSharedLibraryModule:
    """Read the payload that `CarriedSharedLibraryModule.save_to_binary` writes."""
    del type_key
    at = reader.offset
    prefix = f"{reader.path}: " if reader.path else ""
    return CarriedSharedLibraryModule(reader.read_bytes(), f"{prefix}{reader.where} at {at:#x}")
