/* The cache from NumPy's dtype objects to DLDataTypes, by the object's address. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "dso_abi.h"

/* Every cached dtype has elements of 1, 2, 4, 8 or 16 bytes. */
struct cached_dtype {
  PyObject *descr; /* owned, so that no other dtype gets its address */
  DLDataType dtype;
  int shift;            /* log2 of the item size */
  Py_ssize_t odd_bytes; /* the item size minus 1: bits that are 0 in every valid stride */
};

enum { DTYPE_SLOT_BITS = 5 };
extern struct cached_dtype dtype_slots[1 << DTYPE_SLOT_BITS];

static inline struct cached_dtype *dtype_slot(const PyObject *descr) {
  uintptr_t address = (uintptr_t)descr >> 4;
  return &dtype_slots[(address ^ address >> DTYPE_SLOT_BITS) & ((1 << DTYPE_SLOT_BITS) - 1)];
}

/* Return the entry of a dtype, or NULL. */
static inline const struct cached_dtype *dtype_cache_find(const PyObject *descr) {
  const struct cached_dtype *slot = dtype_slot(descr);
  return slot->descr == descr ? slot : NULL;
}

/* Add the dtype of `array`; NULL without an exception if it has no DLDataType. */
const struct cached_dtype *dtype_cache_add(PyObject *descr, PyObject *array);
