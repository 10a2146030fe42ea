/* dso_packer.h: for host code that calls functions of the modules its library imports.
 *
 *     #include "dso_packer.h"
 *
 *     dso_status run(DLTensor *x, int64_t n) {
 *       return dso_call("scale", NULL, dso_tensor(x), dso_float(2.0), dso_int(n));
 *     }
 *
 * A kernel is called like any function. Its arguments are followed by one integer per launch tag,
 * in the order of its tags (blocks, threads, bytes of dynamic shared memory):
 *
 *     dso_call("kernel", NULL, dso_tensor(x), dso_int(n), dso_int(blocks), dso_int(threads))
 *
 * A name refers to the first function of that name in the library's imports, depth first in import
 * order, else to the global function. The loader caches the function until the tree changes, so a
 * call by name costs only some nanoseconds more than a call by pointer.
 *
 * All calls return 0, or -1 with the error raised: `if (dso_call(...)) return -1;` passes the error
 * on. A function that is declared with result dso_status passes it on to its caller. C99 and C++11,
 * GCC and Clang. The ABI itself is in dso_abi.h. */
#ifndef DSO_PACKER_H
#define DSO_PACKER_H

#include <stddef.h>

#include "dso_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Context symbols, which the loader of the library fills. They are weak, since each file that
 * includes this header defines them, and a library has one of each. ---- */

#define DSO_CONTEXT_SYMBOL DSO_EXPORT __attribute__((weak))

DSO_CONTEXT_SYMBOL void (*__TVMFFIErrorSetRaisedFromCStr)(const char *kind, const char *message);
DSO_CONTEXT_SYMBOL void *__tvm_ffi__library_ctx;
DSO_CONTEXT_SYMBOL int (*__TVMFFIEnvModLookupFromImports)(void *context, const char *name,
                                                          dso_object **function);

#ifndef _WIN32
/* A TVM FFI with global symbols in the process is used if the loader does not fill such a
 * variable. */
extern int TVMFFIEnvModLookupFromImports(void *context, const char *name, dso_object **function)
    __attribute__((weak));
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

/* ---- Calls ---- */

/* Find a function by name. It is borrowed: the loader keeps it while the library is open. */
static inline int dso_find(const char *name, dso_object **function) {
  if (__TVMFFIEnvModLookupFromImports)
    return __TVMFFIEnvModLookupFromImports(__tvm_ffi__library_ctx, name, function);
#ifndef _WIN32
  if (TVMFFIEnvModLookupFromImports)
    return TVMFFIEnvModLookupFromImports(__tvm_ffi__library_ctx, name, function);
#endif
  return dso_raise("RuntimeError", "nobody filled the context symbols of this library: load it "
                                   "with runtime.load, not with dlopen");
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

static inline int dso_call_by_name(const char *name, dso_any *result, const dso_any *args,
                                   int32_t num_args) {
  dso_object *function;
  if (dso_find(name, &function)) return -1;
  return dso_call_function(function, result, args, num_args);
}

#ifdef __cplusplus
} /* extern "C" */

template <typename... Values>
inline int dso_call(const char *name, dso_any *result, Values... values) {
  const dso_any args[] = {values..., dso_none()}; /* an array must have an element */
  return dso_call_by_name(name, result, args, (int32_t)sizeof...(values));
}

#else

/* dso_call(name, result, values...). The added last value is not passed: C99 has no empty array. */
#define dso_call(name, ...) DSO_CALL(name, __VA_ARGS__, dso_none())
#define DSO_CALL(name, result, ...)                              \
  dso_call_by_name(name, result, (const dso_any[]){__VA_ARGS__}, \
                   (int32_t)(sizeof((const dso_any[]){__VA_ARGS__}) / sizeof(dso_any)) - 1)

#endif

#endif
