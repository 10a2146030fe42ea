"""The blob and the import tree, parsed by the runtime's reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

import runtime
from runtime.abi import BLOB_SYMBOLS, CHECKSUMS, FACT_PREFIX, HEADER_NBYTES, MANIFEST
from runtime.blob import check_structure, link_tree, parse_symbol
from runtime.error import PackerError
from runtime.module import preorder
from runtime.modules.encrypted import EncryptedModule
from runtime.modules.opaque import OpaqueModule
from runtime.registry import has_loader
from runtime.serial.manifest import parse_manifest

from .functions import METADATA_PREFIX
from .payload import fields_of, signatures_of
from .report import BlobReport, EntryReport, FunctionReport, ModuleReport, TensorReport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime._core import ElfFile
    from runtime.blob import Blob, Entry

    from ..elf.image import Image
    from ..elf.symbol_table import Symbol, SymbolTable


# An export without a tree does not store its version.
_PRODUCER = "dso-packer"
_MAX_MODELS = 64  # statically linked ones in a library


class Tree(NamedTuple):
    """The contents of the blob and the manifest of a library."""

    dialect: str | None = None
    producer: str | None = None
    target: str | None = None
    blob: BlobReport | None = None
    modules: tuple[ModuleReport, ...] = ()
    parsed: Blob | None = None  # None if it cannot be read, or is of another dialect
    root: runtime.Module | None = None  # the root of its modules, likewise


class _Library(runtime.Module):
    """Represents the library, which is not loaded."""

    type_key = "library"

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)

    def function_names(self) -> list[str]:
        return self._names


def read_blob(image: Image, symbols: SymbolTable, names: Sequence[str], notes: list[str]) -> Tree:
    """Read the tree of a library, whose host code has functions of these names.

    Problems are appended to the image's list, remarks to the notes.
    """
    library = _Library(names)
    blobs = {name: found for name in BLOB_SYMBOLS if (found := symbols.find(name)) is not None}
    if len(blobs) > 1:
        image.problems.append(f"both {' and '.join(blobs)}, expected one of them")
    for name, symbol in blobs.items():
        return _read_tree(image, symbols, symbol, name, library)
    models = sorted(_system_libraries(symbols), key=lambda model: model[2])
    for _, symbol, prefix in models:
        notes.append(
            f"{symbol.name}: the tree of system library {prefix!r}, which registers itself at "
            f"load: runtime.system_lib({prefix!r}) returns it"
        )
    if len(models) == 1:
        name, symbol, _ = models[0]
        return _read_tree(image, symbols, symbol, name, library)
    tree = Tree(modules=(_module(library, 0, 0, ()),), root=library)
    if not _is_ours(symbols):
        return tree
    has_metadata = next(symbols.beginning_with(METADATA_PREFIX), None) is not None
    return tree._replace(dialect="tvm-ffi" if has_metadata else "tvm", producer=_PRODUCER)


def _is_ours(symbols: SymbolTable) -> bool:
    """Return True if an export wrote facts or checksums; without a tree it writes no manifest."""
    found = chain(symbols.beginning_with(FACT_PREFIX), symbols.ending_with(CHECKSUMS))
    return next(found, None) is not None


def _system_libraries(symbols: SymbolTable) -> Iterator[tuple[str, Symbol, str]]:
    """Find the blobs of statically linked models; each model has a prefix."""
    for name in BLOB_SYMBOLS:
        for symbol in islice(symbols.ending_with(name), _MAX_MODELS):
            yield name, symbol, symbol.name.removesuffix(name)


def _read_tree(
    image: Image, symbols: SymbolTable, symbol: Symbol, name: str, library: _Library
) -> Tree:
    """Read the tree at a blob symbol; `name` is the symbol without its prefix."""
    manifest = symbols.find(symbol.name.removesuffix(name) + MANIFEST)
    text, producer, target = _read_manifest(image, manifest)
    tree = _read(image, symbol, library, text, BLOB_SYMBOLS[name])
    return tree._replace(dialect=BLOB_SYMBOLS[name], producer=producer, target=target)


def verify_checksums(checked: ElfFile, image: Image, symbols: SymbolTable, tree: Tree) -> None:
    """Verify the checksums of the library and of statically linked models.

    `checked` is the library after the static check of a load. Problems are appended to the image's.
    """
    models = islice(symbols.ending_with(CHECKSUMS), _MAX_MODELS)
    for name in [CHECKSUMS, *(symbol.name for symbol in models)]:
        prefix = name.removesuffix(CHECKSUMS)
        with image.reading():
            structure = checked.checksums(name)
            if structure is None or tree.parsed is None or tree.blob is None:
                continue
            if tree.blob.symbol.removeprefix(prefix) in BLOB_SYMBOLS:
                where = tree.blob.symbol
                check_structure(tree.parsed, structure, path=image.path, where=where)


def with_operators(
    functions: Sequence[FunctionReport], root: runtime.Module | None
) -> tuple[FunctionReport, ...]:
    """Return the functions of the host code, and mark the ones that a model of the tree calls."""
    nodes = preorder(root) if root is not None else ()
    called = frozenset().union(*(node.own_callees for node in nodes))
    return tuple(replace(f, is_operator=True) if f.name in called else f for f in functions)


def find_duplicates(modules: Sequence[ModuleReport]) -> Iterator[str]:
    """Name the functions that several modules define, and which module a look-up finds."""
    counts = Counter(chain.from_iterable(set(module.functions) for module in modules))
    twice = {name for name, count in counts.items() if count > 1}
    holders: dict[str, list[ModuleReport]] = {}
    for module in modules if twice else ():
        for name in twice.intersection(module.functions):
            holders.setdefault(name, []).append(module)
    for name, found in sorted(holders.items()):
        places = " and ".join(f"{m.type_key!r} (module {m.index})" for m in found)
        yield f"function {name!r} is in {places}: a look-up finds the first"


def find_carried_libraries(modules: Sequence[ModuleReport]) -> Iterator[str]:
    """Name the modules that are libraries, whose code a load runs too."""
    for module in modules:
        if module.type_key == "shared_library":
            yield (
                f"'shared_library' (module {module.index}) is loaded too, and its "
                f"constructors run; packer extract writes it to a file"
            )


def find_encrypted(parsed: Blob | None) -> Iterator[str]:
    """Name the modules that are encrypted: nothing of them but their size is read."""
    for index, entry in enumerate(parsed.nodes if parsed is not None else ()):
        if isinstance(entry.module, EncryptedModule) and entry.module.header is not None:
            yield (
                f"'{entry.key}' (entry {index}) was not decrypted: its type, functions and weights "
                f"are not shown; a load needs the key {entry.module.header.key_id.hex()}"
            )


def _read(
    image: Image, symbol: Symbol, library: _Library, manifest_text: memoryview | None, dialect: str
) -> Tree:
    blob = BlobReport(symbol.name, None, symbol.size)
    try:
        blob = _locate(image, symbol)
        data = image.data_of(symbol)
        parsed = parse_symbol(
            data, dialect, path=image.path, where=symbol.name, manifest_text=manifest_text
        )
        root = link_tree(parsed, library)
        blob = _with_entries(blob, parsed, data[HEADER_NBYTES:])
        modules = tuple(_modules(parsed, root, library))
    except PackerError as error:
        image.add_problem(error)
        return Tree(blob=replace(blob, error=image.problems[-1]))
    return Tree(blob=blob, modules=modules, parsed=parsed, root=root)


def _read_manifest(
    image: Image, symbol: Symbol | None
) -> tuple[memoryview | None, str | None, str | None]:
    """Return the manifest's text, producer and target; None if there is no manifest."""
    if symbol is not None:
        with image.reading():
            text = image.data_of(symbol)
            manifest = parse_manifest(text, path=image.path)
            return text, manifest.producer, manifest.target
    return None, None, None


def _locate(image: Image, symbol: Symbol) -> BlobReport:
    nbytes = len(image.data_of(symbol))
    return BlobReport(symbol.name, image.offset_of(symbol.address, nbytes, symbol.name), nbytes)


def _with_entries(blob: BlobReport, parsed: Blob, body: memoryview) -> BlobReport:
    return replace(
        blob,
        entries=tuple(_entry(parsed, e, body) for e in parsed.entries),
        import_tree_row_ptr=parsed.import_tree_row_ptr,
        import_tree_child_indices=parsed.import_tree_child_indices,
    )


def _entry(parsed: Blob, entry: Entry, body: memoryview) -> EntryReport:
    payload = payload_of(entry, body)
    return EntryReport(entry.key, entry.offset, entry.nbytes, fields_of(parsed, entry, payload))


def payload_of(entry: Entry, body: memoryview) -> memoryview:
    """Return the bytes of an entry after its key; `body` is the blob without its header."""
    return body[entry.payload_offset : entry.offset + entry.nbytes]


def unpadded(payload: memoryview) -> memoryview:
    """Return a safetensors payload without its padding, which depends on its offset."""
    return payload[8 + int.from_bytes(payload[:8], "little") :]


def _modules(parsed: Blob, root: runtime.Module, library: _Library) -> Iterator[ModuleReport]:
    nodes = list(preorder(root))
    indices = {id(node): index for index, node in enumerate(nodes)}
    nbytes = {id(e.module or library): e.nbytes for e in parsed.nodes}
    for index, node in enumerate(nodes):
        imports = tuple(indices[id(child)] for child in node.imported_modules)
        yield _module(node, index, nbytes.get(id(node), 0), imports)


def _module(
    node: runtime.Module, index: int, nbytes: int, imports: tuple[int, ...]
) -> ModuleReport:
    names = tuple(node.function_names())
    fmt = str(getattr(node, "fmt", ""))
    loadable = not isinstance(node, OpaqueModule) or has_loader(node.type_key)
    tensors = tuple(_tensors(node))
    signatures = tuple(signatures_of(node))
    return ModuleReport(
        index, node.type_key, fmt, nbytes, imports, names, loadable, tensors, signatures
    )


def _tensors(node: runtime.Module) -> Iterator[TensorReport]:
    for name, tensor in node.own_weights.items():
        yield TensorReport(name, tensor.dtype, tensor.shape, tensor.raw.nbytes)
