"""From a library to its tree: the core parses the blob, and modules are made when requested."""

from __future__ import annotations

import os
from _thread import RLock

from ._core import Reader, parse_blob
from .abi import BLOB_SYMBOLS, IMPORT_TREE_KEY, LIB_KEY, MANIFEST
from .payloads import Payloads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._core import Library
    from .module import Module

# The lock makes sure that the modules of a tree are made once.
_lock = RLock()


class LazyTree(Payloads):
    """A parsed blob, until its modules are made.

    `parse` makes modules that cannot wait: the root, libraries in the tree, and modules of types
    that were registered in Python, whose loaders know the sizes of their payloads. `link` makes the
    others, when the imports of the root are first requested, so that a process that calls host code
    does not import their types. Nothing refers from here to the root, which refers to this.
    """

    def __init__(self, library: Library, symbol: str, data: memoryview) -> None:
        self._manifest = library.data(MANIFEST)
        reader = Reader(data, path=library.path, where=symbol, dialect=BLOB_SYMBOLS[symbol])
        super().__init__(reader, self._manifest is not None or reader.dialect == "tvm-ffi")
        self._library: Module | None = None  # the node of the host code, unless it is the root
        self._root_place = -1  # among the entries, unless the library is the root

    def parse(self, structure: int | None, node: Module) -> Module:
        """Parse the blob, and return the root; `node` is that of the host code."""
        self._entries, self._row_ptr, self._indices = parse_blob(
            self._reader, self._manifest, structure, self.load, True
        )
        encrypted = tuple(entry[3] for entry in self._entries if entry[0] == "encrypted")
        for i, (key, offset, nbytes, made, is_carried) in enumerate(self._entries):
            if made is not None or key == "shared_library":
                module = self.module(key, offset, nbytes, made, is_carried)
                assert module is not None
                self._entries[i] = key, offset, nbytes, module.tree_node(), is_carried
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
        key, offset, nbytes, made, is_carried = self._entries[place]
        self._entries[place] = key, offset, nbytes, None, is_carried
        return self.module(key, offset, nbytes, made, is_carried)

    def link(self, root: Module) -> None:
        """Make the modules that wait, and give all their imports; once, in any thread."""
        from .blob import Blob, Entry, link_tree

        with _lock:
            if root._lazy_tree is None:
                return
            entries = []
            for place, (key, offset, nbytes, made, is_carried) in enumerate(self._entries):
                known = root if place == self._root_place else made
                module = self.module(key, offset, nbytes, known, is_carried)
                entries.append(Entry(key, module, offset, nbytes))
            blob = Blob(entries, self._row_ptr, self._indices, dialect=self._reader.dialect)
            link_tree(blob, self._library or root)
            root._lazy_tree = None


def _after_fork() -> None:
    """Replace the lock: a thread that held it in the parent does not exist in the child."""
    global _lock
    _lock = RLock()


os.register_at_fork(after_in_child=_after_fork)
