"""Global functions of TVM's runtime that the core has: results equal to real TVM's."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from .conftest import TVM_PYTHON, RunScript, read
from .function_calls import GROUPS, SEED

# TVM's generator has no seed function here: its first seed is the time.
CLOCK = f"""
#include <time.h>
time_t time(time_t *now) {{
  if (now) *now = {SEED};
  return {SEED};
}}
"""


@pytest.fixture(scope="module")
def both(
    tmp_path_factory: pytest.TempPathFactory, run_script: RunScript
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The outcomes of TVM, and those here."""
    folder = tmp_path_factory.mktemp("functions")
    (folder / "clock.c").write_text(CLOCK)
    clock = folder / "clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", folder / "clock.c", "-o", clock], check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_PRELOAD", os.fspath(clock))
        run_script(TVM_PYTHON, "make_functions.py", folder / "theirs")
    run_script(sys.executable, "run_functions.py", folder / "ours")
    return read(folder / "theirs"), read(folder / "ours")


@pytest.mark.parametrize("group", GROUPS)
def test_results_equal_those_of_tvm(
    both: tuple[dict[str, Any], dict[str, Any]], group: str
) -> None:
    """Bit by bit, with ties, NaN and both zeros; calls that TVM refuses are refused."""
    theirs, ours = (made[group] for made in both)
    assert len(theirs) == len(ours) > 1
    for index, (expected, actual) in enumerate(zip(theirs, ours, strict=True)):
        where = f"call {index}: {expected[0]}"
        if group == "refused":
            assert expected[1] == actual[1] == "error", where
            assert actual[2].startswith(expected[0]), where
        elif group == "failing":
            assert actual[1:] == ("error", expected[2]), where
        else:
            assert not is_error(actual) and not is_error(expected), (where, actual, expected)
            assert_same(actual[1:], expected[1:], where)


def is_error(outcome: Any) -> bool:
    """Return True if a call raised."""
    return isinstance(outcome[1], str) and outcome[1] == "error"


def assert_same(actual: Any, expected: Any, where: str) -> None:
    """Compare values, and arrays by their bytes."""
    if isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected), where
        for mine, other in zip(actual, expected, strict=True):
            assert_same(mine, other, where)
    elif isinstance(expected, np.ndarray):
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape), where
        np.testing.assert_array_equal(actual, expected, err_msg=where)
        assert actual.tobytes() == expected.tobytes(), where
    else:
        assert actual == expected, where
