"""From a library to its tree: the core parses the blob, and modules are made when requested."""

from __future__ import annotations

import os
from _thread import RLock

from ._core import Reader, parse_blob
from .abi import BLOB_SYMBOLS, IMPORT_TREE_KEY, LIB_KEY, LIBRARY_METADATA, MANIFEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._core import Library
    from .module import Module
    from .serial.data_file import DataFile

# The lock makes sure that the modules of a tree are made once.
_lock = RLock()


class LazyTree:
    """A parsed blob, until its modules are made.

    `make_root` makes modules that cannot wait: the root, libraries in the tree, and modules of
    types that were registered in Python, whose loaders know the sizes of their payloads. `link`
    makes the others, when the imports of the root are first requested, so that a process that calls
    host code does not import their types. Nothing refers from here to the root, which refers to
    this.
    """

    def __init__(
        self, library: Library, symbol: str, data: memoryview, structure: int | None
    ) -> None:
        self._blob = Reader(data, path=library.path, where=symbol, dialect=BLOB_SYMBOLS[symbol])
        self._entries, self._row_ptr, self._indices = parse_blob(
            self._blob, library.data(MANIFEST), structure, True
        )
        self._library: Module | None = None  # the node of the host code, unless it is the root
        self._root_place = -1  # among the entries, unless the library is the root

    def make_root(self, node: Module) -> Module:
        """Return the root; `node` is the node of the host code."""
        encrypted = tuple(entry[3] for entry in self._entries if entry[0] == "encrypted")
        for i, entry in enumerate(self._entries):
            if entry[3] is not None or entry[0] == "shared_library":
                module = self._module(*entry)
                assert module is not None
                self._entries[i] = *entry[:3], module.tree_node(), entry[4]
        root = self._take_root()
        if root is None:  # the library itself
            root = node
        else:
            self._library = node
        if root is node or not root._carries_imports:
            root._lazy_tree = self
        root._encrypted = encrypted
        return root

    def _take_root(self) -> Module | None:
        """Return the root; None if that is the library."""
        places = (i for i, entry in enumerate(self._entries) if entry[0] != IMPORT_TREE_KEY)
        place = next(places, None) if self._row_ptr is not None else None
        if place is None or self._entries[place][0] == LIB_KEY:
            return None
        self._root_place = place
        entry = self._entries[place]
        self._entries[place] = *entry[:3], None, entry[4]
        return self._module(*entry)

    def _module(self, *entry: Any) -> Module | None:
        from .payloads import module_of  # a load of host code with its imports needs no module

        return module_of(self._blob, *entry)

    def link(self, root: Module) -> None:
        """Make the modules that wait, and give all their imports; once, in any thread."""
        from .blob import blob_of, link_tree

        with _lock:
            if root._lazy_tree is None:
                return
            entries = list(self._entries)
            if self._root_place >= 0:
                entries[self._root_place] = *entries[self._root_place][:3], root, False
            blob = blob_of(self._blob, entries, self._row_ptr, self._indices)
            link_tree(blob, self._library or root)
            root._lazy_tree = None


def tree_of(library: Library, node: Module) -> Module:
    """Return the root of a library's tree, with `node` as the node of its host code.

    Raises LibraryLoadError if it has blobs of both dialects, or if a system library lacks symbols
    that a model lists. Raises as `blob.parse` does, and BlobFormatError if the structure of the
    blob was changed after the export.
    """
    structure = library.structure
    found = find_blob(library)
    if found is None:
        return node
    root = LazyTree(library, *found, structure).make_root(node)
    if library.data(LIBRARY_METADATA) is not None:
        root._described_by = library
    return root


def find_blob(library: Library | DataFile) -> tuple[str, memoryview] | None:
    """Return the symbol of a library's blob and its bytes; None if it has no blob.

    Raises LibraryLoadError if it has blobs of both dialects.
    """
    blobs = [(name, data) for name in BLOB_SYMBOLS if (data := library.data(name)) is not None]
    if len(blobs) > 1:
        from .error import LibraryLoadError

        what = f"both {' and '.join(BLOB_SYMBOLS)}, expected one of them"
        raise LibraryLoadError(f"{library.path}: {what}", path=library.path, reason="blob")
    return blobs[0] if blobs else None


def _after_fork() -> None:
    """Replace the lock: a thread that held it in the parent does not exist in the child."""
    global _lock
    _lock = RLock()


os.register_at_fork(after_in_child=_after_fork)
