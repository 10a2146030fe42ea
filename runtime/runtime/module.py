"""Module: a node of the tree, with its imports. One class, since module types derive from it."""

from __future__ import annotations

from ._core import tree_changed
from .abi import BINARY_SERIALIZABLE, DSO_EXPORTABLE, RUNNABLE
from .error import ExportError, FunctionNotFoundError, PackerError, near_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from typing import Any, Self

    from ._core import Library
    from ._core import Session as CoreSession
    from .constants import Constants
    from .graph.model_record import ModelRecord, TensorInfo
    from .graph.timing import BenchmarkResult
    from .lazy_tree import LazyTree
    from .serial.data_file import DataFile
    from .serial.stream import Writer
    from .session import Session
    from .tensors.tensor import Tensor
    from .tensors.weights import Weights
    from .variables import Globals

# Functions that need higher floors: `runtime/__init__` sets them.
upper_floors: dict[str, Callable[..., Any]] = {}

# The number of changes to any tree: a cached look-up is only used until the next change.
_tree_version = 0


class Module:
    """A node of the module tree: its functions, and the modules that it imports.

    A subclass sets `type_key` and overrides `find_function`. To be stored in a library, it also
    overrides `save_to_binary` and registers a loader (`runtime.register_loader`).

    Attributes
    ----------
    type_key : str
        The name of the type, in the tree and in a blob.
    property_mask : int
        `runtime.ModuleProperty` flags: the uses of the module.

    Notes
    -----
    A module keeps its imports alive; an import does not reference its importer. A `Function` keeps
    its module alive, and so that module's imports.
    """

    type_key: str = "module"
    property_mask: int = RUNNABLE

    # The imports, which `_lazy_tree` makes when they are first requested.
    _linked: list[Module]
    _lazy_tree: LazyTree | None = None
    _found: tuple[int, dict[str, Callable[..., Any]]]
    _all_constants: tuple[int, Constants] | None = None  # of the tree, in a version of all trees
    # True if its payload contains its imports, so that they are not entries of a blob.
    _carries_imports = False
    # True if the imports were changed after the load.
    _imports_changed = False
    # The library whose root this is.
    _loaded_from: Library | None = None
    # The sealed copy of a verified load, and the libraries that were opened for it.
    _opened_for: Any = None
    # The file that its pickle names instead of its bytes (`runtime.by_reference`).
    _reference: Any = None
    # The form in a blob of a module that was decrypted, or that an export encrypts.
    _stored_as: Module | None = None
    # The encrypted entries of a loaded library, as its root.
    _encrypted: tuple[Any, ...] = ()
    # The library whose metadata it shows: as its root, or as its host code.
    _described_by: Library | DataFile | None = None

    def __new__(cls, *_args: object, **_kwargs: object) -> Self:
        # Set here so that a subclass need not call super().__init__().
        self = super().__new__(cls)
        self._linked = []
        self._found = (-1, {})
        return self

    # ---- overridden by module types

    def find_function(self, name: str) -> Callable[..., Any] | None:
        """Find a function of this module, without its imports; a module type overrides this.

        Parameters
        ----------
        name : str
            The function's name.

        Returns
        -------
        callable or None
            None if the module has no such function. The callable should keep the module alive.
        """
        return None

    def find_with(self, session: CoreSession, name: str) -> Callable[..., Any] | None:
        """Find a function of this module, without its imports, whose calls use a session."""
        del session
        return self.find_function(name)

    def save_to_binary(self, writer: Writer) -> None:
        """Write the payload that the type's loader reads; a module type overrides this.

        Parameters
        ----------
        writer : Writer
            Buffers that it receives are not copied; they must not change until the export ends.

        Raises
        ------
        PackerError
            The type has no binary form.
        """
        raise PackerError(f"{self!r} has no binary form, so it cannot be written into a blob")

    def get_source(self, fmt: str = "") -> str:
        """Return the module's source text.

        Parameters
        ----------
        fmt : str
            The format, for a type with several.

        Raises
        ------
        PackerError
            The module has no source text.
        """
        raise PackerError(f"{self!r} has no source text" + (f" of format {fmt!r}" if fmt else ""))

    def save(self, path: str | os.PathLike[str], fmt: str = "") -> None:
        """Save the module as a file in a format of its type.

        Parameters
        ----------
        path : path
            The file to write.
        fmt : str
            The format, for a type with several.

        Raises
        ------
        PackerError
            The type has no file format.
        """
        raise PackerError(f"{self!r} has no file format")

    def blob_entry(self) -> Module:
        """The module that a blob contains for this node of a tree: usually itself."""
        return self._stored_as or self

    def tree_node(self) -> Module:
        """The module that the tree contains for this entry of a blob: usually itself."""
        return self

    @property
    def own_entry_name(self) -> str | None:
        """The name of the entry function that this module sets, or None."""
        return None

    @property
    def own_weights(self) -> Mapping[str, Tensor]:
        """The named tensors of this module, without its imports: as they are stored."""
        return {}

    @property
    def own_constants(self) -> Mapping[str, Any]:
        """The constants of this module, without its imports."""
        return {}

    @property
    def own_globals(self) -> Mapping[str, str]:
        """The variables of this module, without its imports, each with its code."""
        return {}

    @property
    def own_left_out(self) -> Mapping[str, str]:
        """The constants and variables that an export left out, each with the reason."""
        return {}

    @property
    def why_no_weights(self) -> str:
        """Why its weights may be missing from `own_weights`, for an error; else ""."""
        return ""

    @property
    def own_record(self) -> ModelRecord | None:
        """The record of a model that this module carries, or None."""
        return None

    @property
    def own_callees(self) -> frozenset[str]:
        """The names of the functions that the code of this module calls: a model's operators."""
        return frozenset()

    # ---- properties

    @property
    def is_binary_serializable(self) -> bool:
        """True if the module can be written into a blob."""
        return bool(self.property_mask & BINARY_SERIALIZABLE)

    @property
    def is_runnable(self) -> bool:
        """True if its functions can be called in this process."""
        return bool(self.property_mask & RUNNABLE)

    @property
    def is_dso_exportable(self) -> bool:
        """True if it is host code that an export compiles and links into the library."""
        return bool(self.property_mask & DSO_EXPORTABLE)

    # ---- the tree

    @property
    def _imports(self) -> list[Module]:
        if self._lazy_tree is not None:
            self._lazy_tree.link(self)
        return self._linked

    @property
    def imported_modules(self) -> list[Module]:
        """The imported modules in import order; the list is a copy."""
        return list(self._imports)

    def import_module(self, module: Module) -> None:
        """Append a module to the imports.

        Parameters
        ----------
        module : Module
            The import; this module keeps it alive.

        Raises
        ------
        TypeError
            It is not a Module.
        ExportError
            It imports this module, directly or not: a tree has no cycles.
        """
        if not isinstance(module, Module):
            raise TypeError(f"import_module takes a runtime.Module, found {type(module).__name__}")
        if any(node is self for node in preorder(module)):
            raise ExportError(
                f"importing {module!r} into {self!r} would make a cycle", module=self.type_key
            )
        self._imports.append(module)
        self._imports_changed = True
        _tree_changed()

    def clear_imports(self) -> None:
        """Drop all imports."""
        self._imports.clear()
        self._imports_changed = True
        _tree_changed()

    def set_imports(self, modules: list[Module]) -> None:
        """Replace the imports, without a check for cycles."""
        self._imports[:] = modules
        _tree_changed()

    # ---- look-up

    def get_function(self, name: str, query_imports: bool = False) -> Callable[..., Any]:
        """Look up a function.

        Parameters
        ----------
        name : str
            Its name.
        query_imports : bool
            True to search the imports too, depth first in import order, each once.

        Returns
        -------
        callable
            It keeps its module alive.

        Raises
        ------
        TypeError
            The name is not a str.
        FunctionNotFoundError
            There is no function of this name; the message lists similar names.
        """
        if not isinstance(name, str):
            raise TypeError(f"a function's name is a str, found {type(name).__name__}")
        function = self._find(name) if query_imports else self.find_function(name)
        if function is None:
            raise self._not_found(name, query_imports)
        return function

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """Return True if `get_function` finds a function of this name."""
        return (self._find(name) if query_imports else self.find_function(name)) is not None

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """``module["f"]`` is ``module.get_function("f", query_imports=True)``."""
        return self.get_function(name, query_imports=True)

    def __contains__(self, name: object) -> bool:
        """Return True if ``module["f"]`` finds it, for ``"f" in module``."""
        return isinstance(name, str) and self.implements_function(name, query_imports=True)

    __iter__ = None  # not a sequence, despite [name]; see function_names()

    def _find(self, name: str) -> Callable[..., Any] | None:
        function = self.find_function(name)
        if function is not None:
            return function
        version, found = self._found
        if version != _tree_version:
            found = {}
            self._found = (_tree_version, found)
        if name not in found:
            for module in preorder(self):
                if module is not self and (function := module.find_function(name)) is not None:
                    found[name] = function
                    break
        return found.get(name)

    def function_names(self) -> list[str]:
        """The names of this module's functions, if the type can list them."""
        return []

    def _not_found(self, name: str, query_imports: bool) -> FunctionNotFoundError:
        modules = list(preorder(self)) if query_imports else [self]
        text = f"{self!r} has no function {name!r}" + (" in its tree" if query_imports else "")
        holders = [m for m in modules if name in m.function_names()]
        if holders:
            text += f"; {holders[0]!r} carries it, but cannot run here"
            if holders[0].is_dso_exportable:
                text += ": it is not compiled; export the tree, and load the library"
            else:
                text += holders[0].how_to_declare(name)
        else:
            hints = [hint for m in modules if (hint := m.how_to_declare(name))]
            names = [n for m in modules for n in m.function_names()]
            text += hints[0] if hints else near_names(name, names)
        return FunctionNotFoundError(text, name=name, module=self.type_key)

    def how_to_declare(self, name: str) -> str:
        """Say how to declare a function that the module has without a declaration; else ""."""
        del name
        return ""

    @property
    def weights(self) -> Weights:
        """The named tensors of this module and its imports, ``weights[name]``; a read-only view.

        They are looked up as functions are: depth first in import order; of equal names the first
        is found. The tensors view the library's memory, and keep it mapped. A model's weights have
        its names and shapes: a weight that is stored as an operator reads it is unpacked, which
        makes a copy; ``weights.folded`` names the weights that are not stored.
        """
        from .tensors.weights import Weights, model_weights

        nodes = list(preorder(self))
        parts = ((m.own_weights, m.own_record) for m in nodes)
        found = [model_weights(own, record) for own, record in parts if own or record]
        return Weights(found, next((why for m in nodes if (why := m.why_no_weights)), ""))

    @property
    def constants(self) -> Constants:
        """The constants of the C code in the tree: ``constants["SIZE"]`` or ``constants.SIZE``.

        A read-only mapping of the names of enums and of macros to int, float, str, or bytes for
        text that is not UTF-8. The names of an enum are members of an `enum.IntEnum`, which is
        among the constants by the enum's name. Modules are searched depth first in import order.

        Raises
        ------
        BlobFormatError
            The record is malformed; another program wrote or changed it.
        """
        if self._all_constants is not None and self._all_constants[0] == _tree_version:
            return self._all_constants[1]
        from .constants import Constants

        nodes = list(preorder(self))
        left_out = {name: why for m in nodes for name, why in m.own_left_out.items()}
        found = Constants((own for m in nodes if (own := m.own_constants)), left_out)
        self._all_constants = _tree_version, found
        return found

    @property
    def globals(self) -> Globals:
        """The variables of the C code in the tree: ``globals["count"]`` or ``globals.count``.

        A mapping of the names to the values. A number, a struct or a handle is read at each
        access; ``globals["count"] = 3`` writes it, unless it is const. An array is a memoryview
        of its memory, read-only if it is const, which keeps the library loaded.

        Raises
        ------
        BlobFormatError
            The record is malformed; another program wrote or changed it.
        """
        from .variables import Globals

        nodes = list(preorder(self))
        left_out = {name: why for m in nodes for name, why in m.own_left_out.items()}
        return Globals(((m, own) for m in nodes if (own := m.own_globals)), left_out)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The version, the license and further values of the library, as its export got them.

        A new read-only mapping at each access: ``metadata["version"]`` and ``["license"]`` are
        text, other values are what JSON has. Empty for a library without, and for modules that
        are neither the root of a loaded library nor its host code.

        Raises
        ------
        BlobFormatError
            The record is malformed; another program wrote or changed it.
        """
        from .serial.library_metadata import metadata_of

        return metadata_of(self._described_by)

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """The inputs of a model: name, dtype and shape of each argument of its entry function.

        Of the first record (docs/format.md, dso.graph) of the tree; empty for a tree without.
        An extent that each call may choose is a str, its name. With several sets of shapes these
        are the first.

        Raises
        ------
        BlobFormatError
            The record is malformed; another program wrote or changed it.
        """
        record = self.model_record
        return record.inputs if record is not None else ()

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """The outputs of a model, as `inputs`: the items of the result of its entry function."""
        record = self.model_record
        return record.outputs if record is not None else ()

    @property
    def model_record(self) -> ModelRecord | None:
        """The first record of a model in the tree, or None; its graph and weights, checked."""
        records = (module.own_record for module in preorder(self))
        return next((record for record in records if record is not None), None)

    # ---- the entry function

    @property
    def entry_name(self) -> str:
        """The name of the entry function: the first that a module of the tree sets, or "main"."""
        names = (module.own_entry_name for module in preorder(self))
        return next((name for name in names if name is not None), "main")

    def __call__(self, *args: Any) -> Any:
        """Call the entry function.

        Raises
        ------
        FunctionNotFoundError
            The tree has none.
        """
        return self[self.entry_name](*args)

    def session(self, *, maximum: int | None = None) -> Session:
        """Make a session: the state that calls of a model with state keep, one after the other.

        Parameters
        ----------
        maximum : int, optional
            The most rows of a state: memory for them is allocated once, at the first call. By
            default memory grows.

        Returns
        -------
        Session
            Without state, and independent of other sessions. It keeps this module alive.

        Raises
        ------
        ValueError
            The maximum is less than 1.
        """
        made: Session = upper_floors["make_session"](self, maximum)
        return made

    # ---- conveniences

    def time_evaluator(
        self, name: str, *, number: int = 10, repeat: int = 1, min_repeat_ms: float = 0.0
    ) -> Callable[..., BenchmarkResult]:
        """Make a function that measures calls of another.

        Parameters
        ----------
        name : str
            The function; the imports are searched too.
        number : int
            Calls per measurement.
        repeat : int
            Measurements.
        min_repeat_ms : float
            The least duration of a measurement, in milliseconds; `number` is doubled until then.

        Returns
        -------
        callable
            ``evaluate(*args) -> BenchmarkResult``, seconds per call; a first call is not counted.

        Raises
        ------
        FunctionNotFoundError
            There is no such function.
        """
        from .graph.timing import time_evaluator

        return time_evaluator(self[name], number=number, repeat=repeat, min_repeat_ms=min_repeat_ms)

    def export_library(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Export this module and its imports with `packer.export_library`.

        Parameters
        ----------
        path : path
            The library to write.
        **options
            The options of `packer.export_library`.

        Raises
        ------
        PackerError
            packer is not installed.
        """
        exported: Path = upper_floors["export_library"](self, path, **options)
        return exported

    # ---- pickle and copy

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        reduced: tuple[Any, ...] = upper_floors["reduce_module"](self, int(protocol))
        return reduced

    def __copy__(self) -> Module:
        copy: Module = upper_floors["copy_module"](self)
        return copy

    def __deepcopy__(self, _memo: object) -> Module:
        return self.__copy__()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.type_key!r}>"


def preorder(root: Module) -> Iterator[Module]:
    """Walk a tree depth first in import order, each module once; no recursion, any depth."""
    seen: set[int] = set()
    pending = [root]
    while pending:
        module = pending.pop()
        if id(module) not in seen:
            seen.add(id(module))
            yield module
            pending.extend(reversed(module._imports))


def _tree_changed() -> None:
    global _tree_version
    _tree_version += 1
    tree_changed()
