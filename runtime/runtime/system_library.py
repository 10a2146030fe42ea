"""system_lib(prefix): the module trees of models that are linked into this process."""

from __future__ import annotations

from _thread import RLock

from ._core import SystemLibrary
from .abi import RUNNABLE
from .error import FunctionNotFoundError
from .lazy_tree import tree_of
from .library import LibraryModule, why_left_out, with_key
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .trust.encryption.keys import KeySource

# Statically linked code is never unloaded, and its context symbols point to these modules.
_roots: dict[str, Module] = {}
_lock = RLock()


class SystemLibraryModule(LibraryModule):
    """The host code that statically linked models registered under one prefix.

    `path` is its name in messages; there is no file.
    """

    # SystemLibrary has the methods of Library that this class uses.
    _library: SystemLibrary  # type: ignore[assignment]
    property_mask = RUNNABLE
    _carries_imports = False

    def how_to_declare(self, name: str) -> str:
        """Say why an export left a function out: the others are registered with their types."""
        return why_left_out(self._library, name)

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


def system_lib(symbol_prefix: str = "", *, key: KeySource | None = None) -> Module:
    """Return the tree of the models that registered symbols with a prefix in this process.

    A model registers its symbols when the program starts, or when the library that contains it is
    loaded (`packer export --system-lib --c-symbol-prefix`).

    Parameters
    ----------
    symbol_prefix : str
        The prefix of every name. A function that is not registered with it is looked up without.
    key : path, str, bytes or callable, optional
        The key of encrypted modules, as `runtime.load` takes it.

    Returns
    -------
    Module
        The root of the tree; always the same for a prefix with registered symbols.

    Raises
    ------
    BlobFormatError, LoaderNotFoundError
        The registered blob is malformed, or contains a type without a loader.
    EncryptionError
        Encrypted modules need a key, or another one, or they were changed.

    Notes
    -----
    Registered code stays in memory until the process ends. Link a program that embeds Python with
    ``-rdynamic``, so that its own symbols are found.

    Examples
    --------
    >>> runtime.load("both.so")  # doctest: +SKIP
    >>> runtime.system_lib("net1_")["add"](40, 2)  # doctest: +SKIP
    42
    """
    if key is not None:
        from .trust.encryption.use import Use

        with Use(key):
            return system_lib(symbol_prefix)
    with _lock:
        known = with_key(_roots.get(symbol_prefix))
        return known or _build(SystemLibrary(symbol_prefix), symbol_prefix)


def _build(library: SystemLibrary, prefix: str) -> Module:
    root = tree_of(library, SystemLibraryModule(library))  # type: ignore[arg-type]
    if library.symbols(""):
        _roots[prefix] = root
    return root
