/* DLDataType and the struct module's format characters. No Python.h. */
#ifndef DSO_PACKER_NATIVE_DTYPE_H
#define DSO_PACKER_NATIVE_DTYPE_H

#include <stddef.h>

#include "../include/dso_abi.h"

/* DLPack, DLDataTypeCode. */
enum {
  DTYPE_INT = 0,
  DTYPE_UINT = 1,
  DTYPE_FLOAT = 2,
  DTYPE_BFLOAT = 4,
  DTYPE_COMPLEX = 5,
  DTYPE_BOOL = 6
};

/* Read one buffer format (PEP 3118) with its item size; NULL means "B". Returns 0, or -1 for
 * structs, foreign byte order and whatever has no DLDataType. */
int dtype_from_format(const char *format, size_t itemsize, DLDataType *dtype);

/* The native format of a dtype, or NULL: bfloat16, float8, vectors, sub-byte types. */
const char *dtype_format(DLDataType dtype);

/* Bytes of one element: ceil(bits * lanes / 8). */
static inline size_t dtype_itemsize(DLDataType dtype) {
  return ((size_t)dtype.bits * dtype.lanes + 7) / 8;
}

#endif
