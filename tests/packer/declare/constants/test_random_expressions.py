"""Generated constant expressions: each value is the compiler's."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from packer.declare.c.expression import NotConstantError, Number, value_of
from packer.declare.c.scope import Scope
from packer.declare.c.tokens import tokens_of
from packer.declare.constants.confirmed import confirmations
from packer.declare.constants.found import Constants

from ....support.wrapped_library import gcc

EXAMPLES = int(os.environ.get("EXAMPLES", "3000"))
LITERALS = (
    *("0", "1", "7", "010", "0x7fffffff", "0x80000000", "2147483648", "0xffffffffffffffff"),
    *("5u", "3L", "9ULL", "0x7fffffffffffffffLL", "'a'", "'\\n'", "1.5", "0.1f", "2e10", "3.0L"),
)
TYPES = (
    "int",
    "unsigned",
    "size_t",
    "unsigned char",
    "short",
    "float",
    "double",
    "_Bool",
    "enum e",
)
NAMES = {"RED": Number("i32", 3), "BLUE": Number("i32", -2)}
BINARY = ("+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "<", ">=", "==", "!=", "&&", "||")


def expression(chosen: random.Random, depth: int) -> str:
    """Return an expression, whose operands are as deep at the most."""
    kind = chosen.randrange(10) if depth else 0
    if kind < 2:
        return chosen.choice((*LITERALS, "RED", "BLUE", f"sizeof({chosen.choice(TYPES)})"))
    inner = [expression(chosen, depth - 1) for _ in range(3)]
    if kind < 4:
        return f"{chosen.choice(('-', '~', '!', '+'))} {inner[0]}"
    if kind < 5:
        return f"({chosen.choice(TYPES)})({inner[0]})"
    if kind < 6:
        return f"({inner[0]} ? {inner[1]} : {inner[2]})"
    return f"({inner[0]} {chosen.choice(BINARY)} {inner[1]})"


@pytest.mark.parametrize("language", ["c", "cc"])
def test_the_compiler_confirms_each_value(language: str, tmp_path: Path) -> None:
    """Types decide the value: of overflow, shifts, comparisons of signs and conversions."""
    chosen = random.Random(38)
    source = "#include <stddef.h>\nenum e { RED = 3, BLUE = -2 };\n"
    scope = Scope(
        lambda: "typedef unsigned long size_t; enum e { RED = 3, BLUE = -2 };\n",
        is_cpp=language == "cc",
    )
    values: dict[str, Number] = {}
    for index in range(EXAMPLES):
        text = expression(chosen, 4)
        if language == "cc":
            text = text.replace("_Bool", "bool")
        tokens = [token.text for token in tokens_of(text)]
        try:
            value = value_of(tokens, NAMES.get, scope.type_code, is_cpp=scope.is_cpp)
        except NotConstantError:
            continue
        assert isinstance(value, Number)
        values[f"K{index}"] = value
        source += f"#define K{index} {text}\n"
    assert len(values) > EXAMPLES // 4
    path = tmp_path / f"values.{language}"
    path.write_text(source + confirmations(Constants(values), language))
    kind = {"c": "c", "cc": "c++"}[language]
    made = gcc("-w", "-fpermissive", "-x", kind, "-c", path, "-o", tmp_path / "values.o")
    assert made.stderr == ""
