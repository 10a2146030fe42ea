# ruff: noqa: E501
"""The page docs/declarations.md: one row for each declaration of tests/data/declarations.py."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests" / "data"))

from declarations import PRELUDE, SECTIONS, Row

_HEAD = """\
# Declarations

Everyday C declarations, and what Python passes and gets. `packer export` reads them from a source or a
header. A second line has the options that the row needs; after "instead" it declares what the prototype
alone cannot, and the export says so. Each row is a test, with cffi's result for the same call
([rows](../tests/data/declarations.py)). Declarations and options: [functions.md](functions.md).

The rows share these types:

```c
{types}```
"""


def page() -> str:
    """Return the text of the page."""
    parts = [_HEAD.format(types=_types())]
    for title, rows in SECTIONS.items():
        parts += [f"\n## {title}\n", "| C | Python | result |", "|---|---|---|"]
        parts += [_row(row) for row in rows]
    return "\n".join(parts) + "\n"


def _types() -> str:
    return PRELUDE.partition("\n\n")[2]


def _row(row: Row) -> str:
    cells = ["<br>".join(_declared(row)), _code(row.python), _result(row)]
    return f"| {' | '.join(cells)} |"


def _declared(row: Row) -> Iterator[str]:
    """Yield the prototype, and how it is declared if not so."""
    yield _code(row.prototype)
    options = {key: value for key, value in row.options.items() if key != "name"}
    if options:
        name = row.options.get("name", row.name)
        text = ", ".join(f"{key} = {json.dumps(value)}" for key, value in options.items())
        text = text.replace('{"by": 1.0}', "{ by = 1.0 }")
        yield f"{'instead: ' if row.refused else ''}{_code(f'{name} = {{ {text} }}')}"


def _result(row: Row) -> str:
    if not row.result.startswith("raises "):
        return _code(row.result)
    kind = row.result.removeprefix("raises ").partition(":")[0]
    return f"raises {kind}"


def _code(text: str) -> str:
    return f"`{text.replace('|', chr(92) + '|')}`"
