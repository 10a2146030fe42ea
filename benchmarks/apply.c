/* apply of kernels.c for a Function object: C declarations have no such type. GIL is release or
 * keep. */
#include "dso_packer.h"

typedef struct {
  dso_object header;
  dso_safe_call safe_call;
} function_object;

DSO_EXPORT const char __packer_fn_apply[] = "packer-function 1\nabi safe_call\ngil " GIL "\n";

DSO_EXPORT int __tvm_ffi_apply(void *handle, const dso_any *args, int32_t num_args,
                               dso_any *result) {
  const function_object *function = (const function_object *)args[0].v_ptr;
  (void)handle;
  return function->safe_call(args[0].v_ptr, args + 1, num_args - 1, result);
}
