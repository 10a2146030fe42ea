/* glue_examine.h: questions about one argument: its type, its dtype, its layout. */
#ifndef DSO_PACKER_GLUE_EXAMINE_H
#define DSO_PACKER_GLUE_EXAMINE_H

#include "glue.h"

#ifdef __cplusplus
extern "C" {
#endif

/* DLDataTypeCode (dlpack.h). DSO_DT_ANY accepts every dtype; it is used for void *. DSO_DT_BYTE
 * accepts both integers of 8 bits. */
enum {
  DSO_DT_BYTE = -2,
  DSO_DT_ANY = -1,
  DSO_DT_INT = 0,
  DSO_DT_UINT = 1,
  DSO_DT_FLOAT = 2,
  DSO_DT_HANDLE = 3,
  DSO_DT_BFLOAT = 4,
  DSO_DT_COMPLEX = 5,
  DSO_DT_BOOL = 6
};

/* DLDeviceType of memory that the CPU can read. */
enum { DSO_CPU = 1, DSO_CUDA_HOST = 3 };

/* ---- Examining an argument ------------------------------------------------------------------- */

DSO_FAST int dso_is_integer(const dso_any *value) {
  return value->type_index == DSO_INT || value->type_index == DSO_BOOL;
}

DSO_FAST int dso_is_beyond_int64(const dso_any *value) {
  return value->type_index == DSO_INT && value->small_len == DSO_UNSIGNED && value->v_int64 < 0;
}

DSO_FAST int dso_is_on_cpu(const DLTensor *tensor) {
  return tensor->device.device_type == DSO_CPU || tensor->device.device_type == DSO_CUDA_HOST;
}

/* Legacy TVM writes bool as (uint, 1, 1). */
static inline int dso_is_legacy_bool(DLDataType dtype) {
  return dtype.code == DSO_DT_UINT && dtype.bits == 1 && dtype.lanes == 1;
}

DSO_FAST int dso_has_dtype(const DLTensor *tensor, int code, int bits) {
  DLDataType dtype = tensor->dtype;
  if (code == DSO_DT_ANY) return 1;
  if (code == DSO_DT_BYTE) return dtype.code <= DSO_DT_UINT && dtype.bits == 8 && dtype.lanes == 1;
  if (dtype.code == code && dtype.bits == bits && dtype.lanes == 1) return 1;
  return code == DSO_DT_BOOL && dso_is_legacy_bool(dtype);
}

static inline int dso_is_empty(const DLTensor *tensor) {
  for (int32_t i = 0; i < tensor->ndim; i++)
    if (tensor->shape[i] == 0) return 1;
  return 0;
}

/* Return 1 if the tensor is row-major without gaps. Strides of dimensions of size 1, and all
 * strides of an empty tensor, are ignored. */
DSO_FAST int dso_is_contiguous(const DLTensor *tensor) {
  uint64_t compact = 1; /* unsigned, so that an invalid shape may wrap, but not overflow */
  if (tensor->strides == NULL) return 1;
  for (int32_t i = tensor->ndim - 1; i >= 0; i--) {
    if (tensor->shape[i] == 1) continue;
    if ((uint64_t)tensor->strides[i] != compact) return dso_is_empty(tensor);
    compact *= (uint64_t)tensor->shape[i];
  }
  return 1;
}

/* The address as an integer, since adding to NULL (of an empty tensor) is undefined. */
DSO_FAST uintptr_t dso_address_of(const DLTensor *tensor) {
  return (uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset;
}

/* Return 1 if the data can be read through a pointer to elements of `itemsize` bytes. */
DSO_FAST int dso_is_addressable(const DLTensor *tensor, int itemsize) {
  if (dso_address_of(tensor) % (uintptr_t)itemsize != 0) return 0;
  return tensor->data != NULL || dso_is_empty(tensor);
}

/* The bytes of a counted string; NULL if the argument is not one. */
DSO_FAST dso_byte_array dso_bytes_of(const dso_any *value) {
  dso_byte_array none = {NULL, 0};
  if (value->type_index == DSO_STR)
    return *(const dso_byte_array *)(const void *)((const char *)value->v_ptr + sizeof(dso_object));
  if (value->type_index == DSO_SMALL_STR && value->small_len < sizeof value->v_bytes) {
    none.data = value->v_bytes;
    none.size = value->small_len;
  }
  return none;
}

/* The bytes of a Bytes value; NULL if the argument is not one. */
static inline dso_byte_array dso_raw_bytes_of(const dso_any *value) {
  dso_byte_array none = {NULL, 0};
  if (value->type_index == DSO_SMALL_BYTES && value->small_len < sizeof value->v_bytes) {
    none.data = value->v_bytes;
    none.size = value->small_len;
  }
  if (!value->v_ptr) return none;
  if (value->type_index == DSO_BYTE_ARRAY_PTR) return *(const dso_byte_array *)value->v_ptr;
  if (value->type_index == DSO_BYTES)
    return *(const dso_byte_array *)(const void *)((const char *)value->v_ptr + sizeof(dso_object));
  return none;
}

/* Return 1 if the first NUL is the one that terminates the string. */
DSO_FAST int dso_is_c_string(dso_byte_array bytes) {
  return bytes.data &&
         __builtin_memchr(bytes.data, 0, (size_t)bytes.size + 1) == bytes.data + bytes.size;
}

#ifdef __cplusplus
}
#endif

#endif
