"""Serialise a module tree: order its nodes for a blob, and write it as bytes.

All DSO-exportable modules merge into one ``_lib`` node, whose imports are its members' imports in
preorder of first visit. The order is the reverse postorder of a depth-first walk that visits
imports last to first: the root is 0, every parent precedes its children, and children keep their
import order. Every tree without a cycle is accepted. TVM's writer refuses diamonds and reverses
siblings; every loader accepts any order with the root first (docs/decisions-runtime.md).
"""

from __future__ import annotations

from ..abi import IMPORT_TREE_KEY, LIB_KEY
from ..blob import (
    MAX_CHILD_INDICES,
    MAX_MODULES,
    Blob,
    Entry,
    build_tree,
    check_dialect,
    dump,
    parse,
)
from ..error import BlobFormatError, ExportError
from ..module import Module, preorder
from .stream import read_chunk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Node:
    """A node of the merged tree: one module, or all host code (module None)."""

    __slots__ = ("imports", "module")

    def __init__(self, module: Module | None) -> None:
        self.module = module
        self.imports: list[Node] = []

    @property
    def type_key(self) -> str:
        """The key in the blob."""
        return LIB_KEY if self.module is None else self.module.type_key


def serialize(root: Module, *, export_dso: bool, dialect: str = "tvm") -> Blob:
    """Order a tree for the wire; return a Blob for `blob.dump`.

    With `export_dso` host code becomes the ``_lib`` node; else it must have a binary form too. A
    root of host code without imports gives no entry. Raises ExportError, which names the modules,
    if one can be neither exported nor serialised, or if merging the host code makes a cycle.
    """
    return _serialize(root, _is_host_code if export_dso else lambda _: False, dialect)[0]


def merge_host_code(root: Module, *, dialect: str = "tvm") -> tuple[Blob, list[Module]]:
    """Order a tree for an export; return the blob, and the host code in preorder.

    Raises
    ------
    ExportError
        As for `serialize`.
    """
    return _serialize(root, _is_host_code, dialect)


def _serialize(
    root: Module, merged: Callable[[Module], bool], dialect: str
) -> tuple[Blob, list[Module]]:
    check_dialect(dialect)
    modules = check_serializable(root, merged)
    if dialect == "tvm-ffi":
        _refuse_libraries(root, modules)
    hosts = [module for module in modules if merged(module)]
    if merged(root) and not root.imported_modules:
        return Blob([], dialect=dialect), hosts
    return _to_blob(_in_wire_order(_merge(modules, merged)), dialect), hosts


def _is_host_code(module: Module) -> bool:
    return module.is_dso_exportable


def check_serializable(root: Module, merged: Callable[[Module], bool]) -> list[Module]:
    """Return the modules of a tree in preorder; ExportError names one that cannot be stored."""
    if not isinstance(root, Module):
        raise TypeError(f"expected a runtime.Module, found {type(root).__name__}")
    modules = list(_entries(root))
    for module in modules:
        if merged(module):
            continue
        if not module.is_binary_serializable:
            raise ExportError(_refusal(root, module), module=module.type_key)
        if module._carries_imports and not is_as_loaded(module):
            text = (
                f"{_place(root, module)} had its imports changed after it was loaded, so its file "
                f"lacks them; export the tree from its sources, or load the file again"
            )
            raise ExportError(text, module=module.type_key)
    return modules


def _refuse_libraries(root: Module, modules: list[Module]) -> None:
    """Refuse a library within a library: TVM, which the dialect is for, has no such entry."""
    for module in modules:
        if module._carries_imports:
            text = (
                f"{_place(root, module)} is a loaded library, expected modules that TVM can load "
                f"(format 'tvm-ffi'); copy the file as it is, export the tree from its sources, or "
                f"use format='tvm', which this runtime loads"
            )
            raise ExportError(text, module=module.type_key)


def _refusal(root: Module, module: Module) -> str:
    if module.is_dso_exportable:
        advice = (
            "is host code, which cannot be serialised before it is compiled; export the tree as a "
            "library (packer.export_library), load that, and serialise the loaded tree"
        )
    else:
        advice = (
            "is neither host code nor binary-serializable, so it cannot be exported; remove it, or "
            "set its property_mask and save_to_binary"
        )
    return f"{_place(root, module)} {advice}"


def is_as_loaded(root: Module) -> bool:
    """Return True if no imports of a loaded tree were changed after the load."""
    return not any(module._imports_changed for module in preorder(root))


def _entries(root: Module) -> Iterator[Module]:
    """Walk the modules that are entries of a blob in preorder, without carried modules."""
    seen: set[int] = set()
    pending = [root]
    while pending:
        module = pending.pop()
        if id(module) not in seen:
            seen.add(id(module))
            yield module
            pending.extend(reversed(_entry_imports(module)))


def _entry_imports(module: Module) -> list[Module]:
    return [] if module._carries_imports else module.imported_modules


def _place(root: Module, module: Module) -> str:
    """Describe the place of a module: ``root.imported_modules[1] (<Module 'x'>)``."""
    if module is root:
        return f"the root module ({module!r})"
    place: dict[int, str] = {id(root): "root"}
    for node in preorder(root):
        for index, child in enumerate(node.imported_modules):
            place.setdefault(id(child), f"{place[id(node)]}.imported_modules[{index}]")
    return f"{place[id(module)]} ({module!r})"


def _merge(modules: list[Module], merged: Callable[[Module], bool]) -> Node:
    library = Node(None)
    nodes = {id(m): library if merged(m) else Node(m.blob_entry()) for m in modules}
    for module in modules:
        node = nodes[id(module)]
        children = (nodes[id(child)] for child in _entry_imports(module))
        node.imports += [child for child in children if not (child is node is library)]
    for node in nodes.values():
        node.imports = list(dict.fromkeys(node.imports))
    return nodes[id(modules[0])]


def _in_wire_order(root: Node) -> list[Node]:
    """Order the nodes in reverse postorder; an import that is on the current path is a cycle."""
    postorder: list[Node] = []
    path: list[tuple[Node, list[Node]]] = [(root, list(root.imports))]
    is_open = {root: True}
    while path:
        node, pending = path[-1]
        if not pending:
            path.pop()
            is_open[node] = False
            postorder.append(node)
        elif (child := pending.pop()) not in is_open:
            is_open[child] = True
            path.append((child, list(child.imports)))
        elif is_open[child]:
            raise _cycle([node for node, _ in path], child)
    return postorder[::-1]


def _cycle(path: list[Node], start: Node) -> ExportError:
    keys = [node.type_key for node in (*path[path.index(start) :], start)]
    text = (
        f"a cycle in the import tree: {' -> '.join(keys)}. All host code merges into one "
        f"'_lib', so nothing that host code imports may itself import host code"
    )
    return ExportError(text, module=start.type_key)


def _to_blob(nodes: list[Node], dialect: str) -> Blob:
    index = {node: i for i, node in enumerate(nodes)}
    row_ptr, indices = [0], []
    for node in nodes:
        indices += [index[child] for child in node.imports]
        row_ptr.append(len(indices))
    if len(nodes) > MAX_MODULES or len(indices) > MAX_CHILD_INDICES:
        text = f"a tree of {len(nodes)} modules and {len(indices)} imports, expected at most "
        raise ExportError(f"{text}{MAX_MODULES} and {MAX_CHILD_INDICES}, the limits of readers")
    entries = [Entry(node.type_key, node.module) for node in nodes]
    if dialect == "tvm":
        entries.append(Entry(IMPORT_TREE_KEY, None))
    return Blob(entries, tuple(row_ptr), tuple(indices), dialect=dialect)


def serialize_module_to_bytes(module: Module, export_dso: bool = True) -> bytes:
    """Serialise a tree to the bytes of a blob, without its nbytes header.

    Parameters
    ----------
    module : Module
        The root.
    export_dso : bool
        True to replace host code by the ``_lib`` placeholder, as an export does. False to write
        the payload of every module.

    Returns
    -------
    bytes
        Dialect ``tvm``; the same tree gives the same bytes.

    Raises
    ------
    ExportError
        A module cannot be serialised, or there is a cycle; names it.
    """
    return b"".join(map(read_chunk, dump(serialize(module, export_dso=export_dso))))


def deserialize_module_from_bytes(data: bytes | bytearray | memoryview) -> Module:
    """Build the tree of bytes that `serialize_module_to_bytes` wrote without placeholder.

    Parameters
    ----------
    data : buffer
        A blob without its nbytes header; kept alive, not copied.

    Returns
    -------
    Module
        The root.

    Raises
    ------
    BlobFormatError
        The bytes are malformed, or contain a ``_lib`` placeholder, which needs its library.
    LoaderNotFoundError
        A type key has no loader.
    LibraryLoadError
        A library among the modules cannot be loaded.

    Notes
    -----
    A library among the modules is loaded, which runs its code: use trusted bytes only.
    """
    blob = parse(data)
    for entry in blob.entries:
        if entry.key == LIB_KEY:
            text = f"blob at {entry.offset:#x}: '_lib' stands for a library; use runtime.load on it"
            raise BlobFormatError(text, offset=entry.offset)
    return build_tree(blob)
