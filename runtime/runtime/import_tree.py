"""The import tree of a blob: CSR arrays over its modules, root 0; checked before they are used."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .serial.stream import Reader

MAX_MODULES = 65_536
# A number takes 40 bytes in memory and 8 in the file.
MAX_CHILD_INDICES = 1 << 20


def read_import_tree(reader: Reader) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Read the row pointers and the child indices; both are bounded by the limits of a tree."""
    return reader.read_u64_vector(MAX_MODULES + 1), reader.read_u64_vector(MAX_CHILD_INDICES)


def children_of(row_ptr: tuple[int, ...], indices: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The children of each module in import order, each once.

    TVM of 2019 wrote a child once per import of it; all of them are one import.
    """
    rows = zip(row_ptr, row_ptr[1:], strict=False)
    return [tuple(dict.fromkeys(indices[start:end])) for start, end in rows]


def check_import_tree(
    reader: Reader,
    row_ptr: tuple[int, ...],
    indices: tuple[int, ...],
    *,
    num_nodes: int,
    at: int,
) -> None:
    """Refuse arrays that are not a tree of `num_nodes` modules, with root 0.

    The reader makes the errors, at the offset `at` of the ``_import_tree`` entry.
    """
    if num_nodes == 0:
        raise reader.error("an import tree over no modules, expected at least one", at)
    if len(row_ptr) != num_nodes + 1:
        raise reader.error(f"{len(row_ptr)} row pointers, expected {num_nodes + 1}", at)
    if row_ptr[0] != 0 or row_ptr[-1] != len(indices):
        found = f"from {row_ptr[0]} to {row_ptr[-1]}"
        raise reader.error(f"row pointers {found}, expected from 0 to {len(indices)}", at)
    if any(start > end for start, end in zip(row_ptr, row_ptr[1:], strict=False)):
        raise reader.error("row pointers that fall, expected them to rise", at)
    highest = max(indices, default=0)
    if highest >= num_nodes:
        raise reader.error(
            f"child index {highest} out of range, expected less than {num_nodes}", at
        )
    _check_order(reader, children_of(row_ptr, indices), at)


def _check_order(reader: Reader, children: list[tuple[int, ...]], at: int) -> None:
    """Walk in Kahn's order from the root; it omits modules that are on a cycle or below one."""
    parents = _parent_counts(children)
    orphan = next((i for i, count in enumerate(parents) if count == 0 and i), None)
    if orphan is not None:
        raise reader.error(f"module {orphan} cannot be reached from module 0, expected a tree", at)
    ready = [0] if parents[0] == 0 else []
    while ready:
        for child in children[ready.pop()]:
            parents[child] -= 1
            if parents[child] == 0:
                ready.append(child)
    left = next((i for i, count in enumerate(parents) if count), None)
    if left is not None:
        raise reader.error(f"module {left} is on a cycle or below one, expected a tree", at)


def _parent_counts(children: list[tuple[int, ...]]) -> list[int]:
    counts = [0] * len(children)
    for row in children:
        for child in row:
            counts[child] += 1
    return counts
