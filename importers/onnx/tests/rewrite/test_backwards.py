"""Slices that run backwards."""

from __future__ import annotations

import pytest

from dso_packer_onnx.rewrite.backwards import gather_backwards

from ..support.rewriting import make, rewritten, unchanged

LEAST = -(2**63)
SLICE = """({kind}[batch,5,7] x) => ({kind}[] y)
    <int64[{n}] starts = {{{starts}}}, int64[{n}] ends = {{{ends}}}, int64[{n}] axes = {{{axes}}},
    int64[{n}] steps = {{{steps}}}> {{ y = Slice(x, starts, ends, axes, steps) }}"""


def text_of(kind: str, *bounds: tuple[int, int, int, int]) -> str:
    """Write a model of one Slice by its (start, end, axis, step)."""
    parts = [", ".join(map(str, part)) for part in zip(*bounds, strict=True)]
    names = ("starts", "ends", "axes", "steps")
    return SLICE.format(kind=kind, n=len(bounds), **dict(zip(names, parts, strict=True)))


@pytest.mark.parametrize(
    "bounds",
    [
        [(-1, LEAST, 1, -1)],
        [(6, 0, -1, -2)],
        [(-1, -4, 1, -1), (1, 100, 2, 2)],
        [(-1, LEAST, 1, -1), (100, -8, 2, -3)],
        [(3, 3, 1, -1)],
    ],
    ids=["all", "a part", "one of two", "both", "nothing"],
)
@pytest.mark.parametrize("kind", ["float", "int64"])
def test_a_slice_backwards_is_a_gather(bounds: list[tuple[int, int, int, int]], kind: str) -> None:
    """The last element before the first one can be included by a very small end."""
    found = rewritten(make(text_of(kind, *bounds)), gather_backwards)
    assert "Gather" in found.kinds
    assert found.kinds.count("Slice") == any(step > 0 for *_, step in bounds)


def test_other_slices_remain() -> None:
    """Forward ones, and a symbolic extent."""
    assert unchanged(make(text_of("float", (0, 3, 1, 1))), gather_backwards)
    assert unchanged(make(text_of("float", (-1, LEAST, 0, -1))), gather_backwards)
