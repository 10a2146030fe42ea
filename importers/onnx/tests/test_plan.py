"""Values that are alive together do not overlap, and the memory is close to the least possible."""

from __future__ import annotations

import random

import pytest

from dso_packer_onnx.operator import Operator
from dso_packer_onnx.plan import Span, pack_spans, plan_memory

from .support.hand_made import add, scale, value, view, weight


def test_spans_that_overlap_in_time_do_not_share_bytes() -> None:
    """Random spans: no two overlap in both, and offsets are multiples of 64."""
    generator = random.Random(1)
    for _ in range(50):
        spans = []
        for _ in range(generator.randrange(1, 40)):
            first = generator.randrange(20)
            nbytes = generator.choice([0, 1, 64, 100, 1000, 4096])
            spans.append(Span(first, first + generator.randrange(6), nbytes))
        offsets, total = pack_spans(spans)
        for i, a in enumerate(spans):
            assert offsets[i] % 64 == 0 and offsets[i] + a.nbytes <= total
            for j, b in enumerate(spans[:i]):
                apart = a.last < b.first or b.last < a.first
                before = offsets[i] + a.nbytes <= offsets[j] or offsets[j] + b.nbytes <= offsets[i]
                assert apart or before


def test_a_chain_needs_the_memory_of_its_two_largest_neighbours() -> None:
    """A value is dead after its last reader; outputs are elsewhere."""
    x, y = value("x", 16), value("y", 16)
    chain = [x, *(value(f"v{i}", 16 * (1 + i % 2)) for i in range(30)), y]
    operators = [Operator("f", "code", (a,), (b,)) for a, b in zip(chain, chain[1:], strict=False)]
    plan = plan_memory(operators, [y], {})
    assert plan.nbytes == 64 * (1 + 2)
    assert plan.open_nbytes == ""
    assert y not in plan.places and x not in plan.places


def test_a_residual_keeps_its_value_alive() -> None:
    """v0 is read by the last operator, so nothing overwrites it."""
    x, y, w = value("x", 16), value("y", 16), weight("w", [1.0] * 16)
    v = [value(f"v{i}", 16) for i in range(4)]
    operators = [add(x, w, v[0]), add(v[0], w, v[1]), add(v[1], w, v[2]), add(v[2], v[0], v[3])]
    plan = plan_memory([*operators, add(v[3], w, y)], [y], {})
    assert plan.nbytes == 3 * 64
    assert plan.places[v[0]].offset not in {plan.places[one].offset for one in v[1:3]}
    assert plan.last_uses[v[0]] == 3


def test_workspaces_share_memory_with_values_that_are_dead() -> None:
    """A workspace lives for one call."""
    x, y, factor = value("x", "batch", 16), value("y", "batch", 16), weight("w", [2.0])
    v = value("v", "batch", 16)
    plan = plan_memory([scale(x, factor, v), scale(v, factor, y)], [y], {})
    assert plan.workspaces[0] == plan.workspaces[1] == ("64 * n_batch", True, 0)
    assert plan.places == {v: ("0", True, 0)}
    assert (plan.nbytes, plan.open_nbytes) == (0, "128 * n_batch")


def test_values_that_grow_alike_are_planned_for_one_entry() -> None:
    """Their offsets are multiples of one entry, rounded up to 64 bytes."""
    x, y = value("x", "batch", 3), value("y", "batch", 3)
    v = [value(f"v{i}", "batch", 3) for i in range(5)]
    chain = [x, *v, y]
    operators = [Operator("f", "code", (a,), (b,)) for a, b in zip(chain, chain[1:], strict=False)]
    plan = plan_memory(operators, [y], {})
    assert (plan.nbytes, plan.open_nbytes) == (0, "128 * n_batch")


def test_values_of_different_open_extents_share_slots() -> None:
    """A slot is as large as its largest value, in each call; values that are alive are apart."""
    x, y = value("x", "n", 8), value("y", "m", 8)
    sizes = [("n", 8), ("m", 8), ("n", "m"), ("n", 8), ("m", 8)]
    v = [value(f"v{i}", *size) for i, size in enumerate(sizes)]
    chain = [x, *v, y]
    operators = [Operator("f", "code", (a,), (b,)) for a, b in zip(chain, chain[1:], strict=False)]
    plan = plan_memory(operators, [y], {})
    assert all(plan.places[a] != plan.places[b] for a, b in zip(v, v[1:], strict=False))
    assert len({plan.places[one] for one in v}) == 2
    assert plan.open_nbytes.count("n_up") == 2


def test_a_view_keeps_its_source_alive() -> None:
    """A view of a view has the memory of the first value."""
    x, y, w = value("x", 4, 4), value("y", 16), weight("w", [1.0] * 16)
    a, b, c, d = value("a", 4, 4), value("b", 16), value("c", 2, 8), value("d", 16)
    operators = [add(x, w, a), view(a, b), view(b, c), add(x, w, d), add(c, d, y)]
    plan = plan_memory(operators, [y], {})
    assert set(plan.places) == {a, d}
    assert plan.places[a] != plan.places[d]
    assert plan.source(c) is a


@pytest.mark.parametrize("count", [2000])
def test_many_values_are_planned_quickly(count: int) -> None:
    """A long chain with residuals; the plan is as small as for a short one."""
    x, y = value("x", 16), value("y", 16)
    chain = [x, *(value(f"v{i}", 16) for i in range(count)), y]
    operators = [
        Operator("f", "code", (a, chain[max(0, i - 3)]), (b,))
        for i, (a, b) in enumerate(zip(chain, chain[1:], strict=False))
    ]
    assert plan_memory(operators, [y], {}).nbytes == 5 * 64
