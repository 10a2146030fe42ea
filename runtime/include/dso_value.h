/* dso_value.h: values of the safe-call ABI, to pass and to release. C99 and C++11. */
#ifndef DSO_VALUE_H
#define DSO_VALUE_H

#include "dso_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Values to pass. A string, tensor or function must live until the call returns. ---- */

static inline dso_any dso_value(int32_t type_index) {
  dso_any value;
  value.type_index = type_index;
  value.small_len = 0;
  value.v_int64 = 0;
  return value;
}

static inline dso_any dso_none(void) { return dso_value(DSO_NONE); }

static inline dso_any dso_int(int64_t integer) {
  dso_any value = dso_value(DSO_INT);
  value.v_int64 = integer;
  return value;
}

static inline dso_any dso_bool(int truth) {
  dso_any value = dso_value(DSO_BOOL);
  value.v_int64 = truth != 0;
  return value;
}

static inline dso_any dso_float(double number) {
  dso_any value = dso_value(DSO_FLOAT);
  value.v_float64 = number;
  return value;
}

static inline dso_any dso_string(const char *text) {
  dso_any value = dso_value(DSO_RAW_STR);
  value.v_c_str = text;
  return value;
}

static inline dso_any dso_pointer(void *pointer) {
  dso_any value = dso_value(DSO_OPAQUE_PTR);
  value.v_ptr = pointer;
  return value;
}

static inline dso_any dso_tensor(DLTensor *tensor) {
  dso_any value = dso_value(DSO_DLTENSOR_PTR);
  value.v_ptr = tensor;
  return value;
}

static inline dso_any dso_device(int32_t device_type, int32_t device_id) {
  dso_any value = dso_value(DSO_DEVICE);
  value.v_device.device_type = device_type;
  value.v_device.device_id = device_id;
  return value;
}

static inline dso_any dso_object_value(dso_object *object) {
  dso_any value = dso_value(object->type_index);
  value.v_ptr = object;
  return value;
}

/* Release a result, which the caller owns. Required if it may be an object (a string, tensor or
 * function). */
static inline void dso_release(dso_any *value) {
  if (value->type_index >= DSO_OBJECT && value->v_ptr)
    dso_object_release((dso_object *)value->v_ptr);
  *value = dso_none();
}

/* Call a function. *result need not be initialised; NULL drops the result. */
static inline int dso_call_function(dso_object *function, dso_any *result, const dso_any *args,
                                    int32_t num_args) {
  dso_any own = dso_none();
  int status = ((dso_function_object *)(void *)function)->safe_call(function, args, num_args, &own);
  if (result) *result = own;
  else dso_release(&own);
  return status;
}

#ifdef __cplusplus
}
#endif

#endif
