"""Small libraries of C."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from runtime._core import Library

CompileLibrary = Callable[..., Path]
ADD = """
#include "dso_packer.h"
void (*__TVMFFIErrorSetRaisedFromCStr)(const char *, const char *);
DSO_EXPORT const char blob[] = "1234567";
DSO_EXPORT int __tvm_ffi_answer(void *h, const dso_any *args, int32_t n, dso_any *result) {
  (void)h, (void)args, (void)n;
  result->type_index = DSO_INT;
  result->v_int64 = ANSWER;
  return 0;
}
"""


def answer(library: Library) -> int:
    """Call its function."""
    function = library.function("answer", None)
    assert function is not None
    return int(function())


SYMBOLS = """
const char good[4] = "abc";
char writable[4] = "abc";
char zeros[4096];
_Thread_local char local[4] = "abc";
int function(void) { return 1; }
extern const char nothing[];
extern const char absolute[];
asm(".section .rodata; .globl nothing; .type nothing, @object; nothing: .size nothing, 0; .text");
asm(".globl absolute; .type absolute, @object; absolute = 0x40; .size absolute, 8");
"""
