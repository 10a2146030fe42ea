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

from ._core import Reader, crc32, parse_blob
from .abi import BLOB_SYMBOLS, CHECKSUMS, IMPORT_TREE_KEY, MODULE_BLOB
from .error import BlobFormatError
from .payloads import module_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .module import Module
    from .serial.stream import Chunk, Writer

MAX_MODULES = 65_536
# A number takes 40 bytes in memory and 8 in the file.
MAX_CHILD_INDICES = 1 << 20


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
    """Parse a blob and make all its modules; payloads are not copied.

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
    reader = Reader(view, path=path, where=where, dialect=dialect)
    return blob_of(reader, *parse_blob(reader, manifest_text, None, False))


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
    structure: int | None = None,
) -> Blob:
    """Parse the bytes of a blob symbol, its nbytes header included; see `parse`.

    Raises
    ------
    BlobFormatError, LoaderNotFoundError
        As `parse` does; also if the size in the header is not that of the symbol, or if the blob's
        structure does not have the CRC-32 `structure`.
    """
    reader = Reader(data, path=path, where=where, dialect=dialect)
    return blob_of(reader, *parse_blob(reader, manifest_text, structure, True))


def blob_of(
    reader: Reader,
    entries: list[tuple[str, int, int, Module | None, bool]],
    row_ptr: tuple[int, ...] | None,
    indices: tuple[int, ...] | None,
) -> Blob:
    """Make the modules of a blob, of which `parse_blob` returned the entries and the tree."""
    dialect = reader.dialect
    is_sized = dialect == "tvm-ffi"
    made = [
        Entry(entry[0], module_of(reader, *entry), entry[1], entry[2], is_sized=is_sized)
        for entry in entries
    ]
    return Blob(made, row_ptr, indices, dialect=dialect)


def structure_of(blob: Blob) -> bytes:
    """Describe a parsed or dumped blob without its payloads; a library stores the CRC-32."""
    lines = [f"{e.key} {e.offset} {e.nbytes}" for e in blob.entries]
    tree = (blob.import_tree_row_ptr, blob.import_tree_child_indices)
    lines += [" ".join(map(str, numbers)) for numbers in tree if numbers is not None]
    return "\n".join(lines).encode()


def check_structure(blob: Blob, expected: int, *, path: str, where: str) -> None:
    """Refuse a parsed blob whose structure does not have the CRC-32 that its library stores."""
    if (found := crc32(structure_of(blob))) != expected:
        text = (
            f"{path}: {where} at 0x0: keys, sizes or import tree with CRC-32 {found:08x}, "
            f"expected {expected:08x} as listed in {CHECKSUMS}; the file is damaged: export it "
            f"again, or copy it again"
        )
        raise BlobFormatError(text, path=path, offset=0)


def children_of(row_ptr: tuple[int, ...], indices: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The children of each module in import order, each once.

    TVM of 2019 wrote a child once per import of it; all of them are one import.
    """
    rows = zip(row_ptr, row_ptr[1:], strict=False)
    return [tuple(dict.fromkeys(indices[start:end])) for start, end in rows]


def check_dialect(dialect: str) -> None:
    """Raise ValueError for an unknown dialect."""
    if dialect not in BLOB_SYMBOLS.values():
        raise ValueError(
            f"dialect {dialect!r} is not known; known: {', '.join(BLOB_SYMBOLS.values())}"
        )
