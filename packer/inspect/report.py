"""LibraryReport: all that is known about a library, as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..elf.image import Segment
from ..elf.section_table import Section, SectionTable
from ..elf.symbol_table import Symbol, SymbolTable

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Tensor:
    """A named tensor that a module carries.

    Attributes
    ----------
    dtype : str
        As ``"float32"``.
    nbytes : int
        What its elements take of the blob.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int


@dataclass(frozen=True, slots=True)
class Module:
    """A node of the import tree.

    Attributes
    ----------
    index : int
        Its place in `LibraryReport.modules`: depth first in import order, the root is 0.
    type_key : str
        As a loaded module has it; the library itself is ``"library"``.
    fmt : str
        The format of the code that it carries, where the type has one.
    nbytes : int
        What its entry takes of the blob.
    imports : tuple of int
        The indices of the modules that it imports, in order.
    functions : tuple of str
        The names of its own functions.
    loadable : bool
        Whether its type has a loader here.
    tensors : tuple of Tensor
        The tensors that it carries, in order.
    signatures : tuple of str
        How each of its functions is called, as far as the module says; else its name.
    """

    index: int
    type_key: str
    fmt: str
    nbytes: int
    imports: tuple[int, ...]
    functions: tuple[str, ...]
    loadable: bool
    tensors: tuple[Tensor, ...] = ()
    signatures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the library's own.

    Attributes
    ----------
    symbol : str
        What is called.
    signature : str or None
        The C declaration; None where the library does not say.
    params : tuple of (name, code)
        The parameters as the facts have them.
    metadata : str or None
        The function of the library that returns its types, as TVM makes them: it would have to
        be run, which is never done here.
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


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a payload as short text: long ones are cut, and say how long they are."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the blob.

    Attributes
    ----------
    offset, nbytes : int
        Where it lies, from the blob's start, which is behind its 8-byte header; key included.
    fields : tuple of Field
        What its payload begins with, decoded.
    """

    key: str
    offset: int
    nbytes: int
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class Blob:
    """Where the tree's bytes lie.

    Attributes
    ----------
    symbol : str
        The symbol behind which they lie.
    offset, nbytes : int
        Where in the file, the 8-byte header included.
    error : str or None
        What is wrong with it; then it has no entries here.
    """

    symbol: str
    offset: int | None
    nbytes: int
    entries: tuple[Entry, ...] = ()
    import_tree_row_ptr: tuple[int, ...] | None = None
    import_tree_child_indices: tuple[int, ...] | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class VersionNeed:
    """The symbol versions that a library needs of another one."""

    library: str
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Linkage:
    """What the dynamic section asks the dynamic loader for.

    Attributes
    ----------
    glibc : str or None
        The newest version of glibc that a symbol is bound to: an older one cannot load it.
    """

    soname: str | None
    needed: tuple[str, ...]
    rpath: tuple[str, ...]
    runpath: tuple[str, ...]
    audit: tuple[str, ...]
    filter: tuple[str, ...]
    version_needs: tuple[VersionNeed, ...] = ()
    glibc: str | None = None


@dataclass(frozen=True, slots=True)
class Hardening:
    """How the linker hardened the file.

    Attributes
    ----------
    relro : str
        ``"full"``, ``"partial"`` or ``"none"``.
    nx : bool
        Whether the stack stays non-executable.
    rwx : bool
        Whether a segment is writable and executable.
    textrel : bool
        Whether relocations write to read-only segments.
    branch_protection : tuple of str
        What all of the code is marked for: ``"IBT"``, ``"SHSTK"`` (x86-64's CET), ``"BTI"``,
        ``"PAC"``, ``"GCS"`` (AArch64), ``"ZICFILP"``, ``"ZICFISS"`` (RISC-V).
    """

    relro: str
    nx: bool
    rwx: bool
    textrel: bool
    branch_protection: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Constructor:
    """Code that a load runs before anything is called.

    Attributes
    ----------
    kind : str
        ``"init"``, ``"init_array"`` or ``"ifunc"``.
    name : str or None
        The symbol at the address, where one is left; for an import its name.
    """

    kind: str
    address: int
    name: str | None


@dataclass(frozen=True, slots=True)
class Symbols:
    """The two symbol tables, decoded only as they are listed."""

    dynamic: SymbolTable
    static: SymbolTable


@dataclass(frozen=True, slots=True)
class LibraryReport:
    """All that is known about a library.

    Attributes
    ----------
    machine : str
        As ELF names it, lower case: ``"x86_64"``, ``"aarch64"``.
    native : bool
        Whether that is this machine.
    dialect : str or None
        ``"tvm"``, ``"tvm-ffi"``, or None for a library without a blob.
    producer, target : str or None
        As the manifest has them.
    root : str or None
        The type key of module 0; None where the tree cannot be read.
    entry : str or None
        The function that a call of the library runs.
    segments : tuple of Segment
        What a load maps, and where.
    sections : SectionTable
        The section headers, the null section's among them; decoded only as they are listed.
    notes : tuple of str
        What a reader should know and is no fault.
    problems : tuple of str
        What would stop a load, and what could not be read.
    """

    path: str
    nbytes: int
    machine: str
    native: bool
    dialect: str | None
    producer: str | None
    target: str | None
    root: str | None
    modules: tuple[Module, ...]
    functions: tuple[Function, ...]
    entry: str | None
    blob: Blob | None
    linkage: Linkage
    hardening: Hardening
    constructors: tuple[Constructor, ...]
    symbols: Symbols
    segments: tuple[Segment, ...]
    sections: SectionTable
    notes: tuple[str, ...]
    problems: tuple[str, ...]

    def fields(self) -> dict[str, Any]:
        """Return the fields by name, and the schema's version; `to_plain` opens what they hold."""
        return {"schema": SCHEMA, **_fields_of(self)}

    def to_dict(self) -> dict[str, Any]:
        """Return the report as dicts, lists, strings and numbers, ready for `json.dumps`."""
        return {name: _deep(value) for name, value in self.fields().items()}


def to_plain(value: Any) -> dict[str, Any] | list[Any]:
    """Make a dict or list of one of the report's own objects; what it holds stays as it is."""
    make = _PLAIN.get(type(value), _fields_of)
    return make(value)


def _fields_of(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__slots__}


_PLAIN: dict[type, Callable[[Any], dict[str, Any] | list[Any]]] = {
    Symbol: Symbol._asdict,
    Segment: Segment.to_dict,
    Section: Section.to_dict,
    SymbolTable: list,
    SectionTable: list,
}


def _deep(value: Any) -> Any:
    """Recursion over the report's own classes: its depth is fixed, not the input's."""
    if isinstance(value, str | int | None):
        return value
    opened = value if type(value) in (tuple, list, dict) else to_plain(value)
    if isinstance(opened, dict):
        return {name: _deep(item) for name, item in opened.items()}
    return [_deep(item) for item in opened]
