"""open_data(path): the tree of a library whose code stays unloaded."""

from __future__ import annotations

import os

from .._core import ElfFile
from ..abi import (
    ANY_MACHINE,
    BLOB_SYMBOLS,
    CHECKSUMS,
    FACT_PREFIX,
    FUNCTION_PREFIX,
    LIBRARY_METADATA,
    MANIFEST,
)
from ..device.standalone_files import LOADERS, load_file
from ..lazy_tree import find_blob
from ..module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..blob import Blob
    from ..trust.encryption.keys import KeySource


def open_data(
    path: str | bytes | os.PathLike[str] | os.PathLike[bytes], *, key: KeySource | None = None
) -> Module:
    """Open the modules of a library, and run none of its code.

    Parameters
    ----------
    path : path
        A shared library of any machine, or a standalone file as `load` takes it.
    key : path, str, bytes or callable, optional
        The key of its encrypted modules, as `load` takes it. Without it these stay as they are:
        type key ``"encrypted"``, no functions and no weights.

    Returns
    -------
    Module
        The root of its tree: weights, programs, device code and metadata as `load` gives them. The
        node of the host code is an `UnloadedLibraryModule`, which names its functions and has none.
        Functions that need no host code can be called, such as a relax program of built-in
        functions. A library inside the library stays as bytes.

    Raises
    ------
    LibraryLoadError
        The file is not a shared library, or is damaged: the check is that of `load`.
    BlobFormatError, LoaderNotFoundError
        As `load` does.
    EncryptionError
        `key` is given, and cannot decrypt them.

    Notes
    -----
    The file is mapped, not copied, and stays mapped until all modules and views of it are freed.
    Never overwrite it in place meanwhile. Loaders that the program itself registered for types of
    modules do run.

    Examples
    --------
    >>> runtime.open_data("model.so").weights["conv1.weight"].shape  # doctest: +SKIP
    (64, 3, 7, 7)
    """
    name = os.fspath(path)
    text = os.fsdecode(name)
    if os.path.splitext(text)[1][1:] in LOADERS:
        return load_file(text)
    file = DataFile(name)
    return _tree_of(file, UnloadedLibraryModule(file), key)


class DataFile:
    """A checked library that is not loaded, with the data that a `Library` gives."""

    def __init__(self, path: str | bytes) -> None:
        self._file = ElfFile(path, ANY_MACHINE)
        self.path = self._file.path
        self.structure = self._file.checksums(CHECKSUMS)

    def data(self, symbol: str) -> memoryview | None:
        """Return the bytes of a data symbol, or None; raises LibraryLoadError if it has none."""
        return self._file.view(symbol)

    def symbols(self, prefix: str) -> list[str]:
        """Return the names of symbols with a prefix."""
        return self._file.symbols(prefix)


class UnloadedLibraryModule(Module):
    """The host code of a library that `open_data` did not load.

    Attributes
    ----------
    path : str
        The file.
    """

    type_key = "library"
    _carries_imports = True

    def __init__(self, file: DataFile) -> None:
        self._file = file
        self.path = file.path
        self._described_by = file

    def function_names(self) -> list[str]:
        """The names of the functions that the file exports or declares."""
        names = {
            symbol.removeprefix(prefix)
            for prefix in (FUNCTION_PREFIX, FACT_PREFIX)
            for symbol in self._file.symbols(prefix)
        }
        return sorted(name for name in names if not name.startswith("_"))

    def how_to_declare(self, name: str) -> str:
        """Say that the function is there, and how to load it."""
        if name not in self.function_names():
            return ""
        return f"; its code is not loaded: runtime.load({self.path!r}) loads it"

    def __repr__(self) -> str:
        return f"<UnloadedLibraryModule {self.path!r}>"


def _tree_of(file: DataFile, node: Module, key: KeySource | None) -> Module:
    from ..blob import link_tree, parse_symbol

    found = find_blob(file)
    if found is None:
        return node
    symbol, data = found
    blob = parse_symbol(
        data,
        BLOB_SYMBOLS[symbol],
        path=file.path,
        where=symbol,
        manifest_text=file.data(MANIFEST),
        structure=file.structure,
    )
    if key is not None:
        _decrypt(blob, key)
    root = link_tree(blob, node)
    if file.data(LIBRARY_METADATA) is not None:
        root._described_by = file
    return root


def _decrypt(blob: Blob, key: KeySource) -> None:
    from ..trust.encryption.use import Use

    with Use(key):
        for entry in blob.entries:
            if entry.key == "encrypted" and entry.module is not None:
                entry.module = entry.module.tree_node()
