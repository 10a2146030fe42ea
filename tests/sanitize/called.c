/* The library that threads.c opens: one function that answers, one that raises, one that looks
 * others up. */
#include "dso_packer.h"

DSO_EXPORT const char version[] = VERSION;

DSO_EXPORT int __tvm_ffi_add(void *handle, const dso_any *args, int32_t num_args,
                             dso_any *result) {
  (void)handle, (void)num_args;
  result->type_index = DSO_INT;
  result->v_int64 = args[0].v_int64 + args[1].v_int64;
  return 0;
}

DSO_EXPORT int __tvm_ffi_fail(void *handle, const dso_any *args, int32_t num_args,
                              dso_any *result) {
  (void)handle, (void)args, (void)num_args, (void)result;
  return dso_raise("ValueError", version);
}

/* The sum of f(1), g(2) and h(3). */
DSO_EXPORT int __tvm_ffi_look_up(void *handle, const dso_any *args, int32_t num_args,
                                 dso_any *result) {
  const char *const names[] = {"f", "g", "h"};
  (void)handle, (void)args, (void)num_args;
  *result = dso_int(0);
  for (int i = 0; i < 3; i++) {
    dso_any one;
    if (dso_call(names[i], &one, dso_int(i + 1))) return -1;
    result->v_int64 += one.v_int64;
  }
  return 0;
}
