/* DLDataType, the struct module's format characters, and sizes in bytes. */
#pragma once

#include <stddef.h>

#include "dso_abi.h"

/* DLPack, DLDataTypeCode */
enum {
  DTYPE_INT = 0,
  DTYPE_UINT = 1,
  DTYPE_FLOAT = 2,
  DTYPE_HANDLE = 3,
  DTYPE_BFLOAT = 4,
  DTYPE_COMPLEX = 5,
  DTYPE_BOOL = 6
};

/* Convert a buffer format (PEP 3118) with its item size; NULL means "B". Return 0, or -1 for
 * structs, foreign byte order and types that DLDataType cannot express. */
int dtype_from_format(const char *format, size_t itemsize, DLDataType *dtype);

/* Return the native format of a dtype, or NULL for bfloat16, float8, vectors and sub-byte types. */
const char *dtype_format(DLDataType dtype);

/* Bytes that one element touches: ceil(bits * lanes / 8). dtype_nbytes gives the size of a
 * tensor. */
static inline size_t dtype_itemsize(DLDataType dtype) {
  return ((size_t)dtype.bits * dtype.lanes + 7) / 8;
}

/* Bits of one element in a compact tensor. DLPack and TVM FFI pack sub-byte elements. The exception
 * is uint1, which takes a byte: it was TVM's bool before DLPack had one. */
static inline size_t dtype_packed_bits(DLDataType dtype) {
  size_t bits = (size_t)dtype.bits * dtype.lanes;
  return bits == 1 && dtype.code == DTYPE_UINT ? 8 : bits;
}

/* True if neighbouring elements share bytes; then single elements have no address. */
static inline int dtype_shares_bytes(DLDataType dtype) { return dtype_packed_bits(dtype) % 8 != 0; }

/* Compute the size of a compact tensor; all of the core uses this rule. Return 0, or -1 if the
 * dtype has no bits, an extent is negative, or the product of the other extents exceeds the address
 * space, even if one extent is 0. */
int dtype_nbytes(DLDataType dtype, int64_t ndim, const int64_t *dims, size_t *nbytes);
