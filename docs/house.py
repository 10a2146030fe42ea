"""The figure of the house in docs/architecture.md, from the tables that tests of layers read."""

import ast
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/architecture.md"
_FLOORS = ROOT / "tests/test_layering.py"
_FOLDERS = ROOT / "tests/native/test_folders.py"
_BEGIN, _END = "<!-- house:", "<!-- end -->"


def page() -> str:
    """Return the page with the figure as the tables have it."""
    text = PAGE.read_text(encoding="utf-8")
    head, begin, rest = text.partition(_BEGIN)
    line, _, _ = rest.partition("\n")
    _, end, tail = rest.partition(_END)
    return f"{head}{begin}{line}\n```\n{_figure()}```\n{end}{tail}"


def _figure() -> str:
    lines = []
    for package, floors in _table(_FLOORS, "FLOORS").items():
        lines += [f"{package}, each row imports rows below it only"]
        lines += [f"  {_rooms(package, rooms)}" for rooms in reversed(floors)]
    lines += ["runtime/native, each folder and the folders that it includes"]
    included = _table(_FOLDERS, "MAY_INCLUDE")
    lines += [f"  {name + '/':11} {' '.join(sorted(included[name]))}" for name in [*included][::-1]]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _rooms(package: str, rooms: set[str]) -> str:
    """Return the rooms of a floor, folders with a slash."""
    home = ROOT / package if package == "packer" else ROOT / package / package
    return "  ".join(f"{room}/" if (home / room).is_dir() else room for room in sorted(rooms))


def _table(path: Path, name: str) -> Any:
    """Return a table of a test without an import of it: its value is a literal, but for set()."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return eval(ast.unparse(node.value), {"__builtins__": {"set": set}})
    raise SystemExit(f"{path}: has no table {name}")
