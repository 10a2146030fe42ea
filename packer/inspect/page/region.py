"""Region: a range of a file, with the regions inside it.

Headers may lie. `nest` cuts each region to the one around it and to what its neighbours have left,
so that the regions of one level never overlap; `fill` names what is between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

# More blocks than this in one bar are too narrow to hit: small neighbours become one group.
_MAX_BLOCKS = 64


@dataclass(slots=True)
class Region:
    """A range of a file.

    Attributes
    ----------
    kind : str
        In words: ``"segment"``, ``"section"``, ``"blob entry"``.
    role : str
        What its bytes are for, and so its colour: ``"code"``, ``"constants"``, ...
    level : int
        A region lies only in regions of a lower level.
    entry : int or None
        For a blob entry, which.
    """

    name: str
    kind: str
    role: str
    level: int
    offset: int
    nbytes: int
    about: str = ""
    entry: int | None = None
    children: list[Region] = field(default_factory=list)

    @property
    def end(self) -> int:
        """The offset behind the last byte."""
        return self.offset + self.nbytes


def nest(root: Region, regions: Iterable[Region]) -> None:
    """Put regions into `root`, each into the smallest one that holds it; empty ones go."""
    stack = [root]  # the regions around the place that is reached
    for region in sorted(regions, key=lambda r: (r.offset, r.level, -r.nbytes)):
        around = [parent for parent in stack if _may_hold(parent, region)]
        if around and _cut(region, around[-1]):
            around[-1].children.append(region)
            stack = [*around, region]


def _may_hold(parent: Region, region: Region) -> bool:
    return parent.level < region.level and region.offset < parent.end


def _cut(region: Region, parent: Region) -> bool:
    """Cut a region to what is left of its parent; say whether anything is left of it."""
    free = parent.children[-1].end if parent.children else parent.offset
    start, end = max(region.offset, free), min(region.end, parent.end)
    if start < end:
        region.offset, region.nbytes = start, end - start
    return start < end


def fill(root: Region, gap: Callable[[Region, int, int], Region]) -> None:
    """Put what ``gap(parent, start, end)`` makes between the regions of every level."""
    pending = [root]
    while pending:
        parent = pending.pop()
        if parent.children:
            pending.extend(parent.children)
            parent.children = list(_filled(parent, gap))


def group(root: Region) -> None:
    """Let no region have more children than can be shown: runs of small ones get a parent."""
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
    """Large children stay; where none is large, equal parts."""
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
