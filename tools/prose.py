"""Count wordings that make prose hard to read; prose.json says how many each file may have.

    python tools/prose.py              compare each file with its allowance (part of `make check`)
    python tools/prose.py FILE ...     show every finding in these files
    python tools/prose.py --update     lower the allowances to what is found; never raises one

Read are comments, string literals and documents, without code. A file that prose.json does not name
has an allowance of 0.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
ALLOWANCES = Path(__file__).with_suffix(".json")
FOLDERS = (
    "benchmarks",
    "docs",
    "importers",
    "examples",
    "packer",
    "runtime",
    "templates",
    "tests",
    "tools",
)
SUFFIXES = (".py", ".pyi", ".c", ".h", ".md")
# Generated, or other people's text; and this list.
SKIPPED = ("docs/reference/", "tests/data/", "tools/prose.py")

# What to write instead, and the wordings, in text whose white space is single blanks.
TICS = {
    "is stored, is located, is at": r"\b(lies?|lying)\b|\b(stands?|stood|standing)\b(?! for)",
    "after, following, backed by": r"\bbehind\b",
    "name the subject": r"(?:^|(?<=[.:;?!] ))What(ever)?\b[^.?]*(?=[.;:]|$)",
    "state it directly": r"\b(that|this) is (what|why|where|how|all)\b",
    "the caller, another library, no code": r"\b(who|whom)ever\b|\b(no|some|any)body\b",
    "separate, private, its": r"\bof (its|their|his|one's|your|our) own\b",
    "still, even so, anyway": r"\ball the same\b",
    "must be, will be": r"\b(is|are|was|were) (not )?to be\b",
    "drops, releases, closes": r"\blet(s|ting)? go of\b",
    "is removed, is freed, is closed": r"\b(go|goes|going|gone|went) away\b",
    "passes, re-exports, forwards": r"\bhand(s|ed|ing)? ((it|them|this) )?on\b",
    "the user's, the caller's": r"\b(his|hers?|him)\b",
    "is available, exists": r"\b(is|are|be|was|were) (not )?had\b",
    "returns, is restored": r"\b(come|comes|came|coming) back\b",
    "fails, stops": r"\b(break|breaks|broke|broken|breaking) off\b",
    "receives, is given": r"\b(is|are|was|were) told\b",
    "Return True if": r"^Whether\b",
    "name them": r"\bthose (that|who|which|of)\b",
    "is not a, there is no, has no": r"(?<!there )\b(is|are) (?-i:none|no)\b(?! (longer|more))",
    "the project's, other libraries'": r"\bof (ours|others|theirs|mine)\b",
}


class Finding(NamedTuple):
    """One wording, where it is, and what to write instead."""

    path: str
    line: int
    found: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.found!r}: {self.instead}"


def find(path: str, text: str) -> list[Finding]:
    """List the findings of a file."""
    read = {".py": texts_of_python, ".pyi": texts_of_python, ".md": texts_of_markdown}
    return [
        Finding(path, line, match[0][:40], instead)
        for line, prose in read.get(Path(path).suffix, texts_of_c)(text)
        for instead, wording in TICS.items()
        for match in re.finditer(wording, " ".join(prose.split()), re.IGNORECASE)
        if instead != "name the subject" or match[0][0] == "W"
    ]


def texts_of_python(text: str) -> Iterator[tuple[int, str]]:
    """Yield the comments, each run of lines as one text, and the string literals with a blank."""
    lines: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if lines and token.start[0] != last + 1:
                yield last - len(lines) + 1, " ".join(lines)
                lines = []
            lines.append(token.string.lstrip("#: "))
            last = token.start[0]
    yield last - len(lines) + 1, " ".join(lines)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def texts_of_c(text: str) -> Iterator[tuple[int, str]]:
    """Yield the comments, each run of // lines as one text, and strings with a blank."""
    pieces = r'/\*.*?\*/|(?://[^\n]*\n\s*)*//[^\n]*|"(?:[^"\\\n]|\\.)* (?:[^"\\\n]|\\.)*"'
    for match in re.finditer(pieces, text, re.DOTALL):
        yield text.count("\n", 0, match.start()) + 1, re.sub(r"^\W+|\n\s*//", " ", match[0])


def texts_of_markdown(text: str) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs, without code."""
    without = re.sub(
        r"^```.*?^```|`[^`]*`", lambda m: "\n" * m[0].count("\n"), text, flags=re.M | re.S
    )
    line = 1
    for paragraph in without.split("\n\n"):
        yield line, paragraph
        line += paragraph.count("\n") + 2


def files() -> Iterator[Path]:
    """Yield the files that are read."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    for path in sorted([*ROOT.glob("*.md"), *found]):
        name = path.relative_to(ROOT).as_posix()
        is_read = not name.startswith(SKIPPED) and "build" not in path.parts
        if path.suffix in SUFFIXES and is_read and path.is_file():
            yield path


def main(arguments: list[str]) -> int:
    """Compare, show or update; return the exit status."""
    named = [Path(name).resolve() for name in arguments if name != "--update"]
    findings: list[Finding] = []
    for path in named or files():
        name = path.relative_to(ROOT).as_posix()
        findings += find(name, path.read_text(encoding="utf-8"))
    if named:
        print(*findings, sep="\n")
        return 0
    counts = Counter(finding.path for finding in findings)
    is_new = not ALLOWANCES.exists()
    allowed = counts if is_new else json.loads(ALLOWANCES.read_text())
    if is_new or "--update" in arguments:
        lowered = {name: min(counts[name], most) for name, most in sorted(allowed.items())}
        kept = {name: count for name, count in lowered.items() if count}
        ALLOWANCES.write_text(json.dumps(kept, indent=2) + "\n")
    over = {name for name, count in counts.items() if count > allowed.get(name, 0)}
    for name in sorted(over):
        print(*(finding for finding in findings if finding.path == name), sep="\n")
        print(f"{name}: {counts[name]} findings, expected at most {allowed.get(name, 0)}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
