"""C functions for bytecode that branches, counts, and collects what the rounds of a loop make."""

from __future__ import annotations

from packer import CSourceModule

NUMBER, FLAG = "dso_flow_number", "dso_flow_flag"
LESS, NEXT, SET_NUMBER, SET_FLAG = (
    "dso_flow_less",
    "dso_flow_next",
    "dso_flow_set_number",
    "dso_flow_set_flag",
)
NBYTES, ROOM, APPEND = "dso_flow_nbytes", "dso_flow_room", "dso_flow_append"
KEEP, TOTAL = "dso_flow_keep", "dso_flow_total"
_TYPES = {
    NUMBER: "int64_t(const int64_t *numbers, int64_t index)",
    FLAG: "int64_t(const bool *flag)",
    LESS: "int64_t(int64_t a, int64_t b)",
    NEXT: "int64_t(int64_t a)",
    SET_NUMBER: "void(int64_t *number, int64_t value)",
    SET_FLAG: "void(bool *flag, int64_t value)",
    NBYTES: "int64_t(const DLTensor *tensor)",
    ROOM: "int64_t(int64_t rounds, int64_t nbytes, int64_t room)",
    KEEP: "void(const void *rows, void *larger, int64_t rounds, int64_t nbytes)",
    TOTAL: "int64_t(int64_t rounds, int64_t nbytes)",
    APPEND: "void(const DLTensor *tensor, void *rows, int64_t rounds, int64_t nbytes)",
}
_CODE = """\
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "dso_packer.h"

int64_t dso_flow_number(const int64_t *numbers, int64_t index) { return numbers[index]; }
int64_t dso_flow_flag(const bool *flag) { return *flag; }
int64_t dso_flow_less(int64_t a, int64_t b) { return a < b; }
int64_t dso_flow_next(int64_t a) { return a + 1; }
void dso_flow_set_number(int64_t *number, int64_t value) { *number = value; }
void dso_flow_set_flag(bool *flag, int64_t value) { *flag = value != 0; }

int64_t dso_flow_nbytes(const DLTensor *tensor) {
  int64_t nbytes = (tensor->dtype.bits + 7) / 8;
  for (int32_t i = 0; i < tensor->ndim; i++) nbytes *= tensor->shape[i];
  return nbytes;
}

/* 0 if `room` bytes suffice for a row more, else how many to allocate. */
int64_t dso_flow_room(int64_t rounds, int64_t nbytes, int64_t room) {
  const int64_t needed = (rounds + 1) * nbytes;
  return needed <= room ? 0 : needed < 32 ? 64 : 2 * needed;
}

int64_t dso_flow_total(int64_t rounds, int64_t nbytes) { return rounds * nbytes; }

void dso_flow_keep(const void *rows, void *larger, int64_t rounds, int64_t nbytes) {
  memcpy(larger, rows, (size_t)(rounds * nbytes));
}

void dso_flow_append(const DLTensor *tensor, void *rows, int64_t rounds, int64_t nbytes) {
  memcpy((char *)rows + rounds * nbytes, (const char *)tensor->data + tensor->byte_offset,
         (size_t)nbytes);
}
"""


def flow_module() -> CSourceModule:
    """Return the module of these functions."""
    from .host import shared

    return shared("dso_flow", _CODE, lambda: CSourceModule(_CODE, functions=_TYPES))


def is_flow_helper(name: str) -> bool:
    """Return True if a function of bytecode is one of these."""
    return name in _TYPES
