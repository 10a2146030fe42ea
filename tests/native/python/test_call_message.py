"""The message of a wrong argument: function, argument, declaration, and the value found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime

SOURCE = """
#include <stdbool.h>
#include <stdint.h>
void scale(const float *x, float *y, int8_t n, double factor) { y[0] = x[0] * n * factor; }
void say(const char *text, bool loud) { (void)text, (void)loud; }
"""
FUNCTIONS = {
    "scale": "void(const float *x, float *y, int8_t n, double factor)",
    "say": "void(const char *text, bool loud)",
}
SCALE = "; declared as void scale(const float *x, float *y, int8_t n, double factor)"
SAY = "; declared as void say(const char *text, bool loud)"
X = np.ones(4, "f4")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> runtime.Module:
    """The functions above, packed."""
    root = packer.CSourceModule(SOURCE, fmt="c", functions=FUNCTIONS)
    path = tmp_path_factory.mktemp("message") / "message.so"
    return runtime.load(packer.export_library(root, path))


def _frozen() -> Any:
    array = X.copy()
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((), TypeError, "scale: expected 4 arguments, found 0"),
        ((X, X, 1), TypeError, "scale: expected 4 arguments, found 3"),
        ((X, X, 1, 1, 1), TypeError, "scale: expected 4 arguments, found 5"),
        ((X, X, 1, "two"), TypeError,
         "scale: argument 4 'factor' (double): expected a float, found str"),
        ((X, X, 1.5, 1), TypeError, "scale: argument 3 'n' (int8_t): expected an int, found float"),
        ((X, X, 128, 1), OverflowError,
         "scale: argument 3 'n' (int8_t): expected an int in -128 .. 127, found 128"),
        ((X, X, 2**70, 1), OverflowError,
         f"scale: argument 3 'n': out of range, expected an int64, found {2**70}"),
        ((X.astype("f8"), X, 1, 1), TypeError,
         "scale: argument 1 'x' (const float *): expected a contiguous CPU tensor of float32, "
         "found float64[4] on cpu"),
        ((X[::2], X, 1, 1), ValueError,
         "scale: argument 1 'x' (const float *): expected a contiguous CPU tensor of float32, "
         "found float32[2] on cpu with strides [2]"),
        ((X, _frozen(), 1, 1), ValueError,
         "scale: argument 2 'y': expected a writable array, found a read-only one"),
        ((X.astype(">f4"), X, 1, 1), TypeError,
         "scale: argument 1 'x': unsupported dtype, expected a native int, uint, float, complex or "
         "bool, found format '>f' of 4 bytes"),
        (([1.0], X, 1, 1), TypeError,
         "scale: argument 1 'x': unsupported type, expected int, float, bool, str, bytes, None, an "
         "array, a Device or a callable, found list"),
        ((len, X, 1, 1), TypeError,
         "scale: argument 1 'x' (const float *): expected a contiguous CPU tensor of float32 or "
         "None, found a function"),
    ],
)  # fmt: skip
def test_wrong_argument(
    library: runtime.Module, arguments: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    """Each message is complete, wherever the check is made."""
    with pytest.raises(error) as caught:
        library["scale"](*arguments)
    assert str(caught.value) == message + SCALE


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((1, True), TypeError,
         "say: argument 1 'text' (const char *): expected a str, found int"),
        (("a\0b", True), ValueError,
         r"say: argument 1 'text': expected a str without NUL, found 'a\x00b'"),
        (("text", None), TypeError, "say: argument 2 'loud' (bool): expected a bool, found None"),
    ],
)  # fmt: skip
def test_wrong_text(
    library: runtime.Module, arguments: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    """Text and truth values likewise."""
    with pytest.raises(error) as caught:
        library["say"](*arguments)
    assert str(caught.value) == message + SAY


def test_unaligned_array(library: runtime.Module) -> None:
    """The error reports an address that the element does not divide."""
    array = np.frombuffer(bytearray(17), "u1")[1:].view("f4")
    with pytest.raises(ValueError, match=r"^scale: argument 1 'x' .*expected data aligned to 4"):
        library["scale"](array, X, 1, 1)


def test_error_of_the_function_is_its_own(compile_library: Callable[..., Path]) -> None:
    """An error of the called function contains only its words."""
    source = """
    #include "dso_packer.h"
    void (*__TVMFFIErrorSetRaisedFromCStr)(const char *, const char *);
    DSO_EXPORT int __tvm_ffi_fail(void *h, const dso_any *args, int32_t n, dso_any *result) {
      (void)h, (void)args, (void)n, (void)result;
      return dso_raise("ZeroDivisionError", "no rows");
    }
    """
    with pytest.raises(ZeroDivisionError) as caught:
        runtime.load(compile_library(source))["fail"]()
    assert caught.value.args == ("no rows",)
