"""Constant expressions: the compiler confirms their values."""

from __future__ import annotations

import pytest

from packer.declare.c.expression import evaluate

from .test_parser import compiles


@pytest.mark.parametrize(
    "text",
    [
        *("7", "010", "0x1F", "0b101", "1u << 5", "-7 / 2", "-7 % 3", "~0", "!3", "N + 1"),
        *("3 > 2 ? 5 : 6", "(1 + 2) * 3 - 4", "6 & 3 | 8 ^ 1", "2 >= 2 && 3 != 3", "1 == 1 || 0"),
        "+9ull >> 1",
    ],
)
def test_constant_expressions_have_the_value_of_the_compiler(text: str) -> None:
    """Operators and spellings of numbers."""
    value = evaluate(text.split(), {"N": 41}.get)
    assert compiles(f'enum {{ N = 41 }}; _Static_assert(({text}) == {value}, "");') == ""


@pytest.mark.parametrize(
    "text",
    ["sizeof ( int )", "1 / 0", "1 << 64", "1 << -1", "M", "f ( 1 )", "1.5", "( int ) 1", ") ("],
)
def test_other_expressions_have_no_value(text: str) -> None:
    """The compiler is asked then, or the extent is refused."""
    assert evaluate(text.split(), {"N": 41}.get) is None
