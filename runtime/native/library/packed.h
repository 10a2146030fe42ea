/* Packed C functions (TVM until 2025, c_runtime_api.h), and conversion to and from safe calls.
 *
 * A function handle is a Function object of TVM FFI in both interfaces. */
#pragma once

#include "abi/object.h"

/* TVMValue */
typedef union {
  int64_t v_int64;
  double v_float64;
  void *v_handle;
  const char *v_str;
  DLDataType v_type;
  DLDevice v_device;
} packed_value;

/* TVMArgTypeCode */
enum {
  PACKED_INT = 0,
  PACKED_UINT = 1,
  PACKED_FLOAT = 2,
  PACKED_HANDLE = 3,
  PACKED_NULL = 4,
  PACKED_DATA_TYPE = 5,
  PACKED_DEVICE = 6,
  PACKED_DLTENSOR = 7,
  PACKED_OBJECT = 8,
  PACKED_MODULE = 9,
  PACKED_FUNCTION = 10,
  PACKED_STR = 11,
  PACKED_BYTES = 12,
  PACKED_NDARRAY = 13 /* compatible with a DLTensor pointer */
};

/* TVMBackendPackedCFunc */
typedef int (*packed_function)(packed_value *args, int *type_codes, int num_args,
                               packed_value *result, int *result_code, void *resource_handle);

/* Call the packed function at the address `handle`, as a safe call. */
int packed_call(void *handle, const dso_any *args, int32_t num_args, dso_any *result);

/* Convert a value to a packed value that borrows it, and return its type code. A packed value can
 * only point to bytes; `bytes` stores the structure that it then points to. */
int packed_from_any(const dso_any *value, packed_value *packed, dso_byte_array *bytes);

/* Convert a packed value. Return 0, or -1 with a TypeError raised that names argument `index` (-1
 * for the result). */
int packed_to_any(packed_value packed, int type_code, int32_t index, dso_any *value);
