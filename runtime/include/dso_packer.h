/* dso_packer.h: for host code that calls functions of the modules its library imports, and reads
 * their weights.
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
 * The weights of the library's tree are found by their names:
 *
 *     DLTensor w;
 *     if (dso_weight("layer1.weight", &w)) return -1;
 *
 * All calls return 0, or -1 with the error raised: `if (dso_call(...)) return -1;` passes the error
 * on. A function that is declared with result dso_status passes it on to its caller. C99 and C++11,
 * GCC and Clang. The ABI itself is in dso_abi.h. */
#ifndef DSO_PACKER_H
#define DSO_PACKER_H

#include <stddef.h>

#include "dso_value.h"

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

DSO_CONTEXT_SYMBOL int (*__DSOFindWeight)(void *context, const char *name, DLTensor *tensor);

#ifndef _WIN32
/* A TVM FFI with global symbols in the process is used if the loader does not fill such a
 * variable. */
extern int TVMFFIEnvModLookupFromImports(void *context, const char *name, dso_object **function)
    __attribute__((weak));
#endif

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
                                   "with runtime.load or dso_load, not with dlopen");
}

static inline int dso_call_by_name(const char *name, dso_any *result, const dso_any *args,
                                   int32_t num_args) {
  dso_object *function;
  if (dso_find(name, &function)) return -1;
  return dso_call_function(function, result, args, num_args);
}

/* ---- Weights ---- */

/* Find a named tensor of the modules that the library imports, depth first in import order. All of
 * *tensor is borrowed: it is valid while the library is open. Its data is where the library is
 * mapped, and read-only. */
static inline int dso_weight(const char *name, DLTensor *tensor) {
  if (__DSOFindWeight) return __DSOFindWeight(__tvm_ffi__library_ctx, name, tensor);
  return dso_raise("RuntimeError", "this library reads its weights, but no loader that provides "
                                   "them has opened it: load it with runtime.load or dso_load, not "
                                   "with tvm_ffi or dlopen");
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
