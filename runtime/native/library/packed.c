/* Packed C functions: conversion of values, and calls. */
#include "library/packed.h"

#include <stdlib.h>
#include <string.h>

#include "abi/dtype.h"
#include "abi/heap.h"
#include "abi/raised.h"
#include "library/thread_result.h"

enum { STACK_ARGS = 16 };

/* ---- Values */

static int code_of(const dso_any *value) {
  switch (value->type_index) {
    case DSO_NONE: return PACKED_NULL;
    case DSO_INT:
    case DSO_BOOL: return PACKED_INT;
    case DSO_FLOAT: return PACKED_FLOAT;
    case DSO_OPAQUE_PTR: return PACKED_HANDLE;
    case DSO_DATA_TYPE: return PACKED_DATA_TYPE;
    case DSO_DEVICE: return PACKED_DEVICE;
    case DSO_DLTENSOR_PTR:
    case DSO_TENSOR: return PACKED_DLTENSOR;
    case DSO_RAW_STR:
    case DSO_SMALL_STR:
    case DSO_STR: return PACKED_STR;
    case DSO_BYTE_ARRAY_PTR:
    case DSO_SMALL_BYTES:
    case DSO_BYTES: return PACKED_BYTES;
    case DSO_FUNCTION: return PACKED_FUNCTION;
    case DSO_MODULE: return PACKED_MODULE;
    default: return PACKED_OBJECT;
  }
}

int packed_from_any(const dso_any *value, packed_value *packed, dso_byte_array *bytes) {
  packed->v_int64 = value->v_int64;
  switch (value->type_index) {
    case DSO_SMALL_STR: packed->v_str = value->v_bytes; break; /* it ends in NUL */
    case DSO_STR:
      packed->v_str = ((const dso_byte_array *)((const dso_object *)value->v_ptr + 1))->data;
      break;
    case DSO_SMALL_BYTES:
      *bytes = (dso_byte_array){.data = value->v_bytes, .size = value->small_len};
      packed->v_handle = bytes;
      break;
    case DSO_BYTES: packed->v_handle = (dso_object *)value->v_ptr + 1; break;
    case DSO_TENSOR: packed->v_handle = &((dso_tensor_object *)value->v_ptr)->tensor; break;
    default: break;
  }
  return code_of(value);
}

static const int32_t type_indices[] = {
    [PACKED_INT] = DSO_INT,
    [PACKED_UINT] = DSO_INT,
    [PACKED_FLOAT] = DSO_FLOAT,
    [PACKED_HANDLE] = DSO_OPAQUE_PTR,
    [PACKED_NULL] = DSO_NONE,
    [PACKED_DATA_TYPE] = DSO_DATA_TYPE,
    [PACKED_DEVICE] = DSO_DEVICE,
    [PACKED_DLTENSOR] = DSO_DLTENSOR_PTR,
    [PACKED_OBJECT] = DSO_OBJECT,
    [PACKED_MODULE] = DSO_MODULE,
    [PACKED_FUNCTION] = DSO_FUNCTION,
    [PACKED_STR] = DSO_RAW_STR,
    [PACKED_BYTES] = DSO_BYTE_ARRAY_PTR,
    [PACKED_NDARRAY] = DSO_DLTENSOR_PTR,
};

enum { NUM_CODES = sizeof type_indices / sizeof *type_indices };

static int refuse_code(int32_t index, int type_code) {
  if (index < 0)
    return raised_format("TypeError", "result: type code, expected 0 to 13, found %d", type_code);
  return raised_format("TypeError", "argument %d: type code, expected 0 to 13, found %d",
                       (int)index + 1, type_code);
}

int packed_to_any(packed_value packed, int type_code, int32_t index, dso_any *value) {
  if (type_code < 0 || type_code >= NUM_CODES) return refuse_code(index, type_code);
  *value = (dso_any){.type_index = type_indices[type_code], .v_int64 = packed.v_int64};
  if (type_code == PACKED_UINT && packed.v_int64 < 0) value->small_len = DSO_UNSIGNED;
  if (type_code == PACKED_NULL) value->v_int64 = 0;
  if (value->type_index < DSO_OBJECT) return 0;
  if (packed.v_handle == NULL) value->type_index = DSO_NONE;
  else /* every object has TVM FFI's header, which stores its type */
    value->type_index = ((const dso_object *)packed.v_handle)->type_index;
  return 0;
}

/* ---- Calling a packed function (thread_result.h describes ownership) */

static int copy_string(packed_value packed, int type_code, dso_any *result) {
  const dso_byte_array *bytes = packed.v_handle;
  int status = type_code == PACKED_STR
                   ? object_make_string(result, 1, packed.v_str, strlen(packed.v_str))
                   : object_make_string(result, 0, bytes->data, (size_t)bytes->size);
  if (status != 0) raised_set("OutOfMemoryError", "no memory for a result");
  return status;
}

static int is_borrowed(const void *object, const dso_any *args, int32_t num_args) {
  for (int32_t i = 0; i < num_args; i++)
    if (args[i].type_index >= DSO_OBJECT && args[i].v_ptr == object) return 1;
  return thread_result_is(object);
}

static int take_result(packed_value packed, int type_code, const dso_any *args, int32_t num_args,
                       dso_any *result) {
  int is_string = type_code == PACKED_STR || type_code == PACKED_BYTES;
  if (is_string && packed.v_handle != NULL) return copy_string(packed, type_code, result);
  if (packed_to_any(packed, type_code, -1, result) != 0) return -1;
  if (result->type_index >= DSO_OBJECT && is_borrowed(result->v_ptr, args, num_args))
    object_retain(result->v_ptr);
  return 0;
}

struct arguments {
  packed_value *values;
  int *codes;
  dso_byte_array *bytes;
  DLTensor *tensors;
};

/* TVM's packed functions know bool as uint1, in a byte for each element. */
static void pass_bool(const dso_any *value, packed_value *packed, DLTensor *copy) {
  const DLTensor *tensor = value->v_ptr;
  if (value->type_index == DSO_TENSOR) tensor = &((const dso_tensor_object *)value->v_ptr)->tensor;
  if (tensor == NULL || tensor->dtype.code != DTYPE_BOOL || tensor->dtype.bits != 8) return;
  *copy = *tensor;
  copy->dtype.code = DTYPE_UINT;
  copy->dtype.bits = 1;
  packed->v_handle = copy;
}

static int call_with(packed_function function, const struct arguments *packed, const dso_any *args,
                     int32_t num_args, dso_any *result) {
  packed_value value = {.v_int64 = 0};
  int code = PACKED_NULL;
  for (int32_t i = 0; i < num_args; i++) {
    packed->codes[i] = packed_from_any(&args[i], &packed->values[i], &packed->bytes[i]);
    if (packed->codes[i] == PACKED_DLTENSOR)
      pass_bool(&args[i], &packed->values[i], &packed->tensors[i]);
  }
  int status = function(packed->values, packed->codes, num_args, &value, &code, NULL);
  return status != 0 ? status : take_result(value, code, args, num_args, result);
}

static int call_with_heap(packed_function function, const dso_any *args, int32_t num_args,
                          dso_any *result) {
  size_t count = (size_t)num_args;
  struct arguments packed = {.values = heap_new_zeroed(count, sizeof *packed.values),
                             .codes = heap_new_zeroed(count, sizeof *packed.codes),
                             .bytes = heap_new_zeroed(count, sizeof *packed.bytes),
                             .tensors = heap_new_zeroed(count, sizeof *packed.tensors)};
  int status = -1;
  if (packed.values != NULL && packed.codes != NULL && packed.bytes != NULL &&
      packed.tensors != NULL)
    status = call_with(function, &packed, args, num_args, result);
  else raised_set("OutOfMemoryError", "no memory for the arguments of a call");
  free(packed.values);
  free(packed.codes);
  free(packed.bytes);
  free(packed.tensors);
  return status;
}

int packed_call(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  packed_value values[STACK_ARGS];
  int codes[STACK_ARGS];
  dso_byte_array bytes[STACK_ARGS];
  DLTensor tensors[STACK_ARGS];
  packed_function function;
  memcpy(&function, &handle, sizeof function); /* ISO C has no cast from data to function */
  if (num_args > STACK_ARGS) return call_with_heap(function, args, num_args, result);
  struct arguments packed = {.values = values, .codes = codes, .bytes = bytes, .tensors = tensors};
  return call_with(function, &packed, args, num_args, result);
}
