"""Draw what run.py --json wrote: bars per call and peer, and curves over the size of weights.

python benchmarks/figure.py SAMPLES.json... [--folder FOLDER]

The same samples give the same bytes. The pictures follow the reader's light or dark scheme.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Colour in the light scheme -> in the dark one, by its use; our bars have a strong colour.
PAGE, INK, QUIET = "#ffffff", "#1b1e24", "#565d6a"
OURS, OURS_KEPT, THEIRS, THEIRS_KEPT = "#c2410c", "#eeb08c", "#8a92a0", "#d3d6dc"
DARK = {
    PAGE: "#131417",
    INK: "#e6e8ec",
    QUIET: "#a3abb8",
    OURS: "#fb8a4c",
    OURS_KEPT: "#8a4a25",
    THEIRS: "#77808f",
    THEIRS_KEPT: "#3d424c",
}
# Curves, by the beginning of a row's name. Variants of one tool have one colour and other dashes.
CURVES = {
    "packer": OURS,
    "runtime": OURS,
    "cp": "#2563eb",
    "dlopen": "#2563eb",
    "TVM": "#7c3aed",
    ".incbin": "#15803d",
    "ld": "#0e7490",
    "xxd": "#a16207",
}
WAYS = (("-", "o"), ("--", "s"), (":", "^"), ("-.", "D"))
STYLE = {
    "svg.hashsalt": "dso-packer",
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",  # part of matplotlib; a reader's font is not wider
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": PAGE,
    "figure.facecolor": PAGE,
    "text.color": INK,
    "axes.titlecolor": INK,
    "axes.labelcolor": QUIET,
    "axes.edgecolor": QUIET,
    "xtick.color": QUIET,
    "ytick.color": INK,
    "legend.frameon": False,
}
UNITS = {"ms": 1e3, "us": 1e6, "ns": 1e9}
KEPT = ", GIL kept"
MIB = 1 << 20

Table = dict[str, Any]


def main() -> None:
    """Draw each figure whose subject was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("samples", nargs="+", type=Path, metavar="SAMPLES.json")
    parser.add_argument(
        "--folder", type=Path, default=Path("docs/images"), help="the folder for the figures"
    )
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    tables = [
        table
        for path in arguments.samples
        for table in json.loads(path.read_text(encoding="utf-8"))["tables"]
    ]
    for subject, (name, draw) in FIGURES.items():
        found = [table for table in tables if table["subject"] == subject and medians(table)]
        if found:
            path = arguments.folder / f"benchmark-{name}.svg"
            path.write_text(picture(draw, found), encoding="utf-8")
            print(path)


def picture(draw: Callable[[Sequence[Table]], Figure], tables: Sequence[Table]) -> str:
    """A figure as SVG without a date, whose colours a dark scheme replaces."""
    text = StringIO()
    with mpl.rc_context(STYLE):
        draw(tables).savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    rules = "".join(
        f'[style*="{what}: {light}"]{{{what}:{dark}!important}}'
        for light, dark in DARK.items()
        for what in ("fill", "stroke")
    )
    style = f"<style>@media(prefers-color-scheme:dark){{{rules}}}</style>"
    drawn = re.sub(r"\s*<!--.*?-->|(?<=\n) +", "", text.getvalue(), flags=re.DOTALL)
    drawn = drawn.replace("'DejaVu Sans'", "system-ui, 'DejaVu Sans'")
    return drawn.replace("<defs>", f"{style}\n<defs>", 1)


def draw_calls(tables: Sequence[Table]) -> Figure:
    """One panel per kind of call, each with a separate scale from 0."""
    rows = (len(tables) + 1) // 2
    figure = Figure(figsize=(9.6, 1.75 * rows + 0.4), layout="constrained")
    axes = figure.subplots(rows, 2, squeeze=False).flat
    for panel, table in zip(axes, tables, strict=False):
        draw_bars(panel, table)
    for panel in list(axes)[len(tables) :]:
        panel.set_visible(False)
    figure.suptitle(
        "GIL released, and pale beneath: GIL kept; median", fontsize=9, x=0.99, ha="right"
    )
    return figure


def draw_bars(axes: Axes, table: Table) -> None:
    """A group of bars per row; the same row with the GIL kept is below it."""
    times = medians(table)
    names = [name for name in times if not name.endswith(KEPT)]
    scale = UNITS[table["unit"]]
    for place, name in enumerate(names):
        colours = (OURS, OURS_KEPT) if is_ours(name) else (THEIRS, THEIRS_KEPT)
        found = [
            (times[row] * scale, colour)
            for row, colour in zip((name, name + KEPT), colours, strict=True)
            if row in times
        ]
        height = 0.8 / len(found)
        for line, (value, colour) in enumerate(found):
            y = place - 0.4 + height * (line + 0.5)
            axes.barh(y, value, height, color=colour)
            axes.text(value, y, f" {value:,.{0 if value >= 20 else 1}f}", va="center", fontsize=7)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_title(table["title"].removeprefix("call "))
    axes.set_xlabel(table["unit"])
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.12)


def draw_cold_start(tables: Sequence[Table]) -> Figure:
    """The tables, one below the other."""
    figure = Figure(figsize=(9.6, 2.6 * len(tables)), layout="constrained")
    for panel, table in zip(
        figure.subplots(len(tables), 1, squeeze=False).flat, tables, strict=True
    ):
        draw_bars(panel, table)
    return figure


def draw_weights(tables: Sequence[Table]) -> Figure:
    """Time and memory of export and load, over the size of the weights."""
    figure = Figure(figsize=(9.6, 7.2), layout="constrained")
    for row, (what, memory, of, place) in zip(
        figure.subplots(2, 2, sharex=True),
        (
            ("export", "peak", "peak memory of all its processes", "upper"),
            ("load", "growth", "memory that it adds", "lower"),
        ),
        strict=True,
    ):
        title = rf"{what}: (\d+) MiB of weights"
        draw_curves(row[0], tables, title, "seconds", 1.0)
        draw_curves(row[1], tables, title, memory, MIB)
        row[0].set_title(f"{what}: seconds")
        row[1].set_title(f"{what}: {of}, MiB")
        figure.legend(
            *row[0].get_legend_handles_labels(), loc=f"outside {place} center", ncols=4, fontsize=8
        )
    for axes in row:
        axes.set_xlabel("MiB of weights; both scales are logarithmic")
    return figure


def draw_curves(
    axes: Axes, tables: Sequence[Table], title: str, quantity: str, unit: float
) -> None:
    """A curve per row over the number in the title, which a regular expression finds."""
    sized = [
        (int(found[1]), table) for table in tables if (found := re.fullmatch(title, table["title"]))
    ]
    sized.sort(key=lambda item: item[0])
    curves: dict[str, list[tuple[int, float]]] = {}
    for size, table in sized:
        for name, value in medians(table, quantity).items():
            curves.setdefault(name, []).append((size, value / unit))
    drawn: list[str] = []
    for name in sorted(curves, key=lambda name: not is_ours(name)):
        colour = next(CURVES[start] for start in CURVES if name.startswith(start))
        dashes, mark = WAYS[drawn.count(colour)]
        drawn.append(colour)
        sizes, values = zip(*curves[name], strict=True)
        style = {"color": colour, "linestyle": dashes, "linewidth": 1.4}
        axes.plot(sizes, values, **style, marker=mark, markersize=4, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([size for size, _ in sized], [f"{size:,}" for size, _ in sized])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()


def medians(table: Table, quantity: str = "seconds") -> dict[str, float]:
    """A quantity of each measured row, by the row's name; seconds, or bytes."""
    return {
        row["name"].removesuffix(" (reference)"): median(
            sample[quantity] for sample in row["samples"]
        )
        for row in table["rows"]
        if row["samples"]
    }


def is_ours(name: str) -> bool:
    """Return True if a row is of this project."""
    return name.startswith(("runtime", "packer", "module.weights"))


# Subject -> the figure's name, and the function that draws it.
FIGURES = {
    "call": ("calls", draw_calls),
    "cold_start": ("cold-start", draw_cold_start),
    "weights": ("weights", draw_weights),
}

if __name__ == "__main__":
    main()
