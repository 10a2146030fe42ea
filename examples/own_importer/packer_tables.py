"""An importer of packer: a table of x and y as CSV becomes a C function of a library.

    pip install examples/own_importer
    packer export curve.so curve.csv --method nearest
    runtime.load("curve.so")["curve"](0.5)

packer.toml has it as `kind = "table"`, Python as `packer.from_table`.
"""

from __future__ import annotations

import csv
from pathlib import Path

import packer

CODE = """
static const double x[] = {{{x}}}, y[] = {{{y}}};
double {name}(double at) {{
  int i = 1;
  while (i < {last} && x[i] < at) i++;
  double part = (at - x[i - 1]) / (x[i] - x[i - 1]);
  part = part < 0 ? 0 : part > 1 ? 1 : part;
  return {result};
}}
"""
RESULTS = {
    "linear": "y[i - 1] + part * (y[i] - y[i - 1])",
    "nearest": "part < 0.5 ? y[i - 1] : y[i]",
}


def from_table(path, method="linear", *, progress=lambda step: None):
    """Make a module of a CSV file with two columns of numbers, x ascending."""
    progress("read the table")
    with Path(path).open(newline="") as file:
        rows = sorted((float(x), float(y)) for x, y in csv.reader(file))
    if len(rows) < 2 or method not in RESULTS:
        found = f"{len(rows)} rows" if len(rows) < 2 else repr(method)
        raise packer.ExportError(f"expected two rows and one of {[*RESULTS]}, found {found}")
    columns = {"x": ", ".join(str(x) for x, _ in rows), "y": ", ".join(str(y) for _, y in rows)}
    name = Path(path).stem
    code = CODE.format(**columns, name=name, last=len(rows) - 1, result=RESULTS[method])
    return packer.CSourceModule(code, functions={name: "double(double at)"})


def add_options(group):
    """Add the options of `packer export`."""
    group.add_argument("--method", metavar="NAME", help="linear or nearest")


IMPORTER = packer.Importer(
    "table",
    {".csv": None},
    from_table,
    [packer.Setting("method", "string", "Between two rows: `linear` or `nearest`.")],
    add_options,
    title="tables of x and y",
    text="a CSV file with two columns; its function has the name of the file",
)
