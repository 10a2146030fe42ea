"""Errors with a real tvm_ffi in the same process: each runtime sees the error of its call."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

FAIL = """
#include "dso_packer.h"
#ifndef DIRECT
void (*__TVMFFIErrorSetRaisedFromCStr)(const char *, const char *);
#else
#define dso_raise(kind, message) (TVMFFIErrorSetRaisedFromCStr(kind, message), -1)
#endif
DSO_EXPORT int __tvm_ffi_fail(void *h, const dso_any *args, int32_t n, dso_any *result) {
  (void)h, (void)args, (void)n, (void)result;
  return dso_raise("KeyError", "of this call");
}
"""

OURS = """
from runtime._core import Library
ours = Library(path).function("fail", None)
"""
THEIRS = """
import tvm_ffi
theirs = tvm_ffi.load_module(path)["fail"]
"""
CALL_BOTH = """
for function in (ours, theirs, theirs, ours, ours, theirs):
    try:
        function()
    except KeyError as error:
        print(error.args)
"""


def _run(path: Path, *parts: str) -> str:
    code = "\n".join([f"path = {str(path)!r}", *parts])
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


@pytest.mark.parametrize("parts", [(OURS, THEIRS), (THEIRS, OURS)], ids=["first", "second"])
def test_both_runtimes_on_one_file(
    compile_library: Callable[..., Path], parts: tuple[str, str]
) -> None:
    """One file is one image with one setter; whichever loaded it first, both get their errors."""
    assert _run(compile_library(FAIL), *parts, CALL_BOTH) == "('of this call',)\n" * 6


def test_error_raised_through_tvm_ffi_itself(compile_library: Callable[..., Path]) -> None:
    """A library that calls libtvm_ffi directly leaves its error there; we read it."""
    path = compile_library(FAIL, "-DDIRECT")
    assert _run(path, THEIRS, OURS, CALL_BOTH) == "('of this call',)\n" * 6
