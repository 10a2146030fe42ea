"""LibraryModule: the functions of one loaded file."""

from __future__ import annotations

from ._core import left_out_hint
from .abi import (
    BINARY_SERIALIZABLE,
    CONSTANTS,
    FACT_PREFIX,
    FUNCTION_PREFIX,
    LEFT_OUT,
    MAIN_NAME,
    RUNNABLE,
)
from .module import Module, _tree_changed, upper_floors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ._core import Library, SystemLibrary
    from .constants import ConstantsRecord
    from .error import FunctionNotFoundError
    from .serial.stream import Writer
    from .tensors.tensor import Tensor


class LibraryModule(Module):
    """The host code of a loaded library.

    Attributes
    ----------
    path : str
        The file; ``<n bytes>`` for one that was loaded from bytes.

    Notes
    -----
    The file is closed when the module, its functions and all views of it are freed.

    Its binary form is the whole file, which contains its imports. A library whose imports were
    changed after the load cannot be serialised.
    """

    type_key = "library"
    property_mask = RUNNABLE | BINARY_SERIALIZABLE
    _carries_imports = True
    # True for one that calls another library by addresses of this process.
    _is_wrapper = False
    # Made at the first access, so that an enum has one class.
    _constants: Mapping[str, Any] | None = None
    _record: ConstantsRecord | None = None

    def __init__(self, library: Library) -> None:
        self._library = library
        self._declared: set[str] = set()
        self._wrapped: dict[str, tuple[Any, Module]] = {}
        self._lent: dict[tuple[Module, str], Tensor] = {}  # host code may use them
        self.path = library.path
        self._described_by = library
        library.bind(self)

    def find_function(self, name: str) -> Callable[..., Any] | None:
        """Find a function of this file.

        It is the symbol ``__tvm_ffi_<name>``; else ``<name>``, if `load` declared it, or TVM made
        the file.
        """
        if name in self._wrapped:
            return self._wrapped[name][1].find_function(name)
        if name.isascii() and name.isprintable():
            return self._library.function(name, self)
        return None

    def function_names(self) -> list[str]:
        """The names of all functions that the file exports or declares, or `load` declared."""
        names = self._declared | {
            symbol.removeprefix(prefix)
            for prefix in (FUNCTION_PREFIX, FACT_PREFIX)
            for symbol in self._library.symbols(prefix)
        }
        return sorted(name for name in names if not name.startswith("_"))

    def declare_packed(self, names: list[str]) -> None:
        """Declare C functions as packed, except functions that the file declares.

        Raises FunctionNotFoundError if the file lacks one; then none is declared.
        """
        unknown = [name for name in names if self.find_function(name) is None]
        for name in unknown:
            if not self._library.has_code(name) or not (name.isascii() and name.isprintable()):
                raise self._no_function(name)
        for name in unknown:
            self._library.declare_packed(name)
        self._declared.update(names)
        _tree_changed()

    def declare(self, functions: Mapping[str, Any]) -> None:
        """Declare C functions by their types, except functions that the file declares.

        They are called through a small library that packer compiles. Raises FunctionNotFoundError
        if the file lacks one; then none is declared.
        """
        new = {
            name: given
            for name, given in functions.items()
            if not self._library.has_code(f"{FUNCTION_PREFIX}{name}")
            and (name not in self._wrapped or self._wrapped[name][0] != given)
        }
        if new:
            wrapper = upper_floors["wrap_functions"](new, self._address_of, self.path)
            wrapper._library.call_for(self._library)
            wrapper._is_wrapper = True
            self._wrapped.update({name: (given, wrapper) for name, given in new.items()})
            self._declared.update(new)
            _tree_changed()

    def _address_of(self, name: str) -> int:
        """Return the address of a C function; raises FunctionNotFoundError if there is none."""
        if (address := self._library.address(name)) is None:
            raise self._no_function(name)
        return address

    def _no_function(self, name: str) -> FunctionNotFoundError:
        from .error import FunctionNotFoundError, near_names

        text = f"{self.path}: functions: expected a function of the file, found {name!r}"
        text += near_names(name, self.function_names() + self._library.symbols(""))
        return FunctionNotFoundError(text, name=name, module=self.type_key)

    def how_to_declare(self, name: str) -> str:
        """Say why the export left a function out, or how to declare one whose type is unknown."""
        if why := why_left_out(self._library, name):
            return why
        if not (name.isascii() and name.isprintable() and self._library.address(name)):
            return ""
        load = f"runtime.load({self.path!r}, functions={{{name!r}: "
        if self._library.symbols("__packer_"):
            return (
                f"; {self.path} has a C function {name!r} without a declaration: export it with "
                f"--function '{name}=<its C type>', or load it with {load}'<its C type>'}}); an "
                f"export prints why it leaves a function out, with a declaration that works; if it "
                f"is a packed C function, use {load}'packed'}})"
            )
        return (
            f"; {self.path} has a C function {name!r} without a declaration: export it with "
            f"--function '{name}=int(int)', or load it with {load}'int(int)'}}), if it is int "
            f"{name}(int), and else with its own type; if it is a packed C function, use "
            f"{load}'packed'}})"
        )

    def blob_entry(self) -> Module:
        """View the file as a module that a blob carries.

        Raises ExportError if the file was removed or replaced.
        """
        from .modules.shared_library import CarriedSharedLibraryModule
        from .serial.library_file import file_bytes

        return CarriedSharedLibraryModule(file_bytes(self._library))

    def save_to_binary(self, writer: Writer) -> None:
        """Write the bytes of the file; raises as `blob_entry` does."""
        self.blob_entry().save_to_binary(writer)

    @property
    def own_entry_name(self) -> str | None:
        """The name that is stored at ``__tvm_main__``."""
        data = self._library.data(MAIN_NAME)
        if data is None:
            return None
        try:
            return str(data, "ascii").rstrip("\0")
        except UnicodeDecodeError:
            from .error import LibraryLoadError

            text = (
                f"{self.path}: {MAIN_NAME} holds {bytes(data[:40])!r}, expected a function's name"
            )
            raise LibraryLoadError(text, path=self.path, reason="malformed") from None

    @property
    def own_constants(self) -> Mapping[str, Any]:
        """The constants of the file."""
        if self._constants is None:
            from .constants import named_values

            self._constants = named_values(self._constants_record())
        return self._constants

    @property
    def own_globals(self) -> Mapping[str, str]:
        """The variables of the file, each with its code."""
        return self._constants_record().globals

    @property
    def own_left_out(self) -> Mapping[str, str]:
        """The constants and variables that the export of the file left out."""
        return self._constants_record().left_out

    def _constants_record(self) -> ConstantsRecord:
        if self._record is None:
            from .constants import parse_constants

            self._record = parse_constants(self._library.data(CONSTANTS), self.path)
        return self._record

    def __repr__(self) -> str:
        return f"<LibraryModule {self.path!r}>"


def why_left_out(library: Library | SystemLibrary, name: str) -> str:
    """Return why the export left a function out, as the end of a message; "" if it is not known."""
    if not (name.isascii() and name.isprintable()):
        return ""
    from .error import LibraryLoadError

    try:
        record = library.data(LEFT_OUT)
    except LibraryLoadError:  # of this symbol: the missing function is the error
        return ""
    return left_out_hint(record, name) if record is not None else ""


def with_key(root: Module | None) -> Module | None:
    """Refuse a loaded tree with encrypted modules to a load without their key."""
    for encrypted in root._encrypted if root is not None else ():
        encrypted.check_key()
    return root
