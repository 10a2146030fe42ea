"""Draw storage.svg: the tree, the arrays and the blob of a golden file.

Run it from anywhere: ``python docs/make_figures.py``. The same blob gives the same picture.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from runtime.blob import Blob, parse

HERE = Path(__file__).parent
BLOB = HERE.parent / "tests" / "data" / "golden" / "g2_diamond_dso_bottom.bin"

WIDTH = 920
NODE_HEIGHT = 40
CELL = 46
STYLE = """
text { font: 14px system-ui, "Liberation Sans", sans-serif; fill: #1b1e24; }
.mono { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 13px; }
.quiet { fill: #565d6a; font-size: 12px; }
.title { font-weight: 600; }
.middle { text-anchor: middle; }
.end { text-anchor: end; }
rect { stroke: #8a92a0; fill: #e3e4e9; }
.edge { stroke: #565d6a; stroke-width: 1.5; fill: none; }
.head { fill: #565d6a; }
.n0 { fill: #cfdefa; } .n1 { fill: #d2ecd6; } .n2 { fill: #fbe0c3; }
.n3 { fill: #e2d6fb; } .n4 { fill: #cdebef; } .empty { fill: none; }
.page { fill: #ffffff; stroke: none; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e8ec; } .quiet { fill: #a3abb8; }
  rect { stroke: #6c7582; fill: #3d4047; } .page { fill: #131417; }
  .edge { stroke: #a3abb8; } .head { fill: #a3abb8; }
  .n0 { fill: #213f70; } .n1 { fill: #1f4a30; } .n2 { fill: #5f3d16; }
  .n3 { fill: #493485; } .n4 { fill: #164b54; } .empty { fill: none; }
}
"""


def text(x: float, y: float, content: object, kind: str = "") -> str:
    """Put text on its baseline."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(str(content))}</text>'


def box(x: float, y: float, width: float, height: float, kind: str = "") -> str:
    """Draw a rectangle."""
    size = f'width="{width:g}" height="{height:g}"'
    return f'<rect x="{x:g}" y="{y:g}" {size} rx="4" class="{kind}"/>'


def depths(children: list[tuple[int, ...]]) -> list[int]:
    """The length of the longest path from the root to each module; parents have lower indices."""
    found = [0] * len(children)
    for index, row in enumerate(children):
        for child in row:
            found[child] = max(found[child], found[index] + 1)
    return found


def _width(name: str) -> int:
    """The width in pixels of a box with a name."""
    return 8 * len(name) + 16


def draw_tree(blob: Blob, left: float, top: float, width: float) -> list[str]:
    """Draw the modules, with the root at the top."""
    children, names = blob.children(), [entry.key for entry in blob.nodes]
    rows: dict[int, list[int]] = {}
    for index, depth in enumerate(depths(children)):
        rows.setdefault(depth, []).append(index)
    places = {
        index: (left + width * (2 * i + 1) / (2 * len(row)), top + 62 * depth)
        for depth, row in rows.items()
        for i, index in enumerate(row)
    }
    parts = [text(left, top - 16, "import tree", "title")]
    for index, row in enumerate(children):
        for child in row:
            (x, y), (end, below) = places[index], places[child]
            path = f"M{x:g},{y + NODE_HEIGHT:g} L{end:g},{below:g}"
            parts.append(f'<path d="{path}" class="edge" marker-end="url(#head)"/>')
    for index, (x, y) in places.items():
        wide = max(96, _width(names[index]))
        parts.append(box(x - wide / 2, y, wide, NODE_HEIGHT, f"n{index}"))
        parts.append(text(x, y + 17, names[index], "mono middle"))
        parts.append(text(x, y + 33, f"module {index}", "quiet middle"))
    return parts


def draw_array(name: str, values: list[tuple[int, str]], left: float, top: float) -> list[str]:
    """Draw an array: an index above each value."""
    parts = [text(left, top, name, "mono title")]
    for i, (value, kind) in enumerate(values):
        x = left + i * CELL
        parts.append(text(x + CELL / 2, top + 22, i, "quiet middle"))
        parts.append(box(x, top + 28, CELL - 4, 30, kind))
        parts.append(text(x + CELL / 2 - 2, top + 48, value, "mono middle"))
    return parts


def draw_arrays(blob: Blob, left: float, top: float) -> list[str]:
    """Draw the CSR arrays; a child index has the colour of the child."""
    pointers, indices = blob.import_tree_row_ptr, blob.import_tree_child_indices
    assert pointers is not None
    assert indices is not None
    rows = [(value, f"n{i}" if i < len(pointers) - 1 else "") for i, value in enumerate(pointers)]
    shown = [(value, f"n{value}") for value in indices]
    return [
        *draw_array("import_tree_row_ptr", rows, left, top),
        *draw_array("import_tree_child_indices", shown, left, top + 92),
        text(left, top + 180, "The imports of module i are"),
        text(left, top + 202, "child_indices[row_ptr[i] : row_ptr[i + 1]]", "mono"),
        text(left, top + 230, _example(pointers, indices), "quiet"),
    ]


def _example(pointers: tuple[int, ...], indices: tuple[int, ...]) -> str:
    start, end = pointers[0], pointers[1]
    found = " and ".join(map(str, indices[start:end]))
    return f"Module 0: child_indices[{start}:{end}], modules {found}."


def draw_blob(blob: Blob, nbytes: int, left: float, top: float, width: float) -> list[str]:
    """Draw the bytes of the symbol; the widths show the sizes."""
    parts = [text(left, top - 30, "__tvm_dev_mblob", "mono title")]
    parts.append(
        text(left + 134, top - 30, f"{nbytes + 8} bytes; offsets count from after nbytes", "quiet")
    )
    fields = [("nbytes", 8, "", ""), ("count", 8, "", "0x0")]
    for entry in blob.entries:
        kind = f"n{blob.nodes.index(entry)}" if entry in blob.nodes else ""
        fields.append((entry.key, entry.nbytes, kind, hex(entry.offset)))
    least = [max(56, _width(name)) for name, *_ in fields]
    scale = (width - sum(least)) / (nbytes + 8)
    x = left
    for narrow, (name, size, kind, offset) in zip(least, fields, strict=True):
        w = narrow + size * scale
        parts.append(box(x, top, w - 3, 46, kind))
        parts.append(text(x + w / 2 - 2, top + 20, name, "mono middle"))
        parts.append(text(x + w / 2 - 2, top + 37, f"{size} B", "quiet middle"))
        parts.append(text(x, top - 6, offset, "quiet"))
        x += w
    return parts


def storage_figure() -> str:
    """Draw the whole figure as SVG text."""
    data = BLOB.read_bytes()
    blob = parse(data)
    parts = [
        *draw_tree(blob, 24, 52, 300),
        *draw_arrays(blob, 390, 36),
        *draw_blob(blob, len(data), 24, 362, WIDTH - 48),
    ]
    title = (
        "A tree of five modules, the two arrays that store it, and the blob"
        " with an entry for each module and one for the arrays"
    )
    return picture(title, 430, parts)


def picture(title: str, height: int, parts: list[str]) -> str:
    """Join the parts of a figure; `title` describes it for screen readers."""
    head = '<path d="M0,0 L9,4.5 L0,9 z" class="head"/>'
    marker = '<marker id="head" markerWidth="9" markerHeight="9" refX="9" refY="4.5" '
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" role="img" aria-labelledby="title">',
            f'<title id="title">{title}</title>',
            f"<style>{STYLE}</style>",
            f'<defs>{marker}orient="auto" markerUnits="userSpaceOnUse">{head}</marker></defs>',
            f'<rect width="{WIDTH}" height="{height}" class="page"/>',
            *parts,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    (HERE / "storage.svg").write_text(storage_figure(), encoding="utf-8")
