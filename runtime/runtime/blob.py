"""The blob: `parse` and `dump` in both dialects, and the tree between them.

A library stores a blob at one symbol, after a u64 nbytes. Dialect ``tvm``, ``__tvm_dev_mblob``:

    u64 count
    count x { string key, payload }
        key "_lib"          no payload: the place of the library itself
        key "_import_tree"  vector<u64> import_tree_row_ptr, vector<u64> import_tree_child_indices
        any other key       is a type key; its loader knows where its payload ends

The tree is a CSR over the entries in wire order, without ``_import_tree``; module 0 is the root.
Writers of 2017 to 2019 ("gen 0") wrote no tree: the library is the root and imports all.

Dialect ``tvm-ffi``, ``__tvm_ffi__library_bin`` (TVM since mid-2025):

    vector<u64> indptr, vector<u64> child_indices     CSR over the modules in wire order
    per module: string key, then, unless the key is "_lib": string payload

Both store the same payload for a type key, except device code (`modules.device`). Here its length
is stored, so an entry without a loader is carried unchanged. One file: `dump` inverts `parse`.
"""

from __future__ import annotations

from .abi import BLOB_SYMBOLS, HEADER_NBYTES, IMPORT_TREE_KEY, LIB_KEY, MODULE_BLOB
from .error import BlobFormatError, LoaderNotFoundError, PackerError
from .import_tree import MAX_MODULES, check_import_tree, children_of, read_import_tree
from .reader import Reader, is_type_key
from .registry import find_loader, forget_offers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .module import Module
    from .serial.manifest import Manifest
    from .serial.stream import Chunk, Writer

    Carry = Callable[[str, int], Module]


class Entry:
    """One entry of a blob.

    Attributes
    ----------
    key : str
        The key in the blob; an alias is not replaced.
    module : Module or None
        The decoded payload; None for ``_lib`` and ``_import_tree``.
    offset, nbytes : int
        The place of the entry in the blob, key included, in bytes; `parse` and `dump` set it.
    is_sized : bool
        True if a u64 length precedes the payload, as in dialect ``tvm-ffi``.
    """

    __slots__ = ("is_sized", "key", "module", "nbytes", "offset")

    def __init__(
        self,
        key: str,
        module: Module | None,
        offset: int = 0,
        nbytes: int = 0,
        *,
        is_sized: bool = False,
    ) -> None:
        self.key = key
        self.module = module
        self.offset = offset
        self.nbytes = nbytes
        self.is_sized = is_sized

    @property
    def payload_offset(self) -> int:
        """The offset of the payload in the blob, in bytes."""
        length = 8 if self.is_sized and self.module is not None else 0
        return self.offset + 8 + len(self.key) + length  # a key is ASCII


class Blob:
    """A parsed blob: entries in wire order, and the import tree.

    Attributes
    ----------
    entries : list of Entry
        All entries, including ``_import_tree``.
    import_tree_row_ptr, import_tree_child_indices : tuple of int or None
        The CSR arrays of the blob; None if it has no tree.
    dialect : {"tvm", "tvm-ffi"}
        The format.
    """

    __slots__ = ("dialect", "entries", "import_tree_child_indices", "import_tree_row_ptr")

    def __init__(
        self,
        entries: list[Entry],
        import_tree_row_ptr: tuple[int, ...] | None = None,
        import_tree_child_indices: tuple[int, ...] | None = None,
        *,
        dialect: str = "tvm",
    ) -> None:
        self.entries = entries
        self.dialect = dialect
        self.import_tree_row_ptr = import_tree_row_ptr
        self.import_tree_child_indices = import_tree_child_indices

    @property
    def nodes(self) -> list[Entry]:
        """The entries that are nodes of the tree, in wire order."""
        return [entry for entry in self.entries if entry.key != IMPORT_TREE_KEY]

    @property
    def modules(self) -> list[Module | None]:
        """The decoded modules in wire order; None stands for the library."""
        return [entry.module for entry in self.nodes]

    @property
    def csr(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The row pointers and the child indices. Only for a blob with a tree."""
        assert self.import_tree_row_ptr is not None
        assert self.import_tree_child_indices is not None
        return self.import_tree_row_ptr, self.import_tree_child_indices

    def children(self) -> list[tuple[int, ...]]:
        """The children of each node in import order, each once. Only for a blob with a tree."""
        return children_of(*self.csr)


def parse(
    view: bytes | bytearray | memoryview,
    dialect: str = "tvm",
    *,
    path: str | None = None,
    where: str = "blob",
    manifest_text: bytes | memoryview | None = None,
) -> Blob:
    """Parse a blob; payloads are not copied.

    Parameters
    ----------
    view : buffer
        The blob without its nbytes header. Modules keep views of it.
    dialect : {"tvm", "tvm-ffi"}
        The format.
    path, where : str
        The library and the symbol, for messages.
    manifest_text : buffer, optional
        The library's ``__packer_manifest``: contains the length of entries whose type key has no
        loader, which are then carried. It is only parsed if the blob has such an entry.

    Returns
    -------
    Blob
        With at most one ``_lib``, root 0, indices in range, no cycle, and no unreachable module.

    Raises
    ------
    BlobFormatError
        The bytes break the format.
    LoaderNotFoundError
        A type key has no loader, and there is no manifest.
    """
    check_dialect(dialect)
    reader = Reader(view, path=path, where=where, dialect=dialect)
    forget_offers()
    if dialect == "tvm-ffi":
        blob = _parse_sized(reader)
    else:
        blob = _parse_unsized(reader, _carrier(reader, manifest_text))
    if reader.remaining:
        what = f"{reader.remaining} bytes after the last of {len(blob.entries)} entries"
        raise reader.error(f"{what}, expected none")
    _check_entries(reader, blob)
    return blob


def dump(blob: Blob) -> list[Chunk]:
    """Write a blob; each module writes its payload. The inverse of `parse`.

    Parameters
    ----------
    blob : Blob
        The offsets of its entries are set.

    Returns
    -------
    list of bytes, memoryview or FileRange
        The blob without its nbytes header; payloads are not copied.

    Raises
    ------
    PackerError
        A module has no binary form.
    """
    from .serial.stream import Writer

    writer = Writer(dialect=blob.dialect)
    is_sized = blob.dialect == "tvm-ffi"
    if is_sized:
        _write_import_tree(writer, blob)
    else:
        writer.write_u64(len(blob.entries))
    for entry in blob.entries:
        entry.is_sized = is_sized
        entry.offset = writer.offset
        writer.write_string(entry.key)
        if entry.key == IMPORT_TREE_KEY:
            _write_import_tree(writer, blob)
        elif entry.module is not None and is_sized:
            writer.write_sized(entry.module.save_to_binary)
        elif entry.module is not None:
            entry.module.save_to_binary(writer)
        entry.nbytes = writer.offset - entry.offset
    return writer.finish()


def _write_import_tree(writer: Writer, blob: Blob) -> None:
    for numbers in blob.csr:
        writer.write_vector(numbers, writer.write_u64)


def link_tree(blob: Blob, library: Module | None = None) -> Module:
    """Give the modules of a blob their imports, and return the root.

    Parameters
    ----------
    blob : Blob
        As `parse` returns it.
    library : Module, optional
        The node for ``_lib``, and the root if the blob has no tree.

    Raises
    ------
    BlobFormatError
        The blob needs a library, and none is given.

    Notes
    -----
    No code is run: `build_tree` loads the libraries that a blob carries, this does not.
    """
    if blob.import_tree_row_ptr is None:
        modules = [module for module in blob.modules if module is not None]
        if library is None:
            raise BlobFormatError("blob at 0x0: no import tree, so only a library can be its root")
        library._linked = modules
        return library
    nodes = [library if module is None else module for module in blob.modules]
    for node, children in zip(nodes, blob.children(), strict=True):
        if node is None:
            raise BlobFormatError("blob at 0x0: a '_lib' entry outside of a library", offset=0)
        if not node._carries_imports or node is library:
            node._linked = [child for i in children if (child := nodes[i]) is not None]
    assert nodes[0] is not None
    return nodes[0]


def build_tree(blob: Blob, library: Module | None = None) -> Module:
    """Load the libraries that a blob carries, and link its tree. Their code is run.

    Raises
    ------
    BlobFormatError
        As `link_tree` does.
    LibraryLoadError
        A carried library cannot be loaded.
    """
    for entry in blob.entries:
        if entry.module is not None:
            entry.module = entry.module.tree_node()
    return link_tree(blob, library)


def parse_symbol(
    data: memoryview,
    dialect: str = "tvm",
    *,
    path: str | None = None,
    where: str = MODULE_BLOB,
    manifest_text: bytes | memoryview | None = None,
) -> Blob:
    """Parse the bytes of a blob symbol, its nbytes header included; see `parse`.

    Raises
    ------
    BlobFormatError, LoaderNotFoundError
        As `parse` does; also if the size in the header is not that of the symbol.
    """
    body = _without_header(Reader(data, path=path, where=where))
    return parse(body, dialect, path=path, where=where, manifest_text=manifest_text)


def structure_of(blob: Blob) -> bytes:
    """Describe a parsed or dumped blob without its payloads; a library stores the CRC-32."""
    lines = [f"{e.key} {e.offset} {e.nbytes}" for e in blob.entries]
    tree = (blob.import_tree_row_ptr, blob.import_tree_child_indices)
    lines += [" ".join(map(str, numbers)) for numbers in tree if numbers is not None]
    return "\n".join(lines).encode()


def check_dialect(dialect: str) -> None:
    """Raise ValueError for an unknown dialect."""
    if dialect not in BLOB_SYMBOLS.values():
        raise ValueError(
            f"dialect {dialect!r} is not known; known: {', '.join(BLOB_SYMBOLS.values())}"
        )


def _without_header(reader: Reader) -> memoryview:
    """Read the nbytes header of a blob symbol; return the blob after it."""
    size = reader.remaining
    if size < HEADER_NBYTES:
        raise reader.error(f"a symbol of {size} bytes, expected at least {HEADER_NBYTES}")
    header = bytes(reader.read_raw(HEADER_NBYTES))
    found, expected = int.from_bytes(header, "little"), size - HEADER_NBYTES
    if int.from_bytes(header, "big") == expected != found:
        raise reader.error(
            "nbytes is big-endian, expected little-endian; pack it for this machine", 0
        )
    if found != expected:
        raise reader.error(f"nbytes is {found}, expected {expected} (symbol size - 8)", 0)
    return reader.read_raw(expected)


# ---- Dialect tvm: entries without a length, the import tree among them


def _parse_unsized(reader: Reader, carry: Carry | None) -> Blob:
    if reader.remaining < 8:
        raise reader.error(f"a blob of {reader.remaining} bytes, expected at least 8")
    count = reader.read_count(min_nbytes=9)
    if count > MAX_MODULES + 1:
        raise reader.error(f"{count} entries, expected at most {MAX_MODULES + 1}", 0)
    blob = Blob([])
    for index in range(count):
        reader.last_entry = index == count - 1
        blob.entries.append(_read_unsized(reader, blob, carry))
    return blob


def _read_unsized(reader: Reader, blob: Blob, carry: Carry | None) -> Entry:
    start = reader.offset
    key = _read_key(reader)
    module = None
    if key == IMPORT_TREE_KEY:
        if blob.import_tree_row_ptr is not None:
            raise reader.error("a second '_import_tree', expected one", start)
        blob.import_tree_row_ptr, blob.import_tree_child_indices = read_import_tree(reader)
    elif key != LIB_KEY:
        module = _load_or_carry(reader, key, start, carry)
    return Entry(key, module, start, reader.offset - start)


def _load_or_carry(reader: Reader, key: str, start: int, carry: Carry | None) -> Module:
    try:
        return load_payload(reader, key, start)
    except LoaderNotFoundError as error:
        if carry is not None:
            return carry(key, start)
        where = f"{reader.path}: {reader.where}" if reader.path else reader.where
        raise LoaderNotFoundError(
            f"{where} at {start:#x}: {error.message}",
            type_key=error.type_key,
            known=error.known,
            path=reader.path,
        ) from None


def _carrier(reader: Reader, manifest_text: bytes | memoryview | None) -> Carry | None:
    """Make the function that carries a payload without a loader; it parses the manifest once."""
    if manifest_text is None:
        return None
    manifest: Manifest | None = None

    def carry(key: str, start: int) -> Module:
        nonlocal manifest
        if manifest is None:
            from .serial.manifest import parse_manifest

            manifest = parse_manifest(manifest_text, path=reader.path)
        return manifest.carry(reader, key, start)

    return carry


# ---- Dialect tvm-ffi: the import tree, then entries with a length


def _parse_sized(reader: Reader) -> Blob:
    row_ptr, indices = read_import_tree(reader)
    # Each entry takes at least 9 bytes, so reading stops at the blob's end if the count is wrong.
    entries = [_read_sized(reader) for _ in row_ptr[1:]]
    return Blob(entries, row_ptr, indices, dialect="tvm-ffi")


def _read_sized(reader: Reader) -> Entry:
    start = reader.offset
    key = _read_key(reader)
    module = None if key == LIB_KEY else _read_sized_module(reader, key, start)
    return Entry(key, module, start, reader.offset - start, is_sized=True)


def _read_sized_module(reader: Reader, key: str, start: int) -> Module:
    payload = reader.read_sized()
    try:
        module = load_payload(payload, key, start)
    except LoaderNotFoundError:
        from .modules.opaque import OpaqueModule

        return OpaqueModule(key, payload.read_raw(payload.remaining))
    if payload.remaining:
        raise payload.error(
            f"{payload.remaining} bytes after the payload of {key!r}, expected none"
        )
    return module


# ---- Both dialects


def _read_key(reader: Reader) -> str:
    start = reader.offset
    nbytes = reader.read_u64()
    if not 0 < nbytes <= 255:
        raise reader.error(f"a key of {nbytes} bytes, expected 1 to 255", start)
    key = bytes(reader.read_raw(nbytes, "a key"))
    if not is_type_key(key):
        raise reader.error(f"key {key!r}, expected letters, digits, '_', '.', '-'", start)
    return key.decode()


def load_payload(reader: Reader, key: str, start: int) -> Module:
    """Read a payload with its loader; `start` is the offset of the entry.

    Raises LoaderNotFoundError, or BlobFormatError if the loader raises an error of another kind.
    """
    loader = find_loader(key)
    try:
        return loader(reader)
    except PackerError:
        raise
    except Exception as error:
        what = f"the loader of {key!r} raised {type(error).__name__}: {error}"
        raise reader.error(what, start) from error


def _check_entries(reader: Reader, blob: Blob) -> None:
    """Refuse a malformed tree, a second library, and imports of a module that carries its own."""
    libraries = [entry.offset for entry in blob.nodes if entry.key == LIB_KEY]
    if blob.import_tree_row_ptr is None:
        if libraries:
            raise reader.error("'_lib' without an '_import_tree', expected both", libraries[0])
        return
    if len(libraries) > 1:
        raise reader.error("a second '_lib', expected one at most", libraries[1])
    at = next((entry.offset for entry in blob.entries if entry.key == IMPORT_TREE_KEY), 0)
    check_import_tree(reader, *blob.csr, num_nodes=len(blob.nodes), at=at)
    for entry, children in zip(blob.nodes, blob.children(), strict=True):
        if entry.module is not None and entry.module._carries_imports and children:
            raise reader.error(f"{entry.key!r} with imports, expected none", entry.offset)
