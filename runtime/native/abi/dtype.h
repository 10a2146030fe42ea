/* DLDataType and the struct module's format characters. No Python.h. */
#ifndef DSO_PACKER_ABI_DTYPE_H
#define DSO_PACKER_ABI_DTYPE_H

#include <stddef.h>

#include "dso_abi.h"

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

/* Bytes that one element touches: ceil(bits * lanes / 8). The size of a tensor is dtype_nbytes. */
static inline size_t dtype_itemsize(DLDataType dtype) {
  return ((size_t)dtype.bits * dtype.lanes + 7) / 8;
}

/* Bits of one element in a compact tensor. Elements of less than a byte are packed, as DLPack and
 * TVM FFI store them; only a uint1 has a byte, since it is the bool of TVM before DLPack had one. */
static inline size_t dtype_packed_bits(DLDataType dtype) {
  size_t bits = (size_t)dtype.bits * dtype.lanes;
  return bits == 1 && dtype.code == DTYPE_UINT ? 8 : bits;
}

/* Whether neighbouring elements share bytes: then single elements have no address. */
static inline int dtype_shares_bytes(DLDataType dtype) { return dtype_packed_bits(dtype) % 8 != 0; }

/* The bytes of a compact tensor, the one rule for all of the core: 0, or -1 if the data type has no
 * bits, an extent is negative, or the size is beyond the address space, which an extent of 0 does
 * not hide. */
int dtype_nbytes(DLDataType dtype, int64_t ndim, const int64_t *dims, size_t *nbytes);

#endif
