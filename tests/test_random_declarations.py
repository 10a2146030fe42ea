"""Generated declarations and calls: what is accepted is what the C compiler accepts, unchanged.

EXAMPLES sets the number of generated examples; each compiles one library.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import packer
import runtime

from .support.compiler_verdict import (
    HEADERS,
    SPELLINGS,
    TYPEDEFS,
    Function,
    Meaning,
    Value,
    meanings,
    verdicts,
)

SAMPLE = settings(
    max_examples=int(os.environ.get("EXAMPLES", "12")),
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],  # to shrink a failure compiles hundreds of libraries
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
EDGES = sorted({sign * (2**bits + near) for bits in (0, 7, 8, 15, 16, 31, 32, 63)
                for near in (-1, 0, 1) for sign in (1, -1)})  # fmt: skip
INTEGERS = st.sampled_from([value for value in EDGES if -(2**63) <= value < 2**64])
FLOATS = st.sampled_from([0.5, -1.0, 1e300, 3.5e38, 1e-320, math.inf, -math.inf, math.nan])
FLOATING = ("float", "double", "sample", "real")
TYPES = st.lists(st.sampled_from(SPELLINGS), min_size=1, max_size=5)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Meaning]:
    """The meaning of every spelling."""
    return meanings(tmp_path_factory.mktemp("meanings"))


def values_of(types: tuple[str, ...]) -> st.SearchStrategy[tuple[Value, ...]]:
    """Arguments, most of them of the kind of the parameter."""
    mixed = st.one_of(st.booleans(), INTEGERS, FLOATS)
    return st.tuples(
        *(st.one_of(*[FLOATS if name in FLOATING else INTEGERS] * 4, mixed) for name in types)
    )


def load(folder: Path, code: str, functions: dict[str, str]) -> runtime.Module:
    """Export and load; the library is removed at once, so that the next one is another file."""
    module = packer.CSourceModule(HEADERS + TYPEDEFS + code, functions=functions)
    path = packer.export_library(module, folder / "generated.so")
    loaded = runtime.load(path)
    path.unlink()
    return loaded


def is_like(value: Value, meaning: Meaning) -> bool:
    """Return True if callers pass such a value to such a parameter.

    Of an int for a bool or an enum the compiler says nothing.
    """
    if meaning.is_floating:
        return True
    bits = 1 if meaning.is_bool else 8 * meaning.nbytes - meaning.is_signed
    low = -(2**bits) if meaning.is_signed else 0
    return not isinstance(value, float) and low <= value < 2**bits


@SAMPLE
@given(data=st.data())
def test_a_call_is_accepted_where_the_compiler_changes_no_value(
    data: st.DataObject, tmp_path: Path, known: dict[str, Meaning]
) -> None:
    """Its result is the compiler's too; every other call is an exception."""
    functions = []
    for index, types in enumerate(data.draw(st.lists(TYPES, min_size=1, max_size=6))):
        returned = data.draw(st.integers(0, len(types) - 1))
        functions.append(Function(f"function{index}", tuple(types), returned))
    drawn = [
        (function, data.draw(values_of(function.types))) for function in functions for _ in range(8)
    ]
    module = load(
        tmp_path,
        "".join(function.definition for function in functions),
        {function.name: function.declaration for function in functions},
    )
    for (function, values), verdict in zip(drawn, verdicts(tmp_path, known, drawn), strict=True):
        is_natural = all(
            is_like(value, known[name]) for value, name in zip(values, function.types, strict=True)
        )
        if not (verdict.is_accepted and is_natural):
            with pytest.raises((TypeError, OverflowError)):
                module[function.name](*values)
            continue
        result = module[function.name](*values)
        assert result == verdict.result or (math.isnan(result) and math.isnan(verdict.result))


@SAMPLE
@given(actual=st.sampled_from(SPELLINGS), declared=st.sampled_from(SPELLINGS))
def test_a_declared_type_is_accepted_where_it_is_the_same_by_its_meaning(
    actual: str, declared: str, tmp_path: Path, known: dict[str, Meaning]
) -> None:
    """Size, signedness and kind decide; the spelling does not. An enum may be declared as int."""
    code = f"{actual} same({actual} x) {{ return x; }}\n"
    declaration = {"same": f"{declared}({declared} x)"}
    is_enum = actual == "enum color" and known[declared] == known["int"]
    if known[actual] == known[declared] or is_enum:
        assert load(tmp_path, code, declaration)["same"](1) == 1
    else:
        with pytest.raises(runtime.PackerError):
            load(tmp_path, code, declaration)


@SAMPLE
@given(
    extents=st.tuples(st.integers(-1, 5), st.integers(-1, 5)),
    shape=st.lists(st.integers(0, 5), min_size=1, max_size=3),
)
def test_an_array_is_accepted_where_it_has_the_declared_extents(
    extents: tuple[int, int], shape: list[int], tmp_path: Path
) -> None:
    """A shorter array is refused; of a longer one the function reads what it declares."""
    code = """
double total(int n, int m, double a[n][m]) {
  double sum = 0;
  for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) sum += a[i][j];
  return sum;
}
"""
    declaration = {"total": "double(int n, int m, double a[n][m])"}
    total = load(tmp_path, code, declaration)["total"]
    array = numpy.arange(math.prod(shape), dtype="f8").reshape(shape)
    n, m = extents
    is_alike = len(shape) != 2 or shape[1] == m
    if n >= 0 and m >= 0 and n * m <= array.size and is_alike:
        assert total(n, m, array) == array.ravel()[: n * m].sum()
    else:
        with pytest.raises(ValueError, match="total: argument 3 'a'"):
            total(n, m, array)
