"""unicode.c: the table that is made while packing, beside Numba's functions."""

from __future__ import annotations

import ctypes
from pathlib import Path

from dso_packer_numba.symbols import SUPPORT, source_of

from .both import compile_support, theirs

COMPARE = """
#include <stdint.h>
typedef void (*read)(uint32_t, int *, int *, int *, unsigned char *, unsigned char *,
                     unsigned short *);
extern void numba_gettyperecord(uint32_t, int *, int *, int *, unsigned char *, unsigned char *,
                                unsigned short *);
extern uint32_t numba_get_PyUnicode_ExtendedCase(int);
struct row { int cases[3]; unsigned char decimal, digit; unsigned short flags; };
static struct row get(read function, uint32_t code) {
  struct row row;
  function(code, &row.cases[0], &row.cases[1], &row.cases[2], &row.decimal, &row.digit,
           &row.flags);
  return row;
}
/* The number of differences; 1 << 24 is added for each character with an extended case. */
int64_t compare(read theirs, uint32_t (*extended)(int)) {
  int64_t count = 0;
  for (uint32_t code = 0; code < 0x110000 + 5; code++) {
    struct row a = get(numba_gettyperecord, code), b = get(theirs, code);
    for (int i = 0; i < 3; i++) count += a.cases[i] != b.cases[i];
    count += a.decimal != b.decimal || a.digit != b.digit || a.flags != b.flags;
    for (int i = 0; i < 3 && (b.flags & 0x4000); i++)
      for (int at = b.cases[i] & 0xffff, n = b.cases[i] >> 24; n > 0; n--, at++)
        count += numba_get_PyUnicode_ExtendedCase(at) != extended(at);
    if (b.flags & 0x4000) count += 1 << 24;
  }
  return count;
}
"""


def test_every_character_has_the_record_of_numba(tmp_path: Path) -> None:
    """All 1,114,112, and numbers beyond them; the table is compact."""
    text = source_of(SUPPORT / "unicode.c")
    assert len(text) < 400_000
    (tmp_path / "unicode.c").write_text(text)
    (tmp_path / "compare.c").write_text(COMPARE)
    library = compile_support(tmp_path, "unicode.c", "compare.c")
    library.compare.restype = ctypes.c_int64
    library.compare.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    addresses = [
        ctypes.cast(theirs(name, None), ctypes.c_void_p)
        for name in ("numba_gettyperecord", "numba_get_PyUnicode_ExtendedCase")
    ]
    found = library.compare(*addresses)
    assert found % (1 << 24) == 0
    assert found >> 24 > 200
