"""Region: a range of a file, with the regions inside it.

Headers may be wrong. `nest` cuts each region to its parent and to the end of its predecessor, so
that the regions of one level never overlap. `fill` names the bytes between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

# More blocks in one bar would be too narrow to click: small neighbours become one group.
_MAX_BLOCKS = 64


@dataclass(slots=True)
class Region:
    """A range of a file."""

    name: str
    kind: str  # ``"segment"``, ``"section"``, ``"blob entry"``, ...
    # The purpose of its bytes, which selects the colour: ``"code"``, ``"constants"``, ...
    role: str
    level: int  # a region is inside regions of a lower level only
    offset: int
    nbytes: int
    about: str = ""
    entry: int | None = None  # the index of a blob entry
    children: list[Region] = field(default_factory=list)

    @property
    def end(self) -> int:
        """The offset after the last byte."""
        return self.offset + self.nbytes


def nest(root: Region, regions: Iterable[Region]) -> None:
    """Put regions into `root`, each into the smallest one around it; drop empty ones."""
    stack = [root]  # the regions around the current offset
    for region in sorted(regions, key=lambda r: (r.offset, r.level, -r.nbytes)):
        around = [parent for parent in stack if _may_hold(parent, region)]
        if around and _cut(region, around[-1]):
            around[-1].children.append(region)
            stack = [*around, region]


def _may_hold(parent: Region, region: Region) -> bool:
    return parent.level < region.level and region.offset < parent.end


def _cut(region: Region, parent: Region) -> bool:
    """Cut a region to the free end of its parent; return False if nothing is left of it."""
    free = parent.children[-1].end if parent.children else parent.offset
    start, end = max(region.offset, free), min(region.end, parent.end)
    if start < end:
        region.offset, region.nbytes = start, end - start
    return start < end


def fill(root: Region, gap: Callable[[Region, int, int], Region]) -> None:
    """Insert ``gap(parent, start, end)`` between the regions of every level."""
    pending = [root]
    while pending:
        parent = pending.pop()
        if parent.children:
            pending.extend(parent.children)
            parent.children = list(_filled(parent, gap))


def group(root: Region) -> None:
    """Limit the children of each region: runs of small ones get a common parent."""
    pending = [root]
    while pending:
        parent = pending.pop()
        if len(parent.children) > _MAX_BLOCKS:
            parent.children = list(_grouped(parent))
        pending.extend(parent.children)


def _filled(parent: Region, gap: Callable[[Region, int, int], Region]) -> Iterator[Region]:
    offset = parent.offset
    for child in parent.children:
        if child.offset > offset:
            yield gap(parent, offset, child.offset)
        yield child
        offset = child.end
    if offset < parent.end:
        yield gap(parent, offset, parent.end)


def _grouped(parent: Region) -> Iterator[Region]:
    """Keep large children; if none is large, form groups of equal length."""
    run: list[Region] = []
    large = parent.nbytes // _MAX_BLOCKS
    if all(child.nbytes <= large for child in parent.children):
        step = -(-len(parent.children) // _MAX_BLOCKS)
        for start in range(0, len(parent.children), step):
            yield _joined(parent, parent.children[start : start + step])
        return
    for child in parent.children:
        if child.nbytes > large:
            yield from [_joined(parent, run)] if run else []
            yield child
            run = []
        else:
            run.append(child)
    yield from [_joined(parent, run)] if run else []


def _joined(parent: Region, run: list[Region]) -> Region:
    if len(run) == 1:
        return run[0]
    entries = [region.entry for region in run if region.entry is not None]
    name = f"entries {entries[0]:,} to {entries[-1]:,}" if entries else f"{len(run):,} parts"
    start, nbytes = run[0].offset, run[-1].end - run[0].offset
    return Region(name, "group", parent.role, parent.level, start, nbytes, children=run)
