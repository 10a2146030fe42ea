"""Wrappers called with arguments of any kind: each call returns a result or one error."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ...support.every_code import DECLARATIONS, CodesLibrary, array, raw_bytes
from ...support.wrapped_library import NONE, Any16, floating, heap, integer, small, tensor

BUFFER = (ctypes.c_double * 4096)()
DTYPES = [(2, 64, 1), (2, 32, 1), (1, 8, 1), (0, 8, 1), (6, 8, 1), (5, 128, 1), (0, 64, 1)]
# They read addresses that callers pass, or keep what a callback was called with.
UNSAFE = {"counter_next", "counter_free", "later", "elsewhere"}
NAMES = [declaration.name for declaration in DECLARATIONS if declaration.name not in UNSAFE]
COUNTS = {declaration.name: len(declaration.passed) for declaration in DECLARATIONS}


def _tensor(shape: list[int], dtype: tuple[int, int, int], strided: bool, is_object: bool) -> Any16:
    strides = tuple(range(1, len(shape) + 1)) if strided else None
    data = ctypes.addressof(BUFFER)
    return tensor(tuple(shape), dtype, strides=strides, data=data, as_object=is_object)


NUMBERS = st.one_of(
    st.integers(-(2**63), 2**64 - 1).map(integer),
    st.integers(-3, 9).map(integer),
    st.floats().map(floating),
    st.sampled_from([Any16(2, 0, 0), Any16(2, 0, 1)]),
)
TEXTS = st.one_of(
    st.binary(max_size=7).map(small),
    st.binary(max_size=40).map(heap),
    st.binary(max_size=40).map(raw_bytes),
    st.just(small(b"12345678", 8)),
)
TENSORS = st.builds(
    _tensor,
    st.lists(st.integers(0, 7), max_size=3),
    st.sampled_from(DTYPES),
    st.booleans(),
    st.booleans(),
)
ODD = st.sampled_from([NONE, Any16(5), Any16(6), Any16(9), Any16(12, 9), Any16(66), Any16(71)])
PLAIN = st.one_of(NUMBERS, TEXTS, TENSORS, ODD)
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=6).map(lambda v: array(*v)))


@st.composite
def calls(draw: Any) -> tuple[str, list[Any16], Any16]:
    """A function, its arguments, and what its callbacks return."""
    name = draw(st.sampled_from(NAMES))
    count = max(0, COUNTS[name] + draw(st.sampled_from([0] * 12 + [-1, 1])))
    value = st.one_of(VALUES, st.just(Any16(68)))
    return name, draw(st.lists(value, min_size=count, max_size=count)), draw(VALUES)


def _is_small(name: str, values: list[Any16]) -> bool:
    """C code with a count but no extents trusts the count."""
    small_numbers = all(-9 <= v.v_int64 <= 400 for v in values if v.type_index == 1)
    return name not in ("repeated", "described", "fill", "only_mean") or small_numbers


@given(call=calls())
@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_a_call_returns_a_result_or_one_error(
    codes: CodesLibrary, call: tuple[str, list[Any16], Any16]
) -> None:
    """Nothing crashes, and a message names the function."""
    name, values, returned = call
    if not _is_small(name, values):
        return
    function = codes.function(lambda *arguments: returned)
    given_values = [function if v.type_index == 68 else v for v in values]
    code, result = codes.run(name, *given_values)
    raised, codes.raised[:] = list(codes.raised), []
    codes.kept[1:] = []
    if code == 0:
        assert raised == []
        return
    assert (code, result.type_index, len(raised)) == (-1, 0, 1)
    kind, message = raised[0]
    assert kind in ("TypeError", "ValueError", "OverflowError", "OSError"), message
    if kind != "OSError" and message != "negative":
        assert message.startswith(f"{name}: ")


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_special_numbers_pass(codes: CodesLibrary, value: float) -> None:
    """As a number, a part of a complex number, a field of a struct."""
    codes.call("half16", floating(value))
    codes.call("turned_float", array(floating(value), floating(1)))
    codes.call("mirrored", array(integer(1), floating(value)))
