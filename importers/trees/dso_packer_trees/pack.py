"""The bytes of a forest: tables that support/evaluate.c reads in place.

One file has all tables: each refers to places in the others.

All numbers are little-endian, and each table begins at a multiple of 64 bytes.

header      `HEADER`: the struct forest of support/forest.h
slots       {u32 column, number of cuts}, ordered by kind; slot 0 is the constant 0 and has no
            entry
trees       {u32 first node, depth, first leaf, target}
nodes       level by level: the children of the k-th inner node of a tree are 2k + 1 and 2k + 2
values      f32 or f64 [leaves, width]: the leaves of a tree from left to right
leaf ids    i32 [leaves]: the library's number
base        f32 or f64 [sums]
sets        {u32 first word, number of words}, then the words: bit k % 32 of word k / 32 is
            category k
cuts        f32 or f64: the distinct thresholds of each column, ascending
inner       of bins: {u16 slot, u8 rank, u8 leaves of the left child, u16 node, 2 zeros}
functions   of linear leaves: {f64 constant, u32 first term, number of terms}
terms       {f64 coefficient, u32 column, 4 zeros}

Nodes have one of two layouts. Of numbers: {f32 or f64 threshold, u32 slot, child}, where the child
for x[slot] <= threshold is an index in the table; a node of categories has bit 31 of slot set, and
a set as threshold. A leaf is its own child: its slot is 0, its threshold the number of the leaf in
the tree. Of bins, for trees of at most 256 leaves: {u16 slot, u8 rank, u8 child}, where the child
is so many nodes further. A slot is the number of cuts below x, at most 255; further cuts of the
column have further slots.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from packer import ExportError

from .forest import Kind
from .tables import joined

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .forest import Forest, Linear, Trees

MAGIC = b"dsoforst"
# magic, version, checksum; row type, value type, link, features, slots, trees, sums, width,
# scores, sets, layout, columns, base last, linear; nodes, leaves; divisor, parameter; the ends of
# kinds among the columns; the offsets of the tables.
HEADER = struct.Struct("<8sII14I2Q2d10I12Q")
_NUM_TREES, _TREES_OFFSET = 8, 30
_VERSION = 1
_CATEGORY = 1 << 31
_MOST_NODES = (1 << 32) - 2
_MOST_LEAVES = 1 << 24  # of one tree: a float32 counts them
_MOST_FEATURES = (1 << 31) - 1
_MOST_CATEGORY = 1 << 24
# Of bins (support/forest.h).
_MOST_BIN_LEAVES = 256
_MOST_CUTS = 255
_MOST_SLOTS = (1 << 16) - 1


class _Nodes(NamedTuple):
    """The nodes in the order of the file: tree by tree, level by level, siblings together."""

    nodes: NDArray[np.int64]  # their indices in `Trees`
    tree: NDArray[np.int64]  # the tree of each
    first: NDArray[np.int64]  # the place of each tree's root
    depth: NDArray[np.int64]  # of each tree
    child: NDArray[np.int64]  # the place of the left child; of a leaf its own
    # The leaves of the tree that are left of each, and those under it.
    before: NDArray[np.int64]
    leaves: NDArray[np.int64]

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.child == np.arange(len(self.child))
        return found


class _Table(NamedTuple):
    """The nodes of a layout, and the tables that they need."""

    layout: int
    num_slots: int
    nodes: NDArray[Any]
    slots: NDArray[Any]
    kind_ends: list[int]
    cuts: NDArray[Any]
    inner: NDArray[Any]


def pack(forest: Forest, where: str) -> bytes:
    """Return the bytes of a forest.

    Raises ExportError if nodes do not form trees, or a number is too large.
    """
    trees = forest.trees
    _check(forest, where)
    nodes = _ordered(trees, where)
    counts = nodes.leaves[nodes.first]
    if counts.max() >= _MOST_LEAVES:
        raise ExportError(f"{where}: a tree of over {_MOST_LEAVES} leaves, expected fewer")
    first_leaf = np.cumsum(counts) - counts
    table = _bins(forest, nodes) if counts.max() <= _MOST_BIN_LEAVES else None
    table = table or _numbers(forest, nodes)
    is_leaf = nodes.is_leaf
    at = np.zeros(int(counts.sum()), np.int64)
    at[first_leaf[nodes.tree[is_leaf]] + nodes.before[is_leaf]] = nodes.nodes[is_leaf]
    dtype = np.dtype(forest.dtype).newbyteorder("<")
    columns = [nodes.first, nodes.depth, first_leaf, forest.targets]
    tables = [
        table.slots,
        np.stack(columns, axis=1).astype("<u4"),
        table.nodes,
        np.ascontiguousarray(trees.value[at]).astype(dtype),
        trees.leaf_id[at].astype("<i4"),
        forest.base.astype(dtype),
        *_sets(trees.sets),
        table.cuts,
        table.inner,
        *_linear(trees.linear, at),
    ]
    return _bytes(forest, table, tables)


def _linear(linear: Linear | None, at: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the table of the functions of leaves, which are nodes `at`, and their terms."""
    functions = [("constant", "<f8"), ("first", "<u4"), ("count", "<u4")]
    terms = [("coefficient", "<f8"), ("column", "<u4"), ("unused", "<u4")]
    if linear is None:
        return np.zeros(0, functions), np.zeros(0, terms)
    made, parts = np.zeros(len(at), functions), np.zeros(len(linear.features), terms)
    made["constant"], made["count"] = linear.constant[at], linear.counts[at]
    made["first"] = (np.cumsum(linear.counts) - linear.counts)[at]
    parts["coefficient"], parts["column"] = linear.coefficients, linear.features
    return made, parts


def depth_of(data: bytes) -> int:
    """Return the depth of the deepest tree of a packed forest."""
    fields = HEADER.unpack_from(data)
    num_trees, offset = fields[_NUM_TREES], fields[_TREES_OFFSET]
    return int(np.frombuffer(data, "<u4", num_trees * 4, offset)[1::4].max())


def _check(forest: Forest, where: str) -> None:
    trees = forest.trees
    if not 0 < forest.num_features <= _MOST_FEATURES:
        text = f"{forest.num_features} features, expected 1 to {_MOST_FEATURES}"
        raise ExportError(f"{where}: {text}")
    if len(trees.left) > _MOST_NODES:
        raise ExportError(f"{where}: {len(trees.left)} nodes, expected at most {_MOST_NODES}")
    is_node = trees.left >= 0
    tree = np.repeat(np.arange(len(trees.begins) - 1), np.diff(trees.begins))
    sizes = np.diff(trees.begins)[tree]
    is_finite = np.isfinite(trees.threshold) | (trees.threshold == np.inf)
    sums, width = len(forest.base), trees.value.shape[1]
    targets = forest.targets[tree] + width > sums
    values = np.isfinite(trees.value).all(axis=1)
    terms = trees.linear.features if trees.linear else trees.feature[:0]
    if len(terms) and not 0 <= terms.min() <= terms.max() < forest.num_features:
        text = f"a feature of a leaf, expected 0 to {forest.num_features - 1}"
        raise ExportError(f"{where}: {text}, found {terms.min()} to {terms.max()}")
    checks: tuple[tuple[Any, str, Any], ...] = (
        (is_node & ((trees.left >= sizes) | (trees.right >= sizes)), "a child", sizes),
        (is_node & (trees.right < 0), "a child", sizes),
        (is_node & (trees.feature >= forest.num_features), "a feature", forest.num_features),
        (is_node & (trees.feature < 0), "a feature", forest.num_features),
        (targets | (forest.targets[tree] < 0), "an output", sums),
    )
    for wrong, what, limit in checks:
        if wrong.any():
            node = int(np.argmax(wrong))
            most = int(np.broadcast_to(limit, wrong.shape)[node])
            raise ExportError(f"{_node(trees, where, node)}: {what} out of range 0 to {most - 1}")
    for wrong, what in (
        (is_node & ~is_finite, "threshold -inf or NaN, expected a number"),
        (~is_node & ~values, "value inf or NaN, expected numbers"),
    ):
        if wrong.any():
            raise ExportError(f"{_node(trees, where, int(np.argmax(wrong)))}: {what}")


def _node(trees: Trees, where: str, node: int) -> str:
    tree = int(np.searchsorted(trees.begins, node, "right")) - 1
    return f"{where}: tree {tree}: node {node - int(trees.begins[tree])}"


def _ordered(trees: Trees, where: str) -> _Nodes:
    """Walk all trees at once, level by level."""
    count = len(trees.begins) - 1
    nodes, tree = trees.begins[:-1], np.arange(count)
    levels: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    depth = np.zeros(count, np.int64)
    found = 0
    while len(nodes):
        levels.append((nodes, tree))
        found += len(nodes)
        if found > len(trees.left):
            raise ExportError(f"{where}: a node has two parents, expected trees")
        depth[tree] = len(levels) - 1
        inner = trees.left[nodes] >= 0
        nodes, tree = nodes[inner], tree[inner]
        begins = trees.begins[:-1][tree]
        nodes = np.stack([begins + trees.left[nodes], begins + trees.right[nodes]], axis=1).ravel()
        tree = np.repeat(tree, 2)
    every, of = (np.concatenate(parts) for parts in zip(*levels, strict=True))
    is_found = np.zeros(len(trees.left), bool)
    is_found[every] = True
    if np.count_nonzero(is_found) < len(every):
        raise ExportError(f"{where}: a node has two parents, expected trees")
    level = np.repeat(np.arange(len(levels)), [len(found) for found, _ in levels])
    order = np.argsort(of, kind="stable")
    every, of, level = every[order], of[order], level[order]
    first = np.searchsorted(of, np.arange(count))
    is_inner = trees.left[every] >= 0
    inner_before = np.cumsum(is_inner) - is_inner
    index = inner_before - inner_before[first][of]
    child = np.where(is_inner, first[of] + 2 * index + 1, np.arange(len(every)))
    before, leaves = _count_leaves(child, level, is_inner)
    return _Nodes(every, of, first, depth, child, before, leaves)


def _count_leaves(
    child: NDArray[np.int64], level: NDArray[np.int64], is_inner: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the leaves left of each node in its tree, and the leaves under it."""
    leaves, before = np.ones(len(child), np.int64), np.zeros(len(child), np.int64)
    inner = np.nonzero(is_inner)[0]
    inner = inner[np.argsort(level[inner], kind="stable")]
    bounds = np.searchsorted(level[inner], np.arange(level.max(initial=0) + 2))
    parts = [inner[i:j] for i, j in zip(bounds, bounds[1:], strict=False)]
    for part in reversed(parts):
        leaves[part] = leaves[child[part]] + leaves[child[part] + 1]
    for part in parts:
        before[child[part]] = before[part]
        before[child[part] + 1] = before[part] + leaves[child[part]]
    return before, leaves


def _numbers(forest: Forest, nodes: _Nodes) -> _Table:
    """Return nodes of thresholds; a slot is a column with a kind."""
    trees, is_leaf = forest.trees, nodes.is_leaf
    kind = trees.kind[nodes.nodes].astype(np.int64)
    columns, slots, ends = _columns(trees, nodes)
    slot = np.where(kind >= Kind.CATEGORY_RIGHT, (columns + 1) | _CATEGORY, columns + 1)
    dtype = np.dtype(forest.row_dtype).newbyteorder("<")
    made = np.zeros(len(slot), [("threshold", dtype), ("slot", "<u4"), ("child", "<u4")])
    made["threshold"] = np.where(is_leaf, nodes.before, trees.threshold[nodes.nodes])
    made["slot"] = np.where(is_leaf, 0, slot)
    made["child"] = nodes.child
    empty = np.zeros(0, dtype)
    return _Table(0, len(slots), made, slots, ends, empty, empty)


def _bins(forest: Forest, nodes: _Nodes) -> _Table | None:
    """Return nodes of bins; None if there are categories or too many slots."""
    trees, is_inner = forest.trees, ~nodes.is_leaf
    columns, slots, ends = _columns(trees, nodes)
    if ends[Kind.NAN_ZERO] != len(slots):
        return None
    dtype = np.dtype(forest.row_dtype).newbyteorder("<")
    # Each cut once, by column and value.
    pairs = np.zeros(int(is_inner.sum()), [("column", "<i8"), ("threshold", dtype)])
    pairs["column"] = columns[is_inner]
    pairs["threshold"] = trees.threshold[nodes.nodes[is_inner]] + 0.0  # no negative zero
    cuts, place = np.unique(pairs, return_inverse=True)
    first = np.searchsorted(cuts["column"], np.arange(len(slots)))
    counts = np.diff([*first, len(cuts)])
    slots[:, 1] = counts
    num_slots = -(-counts // _MOST_CUTS)
    if num_slots.sum() > _MOST_SLOTS:
        return None
    first_slot = np.cumsum(num_slots) - num_slots + 1
    rank = place - first[pairs["column"]]
    slot = first_slot[pairs["column"]] + rank // _MOST_CUTS
    made = np.zeros(len(is_inner), [("slot", "<u2"), ("rank", "u1"), ("child", "u1")])
    made["rank"] = nodes.before
    made["child"] = nodes.child - np.arange(len(is_inner))
    made["slot"][is_inner], made["rank"][is_inner] = slot, rank % _MOST_CUTS
    fields = [("slot", "<u2"), ("rank", "u1"), ("leaves", "u1"), ("node", "<u2"), ("unused", "<u2")]
    inner = np.zeros(len(rank), fields)
    inner["slot"], inner["rank"] = slot, rank % _MOST_CUTS
    inner["node"] = (np.arange(len(is_inner)) - nodes.first[nodes.tree])[is_inner]
    inner["leaves"] = nodes.leaves[nodes.child[is_inner]]
    cut = np.ascontiguousarray(cuts["threshold"])
    return _Table(1, int(num_slots.sum()), made, slots, ends, cut, inner)


def _columns(trees: Trees, nodes: _Nodes) -> tuple[NDArray[np.int64], NDArray[Any], list[int]]:
    """Return the column of each node, the table of columns, and where each kind ends in it."""
    kind, feature = trees.kind[nodes.nodes].astype(np.int64), trees.feature[nodes.nodes]
    key = kind << 32 | np.maximum(feature, 0)
    distinct = np.unique(key[~nodes.is_leaf])
    table = np.stack([distinct & 0xFFFFFFFF, distinct * 0], axis=1).astype("<u4")
    ends = [int(np.searchsorted(distinct, (k + 1) << 32)) for k in range(10)]
    return np.searchsorted(distinct, key), table, ends


def _sets(sets: Sequence[NDArray[np.int64]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the table of sets, and their words."""
    table = np.zeros((len(sets), 2), "<u4")
    words = []
    for i, categories in enumerate(sets):
        bits = np.zeros((int(categories.max(initial=-1)) // 32 + 1) * 32, bool)
        bits[categories] = True
        words.append(np.packbits(bits, bitorder="little").view("<u4"))
        table[i] = sum(map(len, words[:-1])) if i == 0 else table[i - 1].sum(), len(words[-1])
    return table, np.concatenate([np.zeros(0, "<u4"), *words])


def _bytes(forest: Forest, table: _Table, tables: Sequence[NDArray[Any]]) -> bytes:
    types = (forest.row_dtype == "float64", forest.dtype == "float64", forest.link)
    sums, width = len(forest.base), forest.trees.value.shape[1]
    counts = (forest.num_features, table.num_slots, len(tables[1]), sums, width, forest.num_scores)
    more = (len(forest.trees.sets), table.layout, len(table.slots), forest.is_base_last)
    totals = (len(table.nodes), len(tables[4]), forest.divisor, forest.parameter)
    is_linear = forest.trees.linear is not None
    fields = (*types, *counts, *more, is_linear, *totals, *table.kind_ends)
    return joined(HEADER, (MAGIC, _VERSION), fields, tables)


def categories(values: NDArray[np.int64], where: str) -> NDArray[np.int64]:
    """Check the categories of a set.

    Raises ExportError if one is negative or too large.
    """
    if len(values) and not 0 <= values.min() <= values.max() < _MOST_CATEGORY:
        text = f"category {int(values.max())}, expected 0 to {_MOST_CATEGORY - 1}"
        raise ExportError(f"{where}: {text}")
    return values
