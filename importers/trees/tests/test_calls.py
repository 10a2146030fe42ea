"""Calls of predict and leaves: forms of rows, wrong rows, other callers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime
from tests.support.libdso import compile_program, run_program
from tests.support.process import run_python

from .models import FEATURES, Case, rows

Library = Callable[[Case], Path]


@pytest.mark.parametrize("kind", ["bins", "numbers"])
def test_rows_of_any_strides_and_both_types(
    kind: str, library: Library, request: pytest.FixtureRequest
) -> None:
    """Columns first, reversed, every second row, and float64."""
    case = request.getfixturevalue(kind)
    predict = runtime.load(library(case))["predict"]
    given = rows(200, 5, extreme=True)
    given[np.isinf(given)] = 1.0
    expected = np.asarray(predict(given))
    for form in (np.asfortranarray(given), given[::-1].copy()[::-1], given.astype(np.float64)):
        np.testing.assert_array_equal(np.asarray(predict(form)), expected)
    np.testing.assert_array_equal(np.asarray(predict(given[::2])), expected[::2])
    np.testing.assert_array_equal(np.asarray(predict(np.asfortranarray(given)[3])), expected[3])


def test_float64_rows_are_compared_as_the_library_does(numbers: Case, library: Library) -> None:
    """LightGBM compares float64, which a rounding to float32 would change."""
    predict = runtime.load(library(numbers))["predict"]
    given = rows(5000, 6, "float64")
    np.testing.assert_array_equal(np.asarray(predict(given)), numbers.predict(given))


def test_shapes_of_results(bins: Case, library: Library) -> None:
    """No rows, one row as a row and as rows, and several scores."""
    model = runtime.load(library(bins))
    given = rows(3, 7)
    shapes = [np.asarray(model["predict"](x)).shape for x in (given[:0], given[:1], given[0])]
    assert shapes == [(0,), (1,), ()]
    trees = np.asarray(model["leaves"](given)).shape[1]
    assert np.asarray(model["leaves"](given[0])).shape == (trees,)
    assert float(np.asarray(model["predict"](given[0]))) == bins.predict(given)[0]


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (rows(2)[:, :-1], ValueError, "number of features, expected 12, found 11"),
        (rows(2)[0, :-1], ValueError, "number of features, expected 12, found 11"),
        (rows(2).astype(np.int32), TypeError, "rows: data type, expected float32 or float64"),
        (rows(2).astype(np.float16), TypeError, "rows: data type, expected float32 or float64"),
        (rows(2)[None], ValueError, "rows"),
        (np.float32(1), ValueError, "rows"),
    ],
)
def test_wrong_rows(
    wrong: Any, error: type[Exception], text: str, bins: Case, library: Library
) -> None:
    """Each is an error with what is expected."""
    with pytest.raises(error, match=text):
        runtime.load(library(bins))["predict"](np.asarray(wrong))


def test_raw_scores_are_margins(bins: Case, tmp_path: Path) -> None:
    """`raw=True` is the library's output_margin."""
    import xgboost

    module = packer.from_trees(bins.model, raw=True)
    given = rows(100, 8)
    predict = runtime.load(packer.export_library(module, tmp_path / "raw.so"))["predict"]
    data = xgboost.DMatrix(given, feature_types=["float"] * FEATURES)
    expected = bins.model.predict(data, output_margin=True)
    np.testing.assert_array_equal(np.asarray(predict(given)), expected)


def test_threads_call_at_once(numbers: Case, library: Library) -> None:
    """Each gets the scores of its rows."""
    predict = runtime.load(library(numbers))["predict"]
    batches = [rows(300, seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        found = [np.asarray(scores) for scores in pool.map(predict, batches)]
    for batch, scores in zip(batches, found, strict=True):
        np.testing.assert_array_equal(scores, numbers.predict(batch))


def test_every_level_of_the_processor_gives_the_same_bits(
    bins: Case, numbers: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors of 16, 32 and 64 bytes."""
    levels = ["x86-64-v2", "x86-64-v3", "x86-64-v4"]
    given = rows(1000, 9)
    for name, case in (("bins", bins), ("numbers", numbers)):
        module = packer.from_trees(case.model)
        build = packer.Build(cpu=levels)
        path = packer.export_library(module, tmp_path / f"{name}.so", build=build)
        best = np.asarray(runtime.load(path)["predict"](given))
        np.testing.assert_array_equal(best, case.predict(given))
        code = (
            "import numpy, runtime, sys;"
            "x = numpy.load(sys.argv[2]);"
            "y = numpy.asarray(runtime.load(sys.argv[1])['predict'](x));"
            "print('\"' + y.tobytes().hex() + '\"')"
        )
        np.save(tmp_path / "rows.npy", given)
        monkeypatch.setenv("DSO_CPU", levels[0])
        assert run_python(code, str(path), str(tmp_path / "rows.npy")) == best.tobytes().hex()
        monkeypatch.delenv("DSO_CPU")


PROGRAM = """
#include <dso.h>
#include <stdio.h>

int main(int argc, char **argv) {
  float row[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  int64_t shape[] = {argc - 1 > 1 ? 12 : 11};
  DLTensor x = {row, {1, 0}, 1, {2, 32, 1}, shape, NULL, 0};
  dso_any argument = dso_tensor(&x), y;
  dso_module *m = dso_load(argv[1], NULL);
  if (!m || dso_module_call(m, "predict", &y, &argument, 1)) return puts(dso_last_error()), 0;
  printf("%a\\n", (double)*(const float *)dso_tensor_of(&y)->data);
  dso_release(&y);
  dso_module_release(m);
  return 0;
}
"""


def test_a_c_program_calls_it(bins: Case, library: Library, tmp_path: Path) -> None:
    """With the bits of Python, and an error for a short row."""
    program = compile_program(PROGRAM, tmp_path / "program")
    path = library(bins)
    expected = bins.predict(np.arange(1, 13, dtype=np.float32)[None])[0]
    assert float.fromhex(run_program(program, path, "12")) == expected
    assert "number of features, expected 12, found 11" in run_program(program, path)


def test_a_process_needs_no_other_package(bins: Case, library: Library) -> None:
    """Neither NumPy nor a training library is imported."""
    code = (
        "import array, sys, runtime;"
        "row = runtime.tensor(array.array('f', range(12)));"
        "runtime.load(sys.argv[1])['predict'](row);"
        "print([n for n in ('numpy', 'xgboost', 'packer') if n in sys.modules])"
    )
    assert run_python(code, str(library(bins))) == []
