/* Host code that leaves TVM FFI's functions undefined, as that of TVM's C target does. */
#include "dso_abi.h"

void *__tvm_ffi__library_ctx;
int TVMFFIEnvModLookupFromImports(void *context, const char *name, dso_object **function);
int TVMFFIFunctionCall(dso_object *function, const dso_any *args, int32_t count, dso_any *result);
void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t count);

#ifndef VERSION
#define VERSION 1
#endif

#define SAFE(name) \
  DSO_EXPORT int __tvm_ffi_##name(void *handle, const dso_any *args, int32_t num_args, dso_any *result)
#define UNUSED (void)handle, (void)args, (void)num_args, (void)result

/* call_global(arguments...): the function "test.beside" */
SAFE(call_global) {
  UNUSED;
  dso_object *function;
  if (TVMFFIEnvModLookupFromImports(__tvm_ffi__library_ctx, "test.beside", &function)) return -1;
  return TVMFFIFunctionCall(function, args, num_args, result);
}

/* apply(function, arguments...) */
SAFE(apply) {
  UNUSED;
  return TVMFFIFunctionCall((dso_object *)args[0].v_ptr, args + 1, num_args - 1, result);
}

SAFE(fail) {
  UNUSED;
  const char *parts[] = {"in ", 0, "parts"};
  TVMFFIErrorSetRaisedFromCStrParts("KeyError", parts, 3);
  return -1;
}

SAFE(version) {
  UNUSED;
  result->type_index = DSO_INT;
  result->v_int64 = VERSION;
  return 0;
}

#ifdef MORE
int TVMFFINobodyHasThis(void);
SAFE(more) {
  UNUSED;
  return TVMFFINobodyHasThis();
}
#endif
