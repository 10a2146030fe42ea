"""The C compiler as oracle of generated declarations: its types, and its verdict on calls."""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

Value = int | float | bool

HEADERS = "#include <stdbool.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <sys/types.h>\n"
# Types of every size, signedness and kind, in the spellings of users.
TYPEDEFS = """
typedef unsigned short word;
typedef word register_value;
typedef long long ticks;
typedef float sample;
typedef double real;
enum color { RED, GREEN = 7 };
typedef enum { LOW = -1, HIGH = 1 } level;
"""
SPELLINGS = (
    *("signed char", "short", "int", "long", "long long", "unsigned char", "unsigned short"),
    *("unsigned", "unsigned long", "unsigned long long", "bool", "float", "double"),
    *("int8_t", "uint16_t", "int32_t", "int64_t", "uint64_t", "size_t", "ssize_t", "off_t"),
    *("word", "register_value", "ticks", "sample", "real", "enum color", "level"),
)


class Meaning(NamedTuple):
    """The size of a type, and whether it is signed, a floating type or bool."""

    nbytes: int
    is_signed: bool
    is_floating: bool
    is_bool: bool


def meanings(folder: Path) -> dict[str, Meaning]:
    """Ask the compiler for the meaning of every spelling."""
    lines = "".join(
        f'  printf("%zu %d %d %d\\n", sizeof({t}), ({t})-1 < 0, ({t})0.5 == 0.5,'
        f" _Generic(({t})0, bool: 1, default: 0));\n"
        for t in SPELLINGS
    )
    text = f"{HEADERS}{TYPEDEFS}int main(void) {{\n{lines}}}\n"
    rows = _run(_build(folder, text, "-w")).split("\n")
    found = (map(int, row.split()) for row in rows if row)
    return {
        spelling: Meaning(nbytes, bool(signed), bool(floating), bool(truth))
        for spelling, (nbytes, signed, floating, truth) in zip(SPELLINGS, found, strict=True)
    }


class Function(NamedTuple):
    """A C function that returns one of its arguments."""

    name: str
    types: tuple[str, ...]
    returned: int

    @property
    def result(self) -> str:
        """The C type of the result."""
        return self.types[self.returned]

    @property
    def declaration(self) -> str:
        """The type of the function, as packer takes it."""
        return f"{self.result}({', '.join(f'{t} a{i}' for i, t in enumerate(self.types))})"

    @property
    def definition(self) -> str:
        """The function in C."""
        head = self.declaration.replace("(", f" {self.name}(", 1)
        unused = "".join(f"(void)a{i}; " for i in range(len(self.types)))
        return f"{head} {{ {unused}return a{self.returned}; }}\n"


class Verdict(NamedTuple):
    """The compiler accepts a call without a warning that a value changes, and its result."""

    is_accepted: bool
    result: Value


def verdicts(
    folder: Path,
    known: dict[str, Meaning],
    calls: Sequence[tuple[Function, Sequence[Value]]],
) -> list[Verdict]:
    """Compile and run calls with literal arguments, one argument on each line."""
    functions = {function.name: function for function, _ in calls}.values()
    lines = [HEADERS, TYPEDEFS, *(function.definition for function in functions)]
    lines.append("int main(void) {\n")
    places: dict[int, tuple[int, bool]] = {}
    number = 1000  # beyond every line above
    for index, (function, values) in enumerate(calls):
        result = known[function.result]
        way = ("%.17g", "(double)") if result.is_floating else ("%lld", "(long long)")
        lines.append(f'  printf("{way[0]}\\n", {way[1]}{function.name}(\n')
        for i, value in enumerate(values):
            number += 1
            places[number] = (index, known[function.types[i]].is_floating)
            comma = "," if i + 1 < len(values) else "));"
            lines.append(f"#line {number}\n{_literal(value)}{comma}\n")
    lines.append("}\n")
    made = _build(folder, "".join(lines), "-Wconversion", "-Wsign-conversion", "-Woverflow")
    refused = _refused(made.stderr, places)
    results = _run(made).split("\n")
    return [
        Verdict(i not in refused, _value(results[i], known[function.result]))
        for i, (function, _) in enumerate(calls)
    ]


def _refused(stderr: str, places: dict[int, tuple[int, bool]]) -> set[int]:
    """The calls with a value that the compiler says it changes; rounding does not count."""
    refused = set()
    for line, warning in re.findall(r"^\S+?:(\d+):\d+: warning: (.*)", stderr, re.MULTILINE):
        index, is_floating = places[int(line)]
        if not is_floating or re.search(r"to '[+-]Inf", warning):
            refused.add(index)
    return refused


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return f"(bool){int(value)}"
    if isinstance(value, float):
        special = {math.inf: "__builtin_inf()", -math.inf: "-__builtin_inf()"}
        if math.isnan(value):
            return '__builtin_nan("")'
        return special.get(value) or repr(value)
    if value >= 2**63:
        return f"{value}ULL"
    return f"{value}LL" if value > -(2**63) else f"({value + 1}LL - 1)"


def _value(text: str, meaning: Meaning) -> Value:
    if meaning.is_floating:
        return float(text)
    value = int(text)
    return value if meaning.is_signed or value >= 0 else value + 2**64


class _Made(NamedTuple):
    program: Path
    stderr: str


def _build(folder: Path, text: str, *options: str) -> _Made:
    source, program = folder / "verdict.c", folder / "verdict"
    source.write_text(text)
    command: Iterable[str] = ["gcc", "-std=gnu11", *options, str(source), "-o", str(program)]
    made = subprocess.run(command, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
    assert made.returncode == 0, made.stderr
    return _Made(program, made.stderr)


def _run(made: _Made) -> str:
    return subprocess.run([made.program], capture_output=True, text=True, check=True).stdout
