"""LibraryModule: the functions of one loaded file."""

from __future__ import annotations

from .abi import FUNCTION_PREFIX, MAIN_NAME, RUNNABLE
from .error import LibraryLoadError
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._core import Function, Library


class LibraryModule(Module):
    """The host code of a loaded library.

    Attributes
    ----------
    path : str
        The file.

    Notes
    -----
    The file is closed when the module, its functions and all views of it are gone.
    """

    type_key = "library"
    property_mask = RUNNABLE

    def __init__(self, library: Library) -> None:
        self._library = library
        self.path = library.path

    def find_function(self, name: str) -> Function | None:
        """Find an exported function: the symbol ``__tvm_ffi_<name>`` of this very file."""
        if name.isascii() and name.isprintable():
            return self._library.function(name, self)
        return None

    def function_names(self) -> list[str]:
        """The names of all functions that the file exports."""
        start = len(FUNCTION_PREFIX)
        names = (symbol[start:] for symbol in self._library.symbols(FUNCTION_PREFIX))
        return sorted(name for name in names if not name.startswith("_"))

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
