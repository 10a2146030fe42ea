/* glue_take.h: reading arguments. Each dso_take_ function returns 0 and stores *out, or
 * returns -1 with the error raised. */
#ifndef DSO_PACKER_GLUE_TAKE_H
#define DSO_PACKER_GLUE_TAKE_H

#include "glue_message.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __CHAR_UNSIGNED__
enum { DSO_CHAR_MIN = 0, DSO_CHAR_MAX = UINT8_MAX };
#else
enum { DSO_CHAR_MIN = INT8_MIN, DSO_CHAR_MAX = INT8_MAX };
#endif

DSO_FAST int dso_take_signed(const dso_function *function, const dso_any *args, int32_t index,
                             int64_t low, int64_t high, int64_t *out) {
  const dso_any *value = &args[index];
  if (DSO_LIKELY(dso_is_integer(value) && !dso_is_beyond_int64(value) && value->v_int64 >= low &&
                 value->v_int64 <= high)) {
    *out = value->v_int64;
    return 0;
  }
  return dso_refuse_integer(function, args, index, low, (uint64_t)high);
}

DSO_FAST int dso_take_unsigned(const dso_function *function, const dso_any *args, int32_t index,
                               uint64_t high, uint64_t *out) {
  const dso_any *value = &args[index];
  if (DSO_LIKELY(dso_is_integer(value) && (value->v_int64 >= 0 || dso_is_beyond_int64(value)) &&
                 (uint64_t)value->v_int64 <= high)) {
    *out = (uint64_t)value->v_int64;
    return 0;
  }
  return dso_refuse_integer(function, args, index, 0, high);
}

DSO_FAST int dso_take_float(const dso_function *function, const dso_any *args, int32_t index,
                            double *out) {
  const dso_any *value = &args[index];
  if (DSO_LIKELY(value->type_index == DSO_FLOAT)) {
    *out = value->v_float64;
    return 0;
  }
  if (!dso_is_integer(value)) return dso_refuse_type(function, args, index, "a float");
  *out = dso_is_beyond_int64(value) ? (double)(uint64_t)value->v_int64 : (double)value->v_int64;
  return 0;
}

/* Define a function that takes a float type smaller than double. Infinities and NaN pass. */
#define DSO_TAKE_NARROW(name, type)                                                     \
  DSO_INLINE int name(const dso_function *function, const dso_any *args, int32_t index, \
                      type *out) {                                                      \
    double value = 0;                                                                   \
    if (dso_take_float(function, args, index, &value)) return -1;                       \
    *out = (type)value;                                                                 \
    if (DSO_LIKELY(!__builtin_isinf((double)*out) || __builtin_isinf(value))) return 0; \
    return dso_refuse_float(function, index, value);                                    \
  }

DSO_TAKE_NARROW(dso_take_float32, float)

/* None is NULL. Bytes may contain a NUL, but must be followed by one. */
DSO_COLD static int dso_take_byte_string(const dso_function *function, const dso_any *args,
                                         int32_t index, const char **out) {
  dso_byte_array bytes = dso_raw_bytes_of(&args[index]);
  *out = NULL;
  if (args[index].type_index == DSO_NONE) return 0;
  if (!bytes.data || bytes.data[bytes.size]) return dso_refuse_string(function, args, index);
  *out = bytes.data;
  return 0;
}

static inline int dso_take_string(const dso_function *function, const dso_any *args, int32_t index,
                                  const char **out) {
  const dso_any *value = &args[index];
  if (value->type_index == DSO_RAW_STR && value->v_c_str) {
    *out = value->v_c_str;
    return 0;
  }
  dso_byte_array bytes = dso_bytes_of(value);
  if (!DSO_LIKELY(dso_is_c_string(bytes))) return dso_take_byte_string(function, args, index, out);
  *out = bytes.data;
  return 0;
}

/* A handle, or any address: an opaque pointer. */
DSO_FAST int dso_take_address(const dso_function *function, const dso_any *args, int32_t index,
                              void **out) {
  const dso_any *value = &args[index];
  *out = NULL;
  if (DSO_LIKELY(value->type_index == DSO_OPAQUE_PTR)) *out = value->v_ptr;
  else if (value->type_index != DSO_NONE)
    return dso_refuse_type(function, args, index, "a handle (an opaque pointer) or None");
  return 0;
}

static inline int dso_take_tensor(const dso_function *function, const dso_any *args, int32_t index,
                                  DLTensor **out) {
  *out = dso_tensor_of(&args[index]);
  return DSO_LIKELY(*out != NULL) ? 0 : dso_refuse_type(function, args, index, "a tensor");
}

/* The function examines it itself. */
DSO_FAST int dso_take_any(const dso_function *function, const dso_any *args, int32_t index,
                          dso_any *out) {
  (void)function;
  *out = args[index];
  return 0;
}

static inline int dso_take_pointer(const dso_function *function, const dso_any *args, int32_t index,
                                   int code, int bits, void **out) {
  const dso_any *value = &args[index];
  const DLTensor *tensor = dso_tensor_of(value);
  if (DSO_LIKELY(tensor && dso_is_on_cpu(tensor) && dso_has_dtype(tensor, code, bits) &&
                 dso_is_contiguous(tensor) && dso_is_addressable(tensor, bits / 8))) {
    *out = (void *)dso_address_of(tensor);
    return 0;
  }
  if (value->type_index != DSO_NONE)
    return dso_refuse_pointer(function, args, index, code, bits, DSO_TENSOR_ONLY);
  *out = NULL;
  return 0;
}

#ifdef __cplusplus
}
#endif

#endif
