"""tools/prose.py: which wordings it finds, and where it reads."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from .support.paths import ROOT

FIND = runpy.run_path(str(ROOT / "tools/prose.py"))["find"]

PYTHON = '''
"""Whether a file lies here."""
# The first line of a comment, which is
# to be read with the second.
name = lies  # code is not prose
raise ValueError(f"{path}: nobody reads {behind}; what is it?", "lies")
'''
C = """
/* Whatever it holds goes
   away. */
int lies; // one line that lets
// go of an object
const char *text = "nothing is told", *word = "lies";
"""
MARKDOWN = """
A paragraph of his, with `lies` and

```
lies behind
```

What is this? What is lent stays.

Those that remain are none of ours; there is no loader, and it is no longer a part: this is None.
"""


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.py", PYTHON, {(2, "lies"), (2, "Whether"), (3, "is to be"), (6, "nobody")}),
        ("a.c", C, {(2, "Whatever it holds goes away"), (2, "goes away"), (4, "lets go of")}),
        (
            *("a.md", MARKDOWN),
            {(1, "his"), (8, "What is lent stays")}
            | {(10, wording) for wording in ("Those that", "are none", "of ours")},
        ),
    ],
)
def test_prose_is_read_and_code_is_not(path, text, expected) -> None:
    """Comments, strings with a blank and paragraphs, each wording with its line."""
    found = {(line, wording) for _, line, wording, _ in FIND(path, text)}
    assert expected <= found
    assert not {wording for _, wording in found} - {w for _, w in expected} - {"is told"}


def test_every_allowance_is_of_a_file() -> None:
    """prose.json has no row for a file that was moved or removed."""
    import json

    rows = json.loads((ROOT / "tools/prose.json").read_text())
    assert not [name for name in rows if not Path(ROOT, name).is_file()]
