"""LibraryReport: the contents of a library, as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runtime.graph.model_record import GraphNode, TensorInfo, Variant

from ..elf.image import Segment
from ..elf.linkage import Hardening, Linkage
from ..elf.section_table import Section, SectionTable
from ..elf.symbol_table import Symbol, SymbolTable
from .graph import GraphReport

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class TensorReport:
    """A named tensor of a module.

    Attributes
    ----------
    dtype : str
        Its name, ``"float32"``.
    nbytes : int
        The size of its elements in the blob.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int


@dataclass(frozen=True, slots=True)
class ModuleReport:
    """A node of the import tree.

    Attributes
    ----------
    index : int
        Its index in `LibraryReport.modules`: depth first in import order, the root is 0.
    type_key : str
        The type key of the loaded module; the library itself is ``"library"``.
    fmt : str
        The format of its code, if the type has one.
    nbytes : int
        The size of its entry in the blob.
    imports : tuple of int
        The indices of the imported modules, in order.
    functions : tuple of str
        The names of its functions, without its imports' functions.
    loadable : bool
        True if a loader of its type is installed.
    tensors : tuple of TensorReport
        Its tensors, in order.
    signatures : tuple of str
        A signature for each of its functions; the name if the module has no more.
    """

    index: int
    type_key: str
    fmt: str
    nbytes: int
    imports: tuple[int, ...]
    functions: tuple[str, ...]
    loadable: bool
    tensors: tuple[TensorReport, ...] = ()
    signatures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FunctionReport:
    """A function of the host code.

    Attributes
    ----------
    symbol : str
        The symbol that a call uses.
    signature : str or None
        The C declaration; None if the library has none.
    params : tuple of (name, code)
        The parameters, from the facts.
    metadata : str or None
        TVM's function of the library that returns its types. Inspection never runs it.
    is_operator : bool
        True if a model of the library calls it.
    """

    name: str
    symbol: str
    abi: str
    signature: str | None
    params: tuple[tuple[str, str], ...]
    result: str | None
    doc: str
    gil: str | None
    metadata: str | None = None
    is_operator: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a payload as short text; a long one is cut, with its length."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class EntryReport:
    """One entry of the blob.

    Attributes
    ----------
    offset, nbytes : int
        Its place, key included, from the start of the blob after the 8-byte header.
    fields : tuple of Field
        The decoded start of its payload.
    """

    key: str
    offset: int
    nbytes: int
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class BlobReport:
    """The place of the tree's bytes.

    Attributes
    ----------
    symbol : str
        The symbol of the bytes.
    offset, nbytes : int
        Their place in the file, including the 8-byte header.
    error : str or None
        The problem of a blob that cannot be read; it has no entries here.
    """

    symbol: str
    offset: int | None
    nbytes: int
    entries: tuple[EntryReport, ...] = ()
    import_tree_row_ptr: tuple[int, ...] | None = None
    import_tree_child_indices: tuple[int, ...] | None = None
    error: str | None = None


def title_of(blob: BlobReport) -> str:
    """Return the symbol, the place and the size of a blob."""
    place = f" at offset {blob.offset:#x}" if blob.offset is not None else ""
    return f"blob {blob.symbol}{place}, {blob.nbytes:,} bytes"


@dataclass(frozen=True, slots=True)
class CpuReport:
    """The CPU levels of the host code.

    Attributes
    ----------
    levels : tuple of str
        Their names, lowest first; a load chooses the best one. If there is one, all host code is of
        this level.
    features : tuple of str
        What a processor needs for each level, separated by spaces.
    lowest : tuple of str
        The sources that are of the lowest level only, each with the reason.
    refusal : str or None
        Why a load on this processor, or with this DSO_CPU, is refused; it is one of the problems.
    """

    levels: tuple[str, ...]
    features: tuple[str, ...]
    lowest: tuple[str, ...] = ()
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Constructor:
    """Code that a load runs before any call.

    Attributes
    ----------
    kind : str
        ``"init"``, ``"init_array"`` or ``"ifunc"``.
    name : str or None
        The symbol at the address, if there is one; for an import its name.
    """

    kind: str
    address: int
    name: str | None


@dataclass(frozen=True, slots=True)
class Symbols:
    """The two symbol tables, decoded only when they are read."""

    dynamic: SymbolTable
    static: SymbolTable


@dataclass(frozen=True, slots=True)
class LibraryReport:
    """The contents of a library.

    Attributes
    ----------
    machine : str
        The ELF name, lower case: ``"x86_64"``, ``"aarch64"``.
    native : bool
        True if that is this machine.
    dialect : str or None
        ``"tvm"``, ``"tvm-ffi"``, or None if packer did not write the library and there is no
        blob.
    producer, target : str or None
        From the manifest. A library of packer without a tree has none: the producer is then
        ``"dso-packer"`` without its version, and the target is the file's.
    root : str or None
        The type key of module 0; None if the tree cannot be read.
    metadata : dict
        The version, license and further values of the library; empty without.
    entry : str or None
        The function that a call of the library runs.
    cpu : CpuReport or None
        The CPU levels of the host code; None if it runs on every processor of the machine.
    constants : dict
        The constants of the host code by name: int, float, or text.
    globals : dict
        The variables of the host code, each with its code.
    graph : GraphReport or None
        The graph of the model, if the library has the record of one.
    segments : tuple of Segment
        The program headers.
    sections : SectionTable
        The section headers, including the null section's; decoded only when they are read.
    notes : tuple of str
        Remarks that are not faults.
    problems : tuple of str
        What would stop a load, and what cannot be read.
    """

    path: str
    nbytes: int
    machine: str
    native: bool
    dialect: str | None
    producer: str | None
    target: str | None
    metadata: dict[str, Any]
    root: str | None
    modules: tuple[ModuleReport, ...]
    functions: tuple[FunctionReport, ...]
    entry: str | None
    cpu: CpuReport | None
    constants: dict[str, int | float | str]
    globals: dict[str, str]
    graph: GraphReport | None
    blob: BlobReport | None
    linkage: Linkage
    hardening: Hardening
    constructors: tuple[Constructor, ...]
    symbols: Symbols
    segments: tuple[Segment, ...]
    sections: SectionTable
    notes: tuple[str, ...]
    problems: tuple[str, ...]

    def fields(self) -> dict[str, Any]:
        """Return the schema's version and the fields by name; `to_plain` converts their values."""
        return {"schema": SCHEMA, **_fields_of(self)}

    def to_dict(self) -> dict[str, Any]:
        """Return the report as dicts, lists, strings and numbers, ready for `json.dumps`."""
        return {name: _deep(value) for name, value in self.fields().items()}


def to_plain(value: Any) -> dict[str, Any] | list[Any]:
    """Convert an object of the report to a dict or list, without converting its values."""
    make = _PLAIN.get(type(value), _fields_of)
    return make(value)


def _fields_of(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__slots__}


_PLAIN: dict[type, Callable[[Any], dict[str, Any] | list[Any]]] = {
    Symbol: Symbol._asdict,
    TensorInfo: TensorInfo._asdict,
    GraphNode: GraphNode._asdict,
    Variant: Variant._asdict,
    Segment: Segment.to_dict,
    Section: Section.to_dict,
    SymbolTable: list,
    SectionTable: list,
}


def _deep(value: Any) -> Any:
    """The depth of this recursion is that of the report's classes, not of the input."""
    if isinstance(value, str | int | float | None):
        return value
    opened = value if type(value) in (tuple, list, dict) else to_plain(value)
    if isinstance(opened, dict):
        return {name: _deep(item) for name, item in opened.items()}
    return [_deep(item) for item in opened]
