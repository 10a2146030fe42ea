"""LibraryModule: the functions of one loaded file."""

from __future__ import annotations

from .abi import (
    BINARY_SERIALIZABLE,
    BLOB_SYMBOLS,
    FACT_PREFIX,
    FUNCTION_PREFIX,
    MAIN_NAME,
    MANIFEST,
    RUNNABLE,
)
from .error import FunctionNotFoundError, LibraryLoadError, near_names
from .module import Module, preorder
from .registry import find_global_func, list_global_func_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._core import Function, Library
    from .stream import Writer


class LibraryModule(Module):
    """The host code of a loaded library.

    Attributes
    ----------
    path : str
        The file; ``<n bytes>`` for one that was loaded from bytes.

    Notes
    -----
    The file is closed when the module, its functions and all views of it are gone.

    Its binary form is the whole file, so its imports travel in it: a library whose imports were
    changed after the load cannot be serialised.
    """

    type_key = "library"
    property_mask = RUNNABLE | BINARY_SERIALIZABLE
    _carries_imports = True

    def __init__(self, library: Library) -> None:
        self._library = library
        self.path = library.path
        library.bind(self)

    def find_function(self, name: str) -> Function | None:
        """Find a function of this very file.

        That is the symbol ``__tvm_ffi_<name>``; else ``<name>``, a packed C function, if it was
        declared as one, or packer did not make the file.
        """
        if name.isascii() and name.isprintable():
            return self._library.function(name, self)
        return None

    def function_names(self) -> list[str]:
        """The names of all functions that the file exports or declares."""
        names = {
            symbol.removeprefix(prefix)
            for prefix in (FUNCTION_PREFIX, FACT_PREFIX)
            for symbol in self._library.symbols(prefix)
        }
        return sorted(name for name in names if not name.startswith("_"))

    def blob_entry(self) -> Module:
        """View the file as what a blob carries.

        Raises
        ------
        ExportError
            The file is not there any more, or is not the one that was loaded.
        """
        from .library_file import file_bytes
        from .modules.shared_library import CarriedSharedLibraryModule

        return CarriedSharedLibraryModule(file_bytes(self._library))

    def save_to_binary(self, writer: Writer) -> None:
        """Write the bytes of the file; raises as `blob_entry` does."""
        self.blob_entry().save_to_binary(writer)

    @property
    def own_entry_name(self) -> str | None:
        """The name that the symbol ``__tvm_main__`` holds."""
        data = self._library.data(MAIN_NAME)
        if data is None:
            return None
        try:
            return str(data, "ascii").rstrip("\0")
        except UnicodeDecodeError:
            text = (
                f"{self.path}: {MAIN_NAME} holds {bytes(data[:40])!r}, expected a function's name"
            )
            raise LibraryLoadError(text, path=self.path, reason="malformed") from None

    def __repr__(self) -> str:
        return f"<LibraryModule {self.path!r}>"


def tree_of(library: Library, module: Module) -> Module:
    """Build the tree of a library, of either dialect.

    Parameters
    ----------
    library : Library
        Has the symbols.
    module : Module
        Stands for its own code.

    Returns
    -------
    Module
        The root; `module` where the library has no blob.

    Raises
    ------
    LibraryLoadError
        It has blobs of both dialects.
    BlobFormatError, LoaderNotFoundError
        As `blob.parse` does.
    """
    blobs = {name: data for name in BLOB_SYMBOLS if (data := library.data(name)) is not None}
    if not blobs:
        return module
    if len(blobs) > 1:
        what = f"both {' and '.join(blobs)}, expected one of them"
        raise LibraryLoadError(f"{library.path}: {what}", path=library.path, reason="blob")
    from .blob import process_module_blob

    ((symbol, data),) = blobs.items()
    text = library.data(MANIFEST)
    return process_module_blob(data, module, path=library.path, where=symbol, manifest_text=text)


def find_import(modules: list[Module], name: str) -> tuple[object, Callable[..., Any]]:
    """Find what host code of a library calls by name; the native core asks, and remembers it.

    Parameters
    ----------
    modules : list of Module
        Those of the library that are alive: mostly one. Their imports are asked, depth first in
        import order, never they themselves.
    name : str
        The function's name.

    Returns
    -------
    provider, function
        The module that has it, or the global function twice.

    Raises
    ------
    FunctionNotFoundError
        Neither an import nor the global functions have it.
    """
    imports = [imported for module in modules for imported in list(preorder(module))[1:]]
    for imported in imports:
        if (function := imported.find_function(name)) is not None:
            return imported, function
    if (function := find_global_func(name)) is not None:
        return function, function
    who = repr(modules[0]) if modules else "a library without a module"
    known = [n for imported in imports for n in imported.function_names()]
    text = (
        f"{who}: its host code calls {name!r}, which is no function of its imports and no global "
        f"one" + near_names(name, known + list_global_func_names())
    )
    raise FunctionNotFoundError(text, name=name, module="library")
