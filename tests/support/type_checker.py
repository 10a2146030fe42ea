"""mypy, run on programs of tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import runtime

_LINE = re.compile(r"(?P<file>[^:]+):(?P<line>\d+): error: (?P<text>.*)")
# An editable install, which mypy does not find by itself.
_SOURCES = Path(runtime.__file__).parent.parent


def errors_of(
    folder: Path, *files: str, options: tuple[str, ...] = ()
) -> dict[str, dict[int, str]]:
    """Return the errors of `mypy --strict` by file and line; several of a line are joined."""
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "--hide-error-context",
    ]
    environment = {name: value for name, value in os.environ.items() if name != "MYPYPATH"}
    if _SOURCES.name != "site-packages":
        environment["MYPYPATH"] = str(_SOURCES)
    done = subprocess.run(
        [*command, f"--cache-dir={folder / 'cache'}", *options, *files],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: dict[str, dict[int, str]] = defaultdict(dict)
    for line in done.stdout.splitlines():
        if match := _LINE.match(line):
            lines = found[match["file"]]
            number = int(match["line"])
            lines[number] = (
                f"{lines[number]}\n{match['text']}" if number in lines else match["text"]
            )
    return found
