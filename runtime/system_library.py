"""system_lib(prefix): the models that are linked into this process, as module trees."""

from __future__ import annotations

from _thread import RLock

from ._core import SystemLibrary
from .abi import RUNNABLE
from .error import FunctionNotFoundError
from .library import LibraryModule, tree_of
from .module import Module

# Statically linked code stays, and with it whom its context symbols lead to.
_roots: dict[str, Module] = {}
_lock = RLock()


class SystemLibraryModule(LibraryModule):
    """The host code that statically linked models registered under one prefix.

    Attributes
    ----------
    path : str
        What messages call it; there is no file.
    """

    # A SystemLibrary has what is used here of a Library.
    _library: SystemLibrary  # type: ignore[assignment]
    property_mask = RUNNABLE
    _carries_imports = False

    def how_to_declare(self, name: str) -> str:
        """Nothing: the models registered what can be called."""
        del name
        return ""

    def _not_found(self, name: str, query_imports: bool) -> FunctionNotFoundError:
        if self._library.symbols(""):
            return super()._not_found(name, query_imports)
        text = (
            f"{self.path}: no function {name!r}: nothing is registered under this prefix; link or "
            f"load what `packer export --system-lib` made with it"
        )
        return FunctionNotFoundError(text, name=name, module=self.type_key)

    def __repr__(self) -> str:
        return f"<SystemLibraryModule {self.path.removeprefix('system library ')}>"


def system_lib(symbol_prefix: str = "") -> Module:
    """Return the tree of the models that registered symbols with a prefix in this process.

    They did so when the program started, or when a library was loaded that they are linked into
    (`packer export --system-lib --c-symbol-prefix`).

    Parameters
    ----------
    symbol_prefix : str
        Stands before every name; of a function that is not there with it, the name alone is
        tried.

    Returns
    -------
    Module
        The root of the tree; the same for a prefix, once something is registered with it.

    Raises
    ------
    BlobFormatError, LoaderNotFoundError
        The registered blob is malformed, or holds a type without a loader.

    Notes
    -----
    Code that registered stays in memory for as long as the process. A program that embeds Python
    shows its own symbols if it is linked with ``-rdynamic``.

    Examples
    --------
    >>> runtime.load("both.so")  # doctest: +SKIP
    >>> runtime.system_lib("net1_")["add"](40, 2)  # doctest: +SKIP
    42
    """
    with _lock:
        return _roots.get(symbol_prefix) or _build(SystemLibrary(symbol_prefix), symbol_prefix)


def _build(library: SystemLibrary, prefix: str) -> Module:
    root = tree_of(library, SystemLibraryModule(library))  # type: ignore[arg-type]
    if library.symbols(""):
        _roots[prefix] = root
    return root
