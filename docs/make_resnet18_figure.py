"""Draw resnet18.svg: the tree of examples/resnet18, its blob, and the use of its memory.

Run it from anywhere: ``python docs/make_resnet18_figure.py``.
"""

from __future__ import annotations

import json
from math import prod
from typing import Any

from make_figures import HERE, WIDTH, box, draw_blob, draw_tree, picture, text

import runtime
from packer.project import read_project
from runtime.blob import parse

PROJECT = HERE.parent / "examples" / "resnet18" / "packer.toml"
LEFT, LANE, STEP = 118, 34, 33


def draw_storage(graph: dict[str, Any], top: float) -> list[str]:
    """Draw a lane per storage; a result occupies it from its call to its last reader."""
    nodes, storage = graph["nodes"], graph["attrs"]["storage_id"][1]
    nbytes = [4 * prod(shape) for shape in graph["attrs"]["shape"][1]]
    calls = [i for i, node in enumerate(nodes) if node["op"] == "tvm_op"]
    lanes = sorted({storage[i] for i in calls})
    column = {node: x for x, node in enumerate(calls)}
    parts = [text(24, top - 18, "memory: the storage of each result, over time", "title")]
    for y, lane in enumerate(lanes):
        size = max(nbytes[i] for i in calls if storage[i] == lane)
        parts.append(text(24, top + LANE * y + 19, f"{size / 1e6:.2f} MB", "mono"))
    for i in calls:
        readers = [column[j] for j in calls if i in [source for source, *_ in nodes[j]["inputs"]]]
        width = STEP * (max(readers, default=column[i]) + 1 - column[i]) - 3
        x, y = LEFT + STEP * column[i], top + LANE * lanes.index(storage[i])
        parts.append(box(x, y, width, LANE - 6, f"n{column[i] % 5}"))
        place = f'transform="translate({x + 20:g},{top + LANE * len(lanes) + 10:g}) rotate(-42)"'
        parts.append(f'<text {place} class="quiet end">{nodes[i]["name"]}</text>')
    return parts


def resnet18_figure() -> str:
    """Draw the whole figure as SVG text."""
    root = read_project(PROJECT).root
    data = runtime.serialize_module_to_bytes(root)
    notes = (
        "GraphExecutorFactory: the calls of the kernels",
        "_lib: the library itself, with the kernels as machine code",
        "safetensors: the packed weights, read in place",
    )
    parts = [
        *draw_tree(parse(data), 24, 52, 400),
        *(text(440, 80 + 26 * i, note) for i, note in enumerate(notes)),
        *draw_blob(parse(data), len(data), 24, 236, WIDTH - 48),
        *draw_storage(json.loads(root.get_source()), 346),
    ]
    title = (
        "A tree of a graph, a library and weights; the blob that stores it, nearly all of it"
        " weights; and the three storages that all results of the graph share"
    )
    return picture(title, 570, parts)


if __name__ == "__main__":
    (HERE / "resnet18.svg").write_text(resnet18_figure(), encoding="utf-8")
