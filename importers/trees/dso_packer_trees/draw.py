"""A tree as text, for readers of a library: its test in each line, then the branches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .forest import Kind

if TYPE_CHECKING:
    from .forest import Forest

_MOST_DEPTH, _MOST_CATEGORIES = 5, 8
_MISSING_LEFT = (Kind.NAN_LEFT, Kind.ZERO_LEFT, Kind.CATEGORY_LEFT)


def draw_tree(forest: Forest, tree: int = 0) -> str:
    """Return the first levels of a tree."""
    count = len(forest.trees.begins) - 1
    return "\n".join([f"tree {tree} of {count}", *_lines(forest, tree, 0, "", "", 0)])


def _lines(
    forest: Forest, tree: int, index: int, branch: str, indent: str, depth: int
) -> Iterator[str]:
    """Draw a node; `branch` is before it, `indent` before the lines under it."""
    trees = forest.trees
    node = int(trees.begins[tree]) + index
    if trees.left[node] < 0:
        yield branch + ", ".join(f"{value:.6g}" for value in trees.value[node])
        return
    if depth == _MOST_DEPTH:
        yield f"{branch}..."
        return
    yield branch + _test(forest, node)
    for child, word, bar in (
        (trees.left[node], "├ yes: ", "│ "),
        (trees.right[node], "└ no: ", "  "),
    ):
        yield from _lines(forest, tree, int(child), indent + word, indent + bar, depth + 1)


def _test(forest: Forest, node: int) -> str:
    trees, feature = forest.trees, int(forest.trees.feature[node])
    names, kind = forest.feature_names, Kind(int(trees.kind[node]))
    name = names[feature] if feature < len(names) else f"x[{feature}]"
    missing = " or missing" if kind in _MISSING_LEFT else ""
    if kind < Kind.CATEGORY_RIGHT:
        return f"{name} <= {trees.threshold[node]:.6g}{missing}"
    found = trees.sets[int(trees.threshold[node])]
    more = ", ..." if len(found) > _MOST_CATEGORIES else ""
    return f"{name} in {{{', '.join(map(str, found[:_MOST_CATEGORIES]))}{more}}}{missing}"
