/* The library that threads.c opens: one function that answers, one that raises. */
#include "dso_packer.h"

void (*__TVMFFIErrorSetRaisedFromCStr)(const char *kind, const char *message);
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
