/* glue_legacy.h: packed C functions over the wrappers, for TVM to 2025.
 *
 * Such a function has the plain name of the declared one. It makes safe-call values of TVM's values,
 * calls the wrapper, and makes a TVM value of the result. Its loader sets the context symbols below.
 * Type codes and layouts: TVM's c_runtime_api.h and c_backend_api.h, versions 0.7 to 0.20. */
#ifndef DSO_PACKER_GLUE_LEGACY_H
#define DSO_PACKER_GLUE_LEGACY_H

#include "dso_value.h"
#include "glue_message.h"

#ifdef __cplusplus
extern "C" {
#endif

/* TVMValue. */
typedef union {
  int64_t v_int64;
  double v_float64;
  void *v_handle;
  const char *v_str;
  DLDataType v_type;
  DLDevice v_device;
} dso_legacy_value;

/* The type codes of TVM's values; those from DSO_LEGACY_OBJECT on that are missing are objects. */
enum {
  DSO_LEGACY_INT = 0,
  DSO_LEGACY_UINT = 1,
  DSO_LEGACY_FLOAT = 2,
  DSO_LEGACY_HANDLE = 3,
  DSO_LEGACY_NULL = 4,
  DSO_LEGACY_TYPE = 5,
  DSO_LEGACY_DEVICE = 6,
  DSO_LEGACY_TENSOR = 7,
  DSO_LEGACY_OBJECT = 8,
  DSO_LEGACY_FUNCTION = 10,
  DSO_LEGACY_STR = 11,
  DSO_LEGACY_BYTES = 12,
  DSO_LEGACY_NDARRAY = 13,
  DSO_LEGACY_BOOL = 15
};

/* The head of TVM's objects, and the types of some. */
typedef struct {
  uint32_t type_index;
  int32_t ref_count;
  void *deleter;
} dso_legacy_object;
enum { DSO_LEGACY_NDARRAY_OBJECT = 2, DSO_LEGACY_STRING_OBJECT = 3, DSO_LEGACY_ARRAY_OBJECT = 4 };

typedef struct {
  dso_legacy_object object;
  dso_byte_array bytes;
} dso_legacy_string;

typedef struct {
  dso_legacy_object object;
  int64_t size, capacity;
  dso_legacy_object *items[];
} dso_legacy_array;

#define DSO_LEGACY_CONTEXT DSO_EXPORT __attribute__((weak))
DSO_LEGACY_CONTEXT void *__tvm_module_ctx;
DSO_LEGACY_CONTEXT void (*__TVMAPISetLastError)(const char *message);
DSO_LEGACY_CONTEXT int (*__TVMBackendGetFuncFromEnv)(void *context, const char *name,
                                                     void **function);
DSO_LEGACY_CONTEXT int (*__TVMFuncCall)(void *function, dso_legacy_value *args, int *codes,
                                        int num_args, dso_legacy_value *result, int *result_code);

/* ---- Errors ---- */

/* How code of this library raises where no TVM FFI is: the kind is the start of the text. */
DSO_COLD static void dso_raise_legacy(const char *kind, const char *message) {
  size_t nbytes = __builtin_strlen(kind) + __builtin_strlen(message) + 3;
  char *text = (char *)__builtin_calloc(1, nbytes);
  if (text) (void)__builtin_snprintf(text, nbytes, "%s: %s", kind, message);
  if (__TVMAPISetLastError) __TVMAPISetLastError(text ? text : message);
  __builtin_free(text);
}

DSO_INLINE void dso_enter_legacy(void) {
  if (!__TVMFFIErrorSetRaisedFromCStr && !TVMFFIErrorSetRaisedFromCStr)
    __atomic_store_n(&__TVMFFIErrorSetRaisedFromCStr, &dso_raise_legacy, __ATOMIC_RELAXED);
}

/* `index` counts arguments from 0; it is -1 for a result. */
DSO_COLD static int dso_refuse_legacy(const dso_function *function, const char *what, int index,
                                      int code) {
  dso_message message;
  message.length = 0;
  dso_say(&message, "%s: %s", function->name, what);
  if (index >= 0) dso_say(&message, " %d", index + 1);
  if (code >= 0) dso_say(&message, " has TVM's type code %d", code);
  else dso_say(&message, " has no value in TVM to 2025");
  dso_say(&message, ", expected a number in int64, text, bytes, a tensor, a handle or a function");
  return dso_raise_message(&message, function, "TypeError");
}

/* ---- Functions of TVM that C code calls ---- */

/* A Function that is valid for the time of one call. */
typedef struct {
  dso_function_object cell;
  const dso_function *function;
  void *packed;
} dso_legacy_function;

/* Returns -1 for a value that TVM's values lack. */
DSO_INLINE int dso_to_legacy(const dso_any *value, dso_legacy_value *out) {
  dso_byte_array bytes = dso_bytes_of(value);
  DLTensor *tensor = dso_tensor_of(value);
  out->v_int64 = value->v_int64;
  if (tensor) out->v_handle = tensor;
  if (bytes.data) out->v_str = bytes.data;
  if (tensor || bytes.data) return tensor ? DSO_LEGACY_TENSOR : DSO_LEGACY_STR;
  switch (value->type_index) {
    case DSO_INT: return dso_is_beyond_int64(value) ? -1 : DSO_LEGACY_INT;
    case DSO_BOOL: return DSO_LEGACY_INT;
    case DSO_FLOAT: return DSO_LEGACY_FLOAT;
    case DSO_OPAQUE_PTR: return DSO_LEGACY_HANDLE;
    case DSO_NONE: return DSO_LEGACY_NULL;
    case DSO_DATA_TYPE: return DSO_LEGACY_TYPE;
    case DSO_DEVICE: return DSO_LEGACY_DEVICE;
    case DSO_RAW_STR: return DSO_LEGACY_STR;
    case DSO_BYTE_ARRAY_PTR: return DSO_LEGACY_BYTES;
    default: return -1;
  }
}

static int dso_from_legacy(const dso_legacy_value *value, int code, dso_any *out);

/* The safe call of a dso_legacy_function. */
DSO_UNUSED static int dso_call_packed(void *handle, const dso_any *args, int32_t num_args,
                                      dso_any *result) {
  dso_legacy_function *self = (dso_legacy_function *)handle;
  size_t count = (size_t)num_args + 1;
  dso_legacy_value *values = (dso_legacy_value *)__builtin_alloca(count * sizeof *values);
  int *codes = (int *)__builtin_alloca(count * sizeof *codes), code = DSO_LEGACY_NULL;
  dso_legacy_value made;
  made.v_int64 = 0;
  for (int32_t i = 0; i < num_args; i++) {
    codes[i] = dso_to_legacy(&args[i], &values[i]);
    if (codes[i] < 0) return dso_refuse_legacy(self->function, "callback argument", i, -1);
  }
  if (!__TVMFuncCall || __TVMFuncCall(self->packed, values, codes, num_args, &made, &code))
    return -1;
  if (dso_from_legacy(&made, code, result) == 0) return 0;
  return dso_refuse_legacy(self->function, "the result of its callback", -1, code);
}

/* ---- Arguments and results ---- */

/* Values are borrowed. Returns -1 for an object of another type than text. */
DSO_INLINE int dso_from_legacy(const dso_legacy_value *value, int code, dso_any *out) {
  static const int32_t types[] = {DSO_INT,  DSO_INT,       DSO_FLOAT,  DSO_OPAQUE_PTR,
                                  DSO_NONE, DSO_DATA_TYPE, DSO_DEVICE, DSO_DLTENSOR_PTR};
  const dso_legacy_string *text = (const dso_legacy_string *)value->v_handle;
  *out = dso_value(DSO_NONE);
  if (code == DSO_LEGACY_NULL) return 0;
  out->v_int64 = value->v_int64;
  if (code >= DSO_LEGACY_INT && code <= DSO_LEGACY_TENSOR) out->type_index = types[code];
  else if (code == DSO_LEGACY_BOOL) out->type_index = DSO_BOOL;
  else if (code == DSO_LEGACY_STR) out->type_index = DSO_RAW_STR;
  else if (code == DSO_LEGACY_BYTES) out->type_index = DSO_BYTE_ARRAY_PTR;
  else if (code == DSO_LEGACY_NDARRAY) out->type_index = DSO_DLTENSOR_PTR;
  else if (code == DSO_LEGACY_OBJECT && text &&
           text->object.type_index == DSO_LEGACY_STRING_OBJECT && dso_is_c_string(text->bytes)) {
    out->type_index = DSO_RAW_STR;
    out->v_c_str = text->bytes.data;
  } else {
    return -1;
  }
  if (out->type_index >= DSO_OPAQUE_PTR && code != DSO_LEGACY_TYPE && code != DSO_LEGACY_DEVICE &&
      !out->v_ptr)
    *out = dso_value(DSO_NONE);
  return 0;
}

/* Text is a String object, which TVM makes: a packed C function cannot return a plain one. */
DSO_COLD static int dso_return_text(const dso_any *result, dso_legacy_value *out, int *out_code) {
  dso_legacy_value text;
  int code = DSO_LEGACY_STR;
  void *make = NULL;
  text.v_str = dso_bytes_of(result).data;
  if (!__TVMBackendGetFuncFromEnv || !__TVMFuncCall)
    return dso_raise("RuntimeError", "no TVM has loaded this library, so it cannot return text");
  if (__TVMBackendGetFuncFromEnv(__tvm_module_ctx, "runtime.String", &make)) return -1;
  return __TVMFuncCall(make, &text, &code, 1, out, out_code);
}

DSO_INLINE int dso_return_legacy(const dso_function *function, dso_any *result,
                                 dso_legacy_value *out, int *out_code) {
  int status = 0;
  if (dso_bytes_of(result).data) {
    status = dso_return_text(result, out, out_code);
    dso_release(result);
    return status;
  }
  int code = dso_to_legacy(result, out);
  if (code < 0) status = dso_refuse_legacy(function, "its result", -1, code);
  else *out_code = code;
  return status;
}

/* Call a wrapper for TVM. */
DSO_INLINE int dso_call_legacy(const dso_function *function, dso_safe_call wrapper,
                               const dso_legacy_value *args, const int *codes, int num_args,
                               dso_legacy_value *out, int *out_code) {
  size_t count = (size_t)num_args + 1;
  dso_any *values = (dso_any *)__builtin_alloca(count * sizeof *values), result = dso_none();
  dso_legacy_function *functions = NULL;
  dso_enter_legacy();
  for (int i = 0; i < num_args; i++) {
    if (codes[i] == DSO_LEGACY_FUNCTION) {
      if (!functions)
        functions = (dso_legacy_function *)__builtin_alloca(count * sizeof *functions);
      dso_legacy_function *made = &functions[i];
      __builtin_memset(made, 0, sizeof *made);
      made->cell.object.combined_ref_count = 1 | (uint64_t)1 << 32;
      made->cell.object.type_index = DSO_FUNCTION;
      made->cell.safe_call = dso_call_packed;
      made->function = function;
      made->packed = args[i].v_handle;
      values[i] = dso_object_value(&made->cell.object);
    } else if (dso_from_legacy(&args[i], codes[i], &values[i])) {
      return dso_refuse_legacy(function, "argument", i, codes[i]);
    }
  }
  if (wrapper(NULL, values, num_args, &result)) return -1;
  return dso_return_legacy(function, &result, out, out_code);
}

/* Call the wrapper of an initialiser: const_loader passes its arrays as one Array. */
DSO_UNUSED static int dso_initialize_legacy(const dso_function *function, dso_safe_call wrapper,
                                            const dso_legacy_value *args, const int *codes,
                                            int num_args, dso_legacy_value *out, int *out_code) {
  const dso_legacy_array *array = NULL;
  if (num_args == 1 && codes[0] == DSO_LEGACY_OBJECT)
    array = (const dso_legacy_array *)args[0].v_handle;
  if (!array || array->object.type_index != DSO_LEGACY_ARRAY_OBJECT)
    return dso_call_legacy(function, wrapper, args, codes, num_args, out, out_code);
  size_t count = (size_t)array->size;
  dso_legacy_value *values = (dso_legacy_value *)__builtin_alloca((count + 1) * sizeof *values);
  int *kinds = (int *)__builtin_alloca((count + 1) * sizeof *kinds);
  for (size_t i = 0; i < count; i++) {
    dso_legacy_object *item = array->items[i];
    int is_tensor = item && item->type_index == DSO_LEGACY_NDARRAY_OBJECT;
    kinds[i] = is_tensor ? DSO_LEGACY_NDARRAY : DSO_LEGACY_OBJECT;
    values[i].v_handle = is_tensor ? item + 1 : item; /* the tensor follows the head */
  }
  return dso_call_legacy(function, wrapper, values, kinds, (int)count, out, out_code);
}

#ifdef __cplusplus
}
#endif

#endif
