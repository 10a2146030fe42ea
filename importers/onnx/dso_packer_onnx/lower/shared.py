"""Functions that operators of different extents share, since each function takes time to compile.

Where many functions of a model differ in numbers only, these numbers become parameters. The kernels
that conv2d and its like call get them when they run in any case.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .code import named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..operator import Operator

# Kinds whose function has numbers as values only: none in a text or an extent of an array.
_STEMS = ("conv2d", "elementwise", "join_images", "matmul", "normalize", "transpose")
_LEAST = 4  # functions: fewer are not worth parameters
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")


def share_functions(operators: Sequence[Operator]) -> list[Operator]:
    """Let operators whose functions differ in numbers call one function with these numbers."""
    alike: dict[object, list[int]] = {}
    for index, one in enumerate(operators):
        if one.name.rpartition("_")[0] in _STEMS:
            head, function = _halves(one)
            alike.setdefault((head, _NUMBER.sub("0", function), one.symbols), []).append(index)
    made = list(operators)
    for places in alike.values():
        members = [operators[index] for index in places]
        if len({one.name for one in members}) >= _LEAST:
            for index, one in zip(places, _sharing(members), strict=True):
                made[index] = one
    return made


def _halves(operator: Operator) -> tuple[str, str]:
    """Return the code until the function's name, and its parameters and body."""
    head, _, function = operator.code.replace(operator.name, "@").rpartition(" @(")
    return head, function


def _sharing(members: Sequence[Operator]) -> list[Operator]:
    """Return operators with one function; places with equal numbers in each are one parameter."""
    columns = list(zip(*(_NUMBER.findall(_halves(one)[1]) for one in members), strict=True))
    passed = list(dict.fromkeys(column for column in columns if len(set(column)) > 1))
    places = iter(columns)

    def parameter(found: re.Match[str]) -> str:
        column = next(places)
        return f"number{passed.index(column)}" if column in passed else found[0]

    head, function = _halves(members[0])
    parameters = "".join(f"int64_t number{i}, " for i in range(len(passed)))
    stem = members[0].name.rpartition("_")[0]
    name, code = named(stem, f"{head} @({parameters}{_NUMBER.sub(parameter, function)}")
    rows = zip(*(map(int, column) for column in passed), strict=True)
    return [
        one._replace(name=name, code=code, numbers=numbers)
        for one, numbers in zip(members, rows, strict=True)
    ]
